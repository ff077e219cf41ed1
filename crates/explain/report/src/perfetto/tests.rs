//! Reads what is written with another decoder, and checks what Perfetto's trace processor relies on.

use luc_events::codes::{CallKind, WaitState};
use luc_events::tables::{Call, Commit, Sync};
use luc_events::{Cause, Event, Inode, Pid, Tgid};
use luc_testkit::perfetto::check;
use proptest::prelude::*;

use super::track::Track;
use super::*;
use crate::random::{events, exported};

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
        Task { at_ns: ms(1), thread, process, comm: "log writer".to_owned(), ..Task::default() }
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
            (checked.tracks[track].as_str(), name.as_str(), *depth, ms(begin_ns), ms(end_ns))
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
        assert!(named.contains(&expected), "{expected:?} is not in {named:#?}");
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
