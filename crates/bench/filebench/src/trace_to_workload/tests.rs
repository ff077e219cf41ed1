//! Tests with traces written by hand.

use std::path::Path;

use luc_events::event_kinds::{DataDirection, FileCallKind, SyncKind};
use luc_events::store::TraceWriter;
use luc_events::tables::{
    FileCall, FileData, FsyncCall, JournalHandle, ThreadInfo, TraceDescription,
};
use luc_events::{Dev, Inode, Pid};
use tempfile::TempDir;

use super::{DerivedCallCounts, DerivedPersonality, TracedError, derive};
use crate as filebench;

/// A trace under way: a thread's calls follow each other, 10 us each, after a pause.
struct Recorded {
    writer: TraceWriter,
    folder: TempDir,
    now_ns: u64,
}

impl Recorded {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let trace =
            TraceDescription { command: "a program".to_owned(), ..TraceDescription::default() };
        let writer = TraceWriter::create(&folder.path().join("t"), trace).expect("begun");
        Self { writer, folder, now_ns: 1_000_000 }
    }

    fn thread(&mut self, thread: u32, comm: &str) {
        let task = ThreadInfo {
            at_ns: self.now_ns,
            thread: Pid(thread),
            comm: comm.to_owned(),
            ..ThreadInfo::default()
        };
        self.writer.add(task).expect("added");
    }

    fn call(&mut self, thread: u32, kind: FileCallKind, inode: u64, bytes: u64, pause_us: u64) {
        let enter_ns = self.now_ns + pause_us * 1000;
        self.now_ns = enter_ns + 10_000;
        let call = FileCall {
            thread: Pid(thread),
            kind,
            enter_ns,
            exit_ns: self.now_ns,
            dev: Dev(8 << 20),
            inode: Inode(inode),
            bytes,
            ..FileCall::default()
        };
        self.writer.add(call).expect("added");
    }

    fn sync(&mut self, thread: u32, inode: u64) {
        let enter_ns = self.now_ns;
        self.now_ns += 10_000;
        let sync = FsyncCall {
            thread: Pid(thread),
            kind: SyncKind::Fsync,
            enter_ns,
            exit_ns: self.now_ns,
            dev: Dev(8 << 20),
            inode: Inode(inode),
            ..FsyncCall::default()
        };
        self.writer.add(sync).expect("added");
    }

    fn derived(self) -> Result<DerivedPersonality, TracedError> {
        self.writer.finish(TraceDescription::default()).expect("finished");
        derive(&self.folder.path().join("t"))
    }
}

/// Mail that is delivered: each file is made, written twice and synced; every other one is removed.
fn mail(recorded: &mut Recorded) {
    recorded.thread(7, "deliver3");
    for file in 1..=100 {
        recorded.call(7, FileCallKind::Create, file, 0, 500);
        recorded.call(7, FileCallKind::Write, file, 4096, 0);
        recorded.call(7, FileCallKind::Write, file, 100, 0);
        recorded.sync(7, file);
        if file % 2 == 0 {
            recorded.call(7, FileCallKind::Unlink, file, 0, 0);
        }
    }
}

#[test]
fn files_are_made_written_synced_and_removed() {
    let mut recorded = Recorded::new();
    mail(&mut recorded);
    let DerivedPersonality { text, counts } = recorded.derived().expect("a workload");
    assert_eq!(
        counts,
        DerivedCallCounts {
            creations: 100,
            removals: 50,
            writes: 200,
            syncs: 100,
            ..DerivedCallCounts::default()
        }
    );
    for line in [
        "# Made of the trace",
        "set $g1newwrites=2",
        "set $g1newwritesize=randvar(type=tabular,min=100,randtable={{50,100,100},{50,4096,4096}})",
        "set $g1newsyncs=1",
        // Nothing is known before the first call.
        "set $g1newpause=randvar(type=tabular,min=0,randtable={{1,0,0},{99,500,500}})",
        "set $g1newsize=4196",
        "# Threads called 'deliver'. They made 100 files and removed 50: here as many are made as removed.",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let workload = filebench::WorkloadFile::parse("t.f", &text, &[]).expect("the language");
    assert_eq!(workload.clients(), 1);
}

#[test]
fn it_runs_and_has_the_same_shares() {
    let mut recorded = Recorded::new();
    mail(&mut recorded);
    // A second thread works on three files that are there.
    recorded.thread(8, "server");
    for turn in 0..300 {
        let inode = 1000 + turn % 3;
        recorded.call(8, FileCallKind::Write, inode, 8192, 0);
        recorded.call(8, FileCallKind::Read, inode, 2048, 0);
        if turn % 4 == 0 {
            recorded.sync(8, inode);
        }
    }
    let DerivedPersonality { text, .. } = recorded.derived().expect("a workload");
    // The server does more calls, so that it is the first group. Each group has a run that ends by its own
    // calls: the other one may not have had a processor by then. Here 200 files of six calls.
    let report = run_until(&text, "flowop g2remove name=g2remove\n", 1200);
    let files = count(&report, "g2create");
    assert!(files >= 190.0, "{files}");
    for (name, per_file) in [("g2newwrite", 2.0), ("g2newsync", 1.0), ("g2delete", 1.0)] {
        let found = count(&report, name) / files;
        assert!((found / per_file - 1.0).abs() < 0.02, "{name}: {found}\n{text}");
    }
    let moved = report.moved.iter().find(|one| one.operation.ends_with("newwrite"));
    let mean = moved.map_or(0.0, |one| one.mean_bytes);
    assert!((mean / 2098.0 - 1.0).abs() < 0.2, "{mean}");

    // About a thousand turns.
    let turn = "flowop g1use name=g1use,iters=$g1olditers\n";
    let report = run_until(&text, turn, 4250);
    let writes = count(&report, "g1oldwrite");
    assert!((count(&report, "g1oldread") - writes).abs() <= 1.0, "{writes}");
    // Every fourth turn on average, drawn: four standard deviations of as many.
    let syncs = count(&report, "g1oldsync") / writes;
    assert!(
        (syncs - 0.25).abs() < 4.0 * (0.1875 / writes).sqrt() + 0.01,
        "{syncs} of {writes}\n{text}"
    );
}

/// Runs `text` without pauses until the thread of `last`, one of its lines, has made `calls`. Returns the report.
fn run_until(text: &str, last: &str, calls: u64) -> filebench::FilebenchReport {
    assert!(text.contains(last), "{last}\n{text}");
    let text = text.replace(last, &format!("{last}flowop finishoncount name=end,value={calls}\n"));
    let set = ["think=0".to_owned()];
    let workload = filebench::WorkloadFile::parse("t.f", &text, &set).expect("the language");
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
    let folder = folder.expect("a folder");
    let options = filebench::FilebenchOptions {
        directory: folder.path().to_owned(),
        measured_ns: Some(60_000_000_000),
        seed: 1,
        compat: false,
        cold: false,
    };
    workload.run(&options, &mut |_| {}).expect("runs")
}

/// Counts the operations called `name`.
fn count(report: &filebench::FilebenchReport, name: &str) -> f64 {
    let found = report.operations.iter().find(|one| one.operation.ends_with(name));
    found.map_or(0, |one| one.count) as f64
}

#[test]
fn what_the_journal_shows_to_grow_is_appended() {
    for (allocations, flowop) in [(30, "flowop appendfile"), (0, ",random,")] {
        let mut recorded = Recorded::new();
        recorded.thread(5, "logger");
        for _ in 0..30 {
            recorded.call(5, FileCallKind::Write, 9, 512, 100);
            recorded.sync(5, 9);
            // Another file in between, so that each is an episode of its own.
            recorded.call(5, FileCallKind::Write, 10, 512, 0);
        }
        if allocations > 0 {
            let handle = JournalHandle {
                at_ns: recorded.now_ns,
                thread: Pid(5),
                kind: 2,
                count: allocations,
                ..JournalHandle::default()
            };
            recorded.writer.add(handle).expect("added");
        }
        let text = recorded.derived().expect("a workload").text;
        assert!(text.contains(flowop), "{text}");
    }
}

#[test]
fn threads_of_a_name_are_one_group() {
    let mut recorded = Recorded::new();
    for turn in 0..40 {
        for thread in 20..24 {
            if turn == 0 {
                recorded.thread(thread, &format!("worker-{thread}"));
            }
            recorded.call(thread, FileCallKind::Write, u64::from(thread), 64, 0);
        }
    }
    let text = recorded.derived().expect("a workload").text;
    assert!(text.contains("# Threads called 'worker'."), "{text}");
    assert!(text.contains("instances=4 {"), "{text}");
}

#[test]
fn writes_without_rows_are_known_by_what_they_made_dirty() {
    let mut recorded = Recorded::new();
    recorded.thread(7, "deliver");
    for file in 1..=20 {
        recorded.call(7, FileCallKind::Create, file, 0, 20_000);
        let data = FileData {
            // The slot ends after the sync.
            at_ns: recorded.now_ns + 5_000_000,
            dev: Dev(8 << 20),
            inode: Inode(file),
            thread: Pid(7),
            bytes: 12_288,
            direction: DataDirection::Dirtied,
            ..FileData::default()
        };
        recorded.writer.add(data).expect("added");
        recorded.sync(7, file);
    }
    let DerivedPersonality { text, counts } = recorded.derived().expect("a workload");
    assert_eq!((counts.writes, counts.syncs), (20, 20), "{text}");
    for line in ["set $g1newwrites=1\n", "set $g1newwritesize=12288\n", "set $g1newsize=12288\n"] {
        assert!(text.contains(line), "{line}{text}");
    }
}

#[test]
fn who_makes_files_removes_those_that_others_removed() {
    let mut recorded = Recorded::new();
    for file in 1..=50 {
        let (maker, remover) = (100 + 2 * file, 101 + 2 * file);
        recorded.thread(maker, "dd");
        recorded.call(maker, FileCallKind::Create, u64::from(file), 0, 0);
        recorded.call(maker, FileCallKind::Write, u64::from(file), 4096, 0);
        recorded.thread(remover, "rm");
        recorded.call(remover, FileCallKind::Unlink, u64::from(file), 0, 0);
    }
    let DerivedPersonality { text, counts } = recorded.derived().expect("a workload");
    assert_eq!((counts.creations, counts.removals), (50, 50));
    assert!(text.contains("# Threads called 'dd'.\n"), "{text}");
    assert!(!text.contains("'rm'"), "{text}");
}

#[test]
fn a_trace_without_calls_is_refused() {
    let mut recorded = Recorded::new();
    recorded.thread(7, "idle");
    let error = recorded.derived().expect_err("nothing in it").to_string();
    assert!(error.contains("--no-calls") && error.lines().count() == 1, "{error}");
    let nothing = TempDir::new().expect("a folder");
    let error = derive(nothing.path()).expect_err("no trace").to_string();
    assert!(error.contains("no trace is here"), "{error}");
}
