//! Reads what is written with a decoder of its own, and checks what Perfetto's trace processor relies on.

use std::collections::{HashMap, HashSet};

use luc_events::codes::{CallKind, WaitState};
use luc_events::tables::{Call, Commit, Sync};
use luc_events::{Cause, Event, Inode, Pid, Tgid};
use proptest::prelude::*;

use super::packets::Track;
use super::*;
use crate::random::{events, exported};

/// A field of a message.
#[derive(Debug)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            Self::Bytes(_) => panic!("a number was expected: {self:?}"),
        }
    }

    fn fields(&self) -> Vec<(u64, Value<'a>)> {
        match self {
            Self::Bytes(bytes) => fields(bytes),
            Self::Number(_) => panic!("a message was expected: {self:?}"),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Bytes(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            Self::Number(_) => panic!("text was expected: {self:?}"),
        }
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = bytes.split_first().expect("a varint ends");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return value;
        }
    }
    panic!("a varint has ten bytes at most");
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)),
            1 => {
                let (fixed, rest) = bytes.split_at(8);
                bytes = rest;
                Value::Number(u64::from_le_bytes(fixed.try_into().unwrap()))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (inner, rest) = bytes.split_at(length);
                bytes = rest;
                Value::Bytes(inner)
            }
            wire => panic!("wire type {wire}"),
        };
        fields.push((key >> 3, value));
    }
    fields
}

fn get<'a, 'b>(fields: &'b [(u64, Value<'a>)], number: u64) -> Option<&'b Value<'a>> {
    fields
        .iter()
        .find(|field| field.0 == number)
        .map(|field| &field.1)
}

#[derive(Debug, Default)]
struct Checked {
    /// Names of slices by track, with depth, begin and end.
    slices: Vec<(u64, String, usize, u64, u64)>,
    flows: HashMap<u64, u32>,
    counters: Vec<(u64, u64)>,
    tracks: HashMap<u64, String>,
}

/// Panics if the trace is not as it has to be.
fn check(bytes: &[u8]) -> Checked {
    let mut checked = Checked::default();
    let mut parents = HashSet::new();
    let mut last: HashMap<u64, u64> = HashMap::new();
    let mut open: HashMap<u64, Vec<(String, u64)>> = HashMap::new();
    for (index, (field, packet)) in fields(bytes).iter().enumerate() {
        assert_eq!(*field, 1);
        let packet = packet.fields();
        assert_eq!(get(&packet, 10).expect("a sequence").number(), 1);
        if index == 0 {
            assert_eq!(get(&packet, 13).expect("flags").number(), 1);
            let clocks = get(&packet, 6).expect("clocks").fields();
            assert_eq!(clocks.len(), 3);
            continue;
        }
        if let Some(track) = get(&packet, 60) {
            let track = track.fields();
            let uuid = get(&track, 1).expect("an id").number();
            let name = match (get(&track, 2), get(&track, 3), get(&track, 4)) {
                (Some(name), _, _) => name.text(),
                (_, Some(process), _) => get(&process.fields(), 6).unwrap().text(),
                (_, _, Some(thread)) => get(&thread.fields(), 5).unwrap().text(),
                _ => panic!("a track without a name: {track:?}"),
            };
            if let Some(parent) = get(&track, 5) {
                parents.insert(parent.number());
            }
            checked.tracks.insert(uuid, name);
            continue;
        }
        let at_ns = get(&packet, 8).expect("a time").number();
        let event = get(&packet, 11).expect("an event").fields();
        let track = get(&event, 11).expect("a track").number();
        assert!(
            checked.tracks.contains_key(&track),
            "described before: {track:x}"
        );
        let last_ns = last.entry(track).or_default();
        assert!(*last_ns <= at_ns, "time goes back on {track:x}");
        *last_ns = at_ns;
        let open = open.entry(track).or_default();
        match get(&event, 9).expect("a type").number() {
            1 => open.push((get(&event, 23).expect("a name").text(), at_ns)),
            2 => {
                let (name, begin_ns) = open.pop().expect("an end has a beginning");
                let slice = (track, name, open.len(), begin_ns, at_ns);
                checked.slices.push(slice);
            }
            4 => checked
                .counters
                .push((track, get(&event, 30).unwrap().number())),
            kind => panic!("type {kind}"),
        }
        for (_, flow) in event.iter().filter(|field| field.0 == 47) {
            *checked.flows.entry(flow.number()).or_default() += 1;
        }
    }
    assert!(open.values().all(Vec::is_empty), "a slice never ends");
    assert!(checked.flows.values().all(|&ends| ends == 2), "{checked:?}");
    assert!(
        parents
            .iter()
            .all(|parent| checked.tracks.contains_key(parent))
    );
    checked
}

proptest! {
    #[test]
    fn any_trace_becomes_a_good_one(events in events()) {
        let (bytes, _) = exported(events, Perfetto::new);
        check(&bytes);
    }
}

const OFFSET_NS: u64 = 5_000_000_000;

/// A thread writes with O_SYNC: a write, its sync inside, a wait for a commit inside that.
#[test]
fn a_call_is_tied_to_its_commit_and_that_to_its_work() {
    let (thread, process, dev) = (Pid(7), Tgid(6), Dev::new(7, 0));
    let transaction = Transaction(41);
    let ms = |ms: u64| ms * 1_000_000;
    let commit = Commit {
        dev,
        transaction,
        start_ns: ms(20),
        locking_ns: ms(20),
        flushing_ns: ms(21),
        logging_ns: ms(22),
        end_ns: ms(30),
        ..Commit::default()
    };
    let events: Vec<Event> = vec![
        Task {
            at_ns: ms(1),
            thread,
            process,
            comm: "log writer".to_owned(),
            ..Task::default()
        }
        .into(),
        luc_events::tables::Handle {
            at_ns: ms(11),
            dev,
            transaction,
            thread,
            process,
            count: 1,
            dirtied: 3,
            ..Default::default()
        }
        .into(),
        Wait {
            thread,
            process,
            off_ns: ms(19),
            woken_ns: ms(30),
            on_ns: ms(31),
            state: WaitState::Uninterruptible,
            cause: Cause::CommitWait,
            ..Wait::default()
        }
        .into(),
        commit.into(),
        Sync {
            thread,
            process,
            dev,
            inode: Inode(12),
            kind: SyncKind::SyncWrite,
            enter_ns: ms(15),
            exit_ns: ms(32),
            wanted_enter: transaction,
            wanted_exit: transaction,
            ..Sync::default()
        }
        .into(),
        Call {
            thread,
            process,
            dev,
            inode: Inode(12),
            kind: CallKind::Write,
            enter_ns: ms(10),
            exit_ns: ms(33),
            bytes: 512,
            ..Call::default()
        }
        .into(),
    ];
    let (bytes, _) = exported(events, Perfetto::new);
    let checked = check(&bytes);
    let named: Vec<(&str, &str, usize, u64, u64)> = checked
        .slices
        .iter()
        .map(|(track, name, depth, begin_ns, end_ns)| {
            let ms = |ns: &u64| (ns - OFFSET_NS) / 1_000_000;
            (
                checked.tracks[track].as_str(),
                name.as_str(),
                *depth,
                ms(begin_ns),
                ms(end_ns),
            )
        })
        .collect();
    for expected in [
        ("log writer", "write", 0, 10, 33),
        ("log writer", "sync_write", 1, 15, 32),
        ("log writer", "start", 2, 19, 20),
        ("log writer", "logging", 2, 22, 30),
        ("log writer", "runnable", 2, 30, 31),
        ("off the processor", "commit_wait", 0, 19, 31),
        ("journal of 7:0", "commit 41", 0, 20, 30),
        ("journal of 7:0", "locking", 1, 20, 21),
        ("work for commits of 7:0", "for commit 41", 0, 20, 20),
    ] {
        assert!(
            named.contains(&expected),
            "{expected:?} is not in {named:#?}"
        );
    }
    // One from the sync to its commit, one from the commit to the work in it.
    assert_eq!(checked.flows.len(), 2);
    let served = Track::Served.uuid(dev.0);
    assert!(checked.counters.contains(&(served, 1)));
}

#[test]
fn an_error_of_the_writer_is_told() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let export = Box::new(Perfetto::new(&Trace::default(), Full));
    let error = export.finish(&Report::default()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}
