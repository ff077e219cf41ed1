//! Reads what is written with another decoder, and checks what Perfetto's trace processor relies on.

use luc_events::event_kinds::{FileCallKind, WaitState};
use luc_events::tables::{FileCall, FsyncCall, JournalCommit};
use luc_events::{Inode, Pid, Tgid, TraceEvent, WaitCause};
use luc_testkit::perfetto::check;
use proptest::prelude::*;

use super::track_id::TrackId;
use super::*;
use crate::random_traces::{events, exported};

proptest! {
    #[test]
    fn any_trace_becomes_a_good_one(events in events()) {
        let (bytes, _) = exported(events, PerfettoWriter::new);
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
    let commit = JournalCommit {
        dev,
        transaction,
        start_ns: ms(20),
        locking_ns: ms(20),
        flushing_ns: ms(21),
        logging_ns: ms(22),
        end_ns: ms(30),
        ..JournalCommit::default()
    };
    let events: Vec<TraceEvent> = vec![
        ThreadInfo {
            at_ns: ms(1),
            thread,
            process,
            comm: "log writer".to_owned(),
            ..ThreadInfo::default()
        }
        .into(),
        luc_events::tables::JournalHandle {
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
        OffCpuWait {
            thread,
            process,
            off_ns: ms(19),
            woken_ns: ms(30),
            on_ns: ms(31),
            state: WaitState::Uninterruptible,
            cause: WaitCause::CommitWait,
            ..OffCpuWait::default()
        }
        .into(),
        commit.into(),
        FsyncCall {
            thread,
            process,
            dev,
            inode: Inode(12),
            kind: SyncKind::SyncWrite,
            enter_ns: ms(15),
            exit_ns: ms(32),
            wanted_enter: transaction,
            wanted_exit: transaction,
            ..FsyncCall::default()
        }
        .into(),
        FileCall {
            thread,
            process,
            dev,
            inode: Inode(12),
            kind: FileCallKind::Write,
            enter_ns: ms(10),
            exit_ns: ms(33),
            bytes: 512,
            ..FileCall::default()
        }
        .into(),
    ];
    let (bytes, _) = exported(events, PerfettoWriter::new);
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
    let served = TrackId::Served.uuid(dev.0);
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
    let export = Box::new(PerfettoWriter::new(&TraceDescription::default(), Full));
    let error = export.finish(&TraceReport::default()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}
