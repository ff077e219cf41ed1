//! `luc record` end to end, on known work on an emulated disk. Its rows are compared with what was done, and with
//! what the kernel's own tracing says. Needs root, FUSE, loop devices and BTF; skipped, with the reason, where they
//! are missing.

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{FLUSH_NS, LUC, RecordedDisk, rows, stderr};
use luc_events::event_kinds::{CommitKind, DataDirection, RequestKind, SummarizedKind, SyncKind};
use luc_events::store::TraceReader;
use luc_events::tables::{
    BlockRequest, FileData, FsyncCall, JournalCommit, JournalHandle, LostEvents, OffCpuWait,
    SummaryCount, ThreadInfo,
};
use luc_events::{Dev, WaitCause};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Records a shell script with `options`, and opens the trace.
fn record(bench: &RecordedDisk, trace: &str, options: &[&str], script: &str) -> TraceReader {
    let out = bench.path(trace);
    let mut arguments = vec!["record", "--out", &out];
    arguments.extend(options);
    arguments.extend(["--", "sh", "-c", script]);
    let output = bench.luc(&arguments);
    let message = stderr(&output);
    assert!(output.status.success(), "{message}");
    let reader = bench.open(&out);
    assert_eq!(rows::<LostEvents>(&reader), [], "{message}");
    reader
}

#[test]
fn every_fsync_is_recorded_with_its_commit() {
    let Some(bench) = RecordedDisk::new("fsyncs") else {
        return;
    };
    let reader = record(&bench, "trace", &[], &bench.syncs(40));
    let dev = common::dev(&bench, &reader);

    let syncs: Vec<FsyncCall> = rows(&reader);
    assert_eq!(syncs.len(), 40);
    let commits: BTreeMap<u32, JournalCommit> = rows::<JournalCommit>(&reader)
        .into_iter()
        .filter(|commit| commit.dev == dev)
        .map(|commit| (commit.transaction.0, commit))
        .collect();
    for sync in &syncs {
        assert_eq!((sync.dev, sync.kind, sync.errno), (dev, SyncKind::Fsync, 0));
        assert!(sync.inode.0 > 0);
        assert!(
            sync.enter_ns <= sync.file_system_enter_ns
                && sync.file_system_enter_ns < sync.file_system_exit_ns
                && sync.file_system_exit_ns <= sync.exit_ns,
            "{sync:?}"
        );
        let commit = &commits[&sync.wanted_exit.0];
        assert!(commit.end_ns < sync.exit_ns, "{sync:?} {commit:?}");
        assert!(commit.end_ns > sync.enter_ns, "{sync:?} {commit:?}");
        // Nobody else asks, and this disk needs two flushes for a commit.
        assert_eq!(commit.asked_by, sync.thread, "{sync:?} {commit:?}");
        assert_eq!(commit.kind, CommitKind::Full);
        assert!(commit.end_ns - commit.start_ns > 2 * FLUSH_NS, "{commit:?}");
        let phases = [
            commit.asked_ns,
            commit.start_ns,
            commit.locking_ns,
            commit.flushing_ns,
            commit.logging_ns,
            commit.end_ns,
        ];
        assert!(phases[1..].is_sorted() && phases[0] > sync.enter_ns, "{commit:?}");
        assert!(commit.handles > 0 && commit.blocks > 0 && commit.blocks_logged > 0);
    }

    let handles: u32 = rows::<JournalHandle>(&reader)
        .iter()
        .filter(|handle| handle.dev == dev)
        .map(|handle| handle.count)
        .sum();
    assert!(handles >= 80, "two handles a file at least: {handles}");
    let flushes: Vec<BlockRequest> = rows::<BlockRequest>(&reader)
        .into_iter()
        .filter(|request| request.dev == dev && request.kind == RequestKind::Flush)
        .collect();
    assert!(flushes.len() >= 80, "two a commit: {}", flushes.len());
    assert!(flushes.iter().all(|flush| flush.complete_ns - flush.issue_ns >= FLUSH_NS));
    for direction in [DataDirection::Dirtied, DataDirection::WrittenBySync] {
        let bytes: u64 = rows::<FileData>(&reader)
            .iter()
            .filter(|data| data.dev == dev && data.direction == direction)
            .map(|data| data.bytes)
            .sum();
        assert_eq!(bytes, 40 * 4096, "a page each: {direction}");
    }
}

/// The scheduler's own counts tell the end of a sleep from the wait for a processor after it.
#[test]
fn a_sleep_is_told_from_waiting_for_the_processor_after_it() {
    // The scheduler's clock and the timer's may run apart by less than one in a hundred of 2 ms.
    const ASKED_NS: u64 = 1_980_000;
    let Some(bench) = RecordedDisk::new("sleeps") else {
        return;
    };
    // The sleeper shares its processor with two that never rest.
    let script = "exec taskset -c 0 sh -c 'yes >/dev/null & a=$!; yes >/dev/null & b=$!; \
                  i=0; while [ $i -lt 50 ]; do sleep 0.002; i=$((i+1)); done; kill $a $b'";
    let reader = record(&bench, "trace", &[], script);
    let sleeps: Vec<OffCpuWait> = rows::<OffCpuWait>(&reader)
        .into_iter()
        .filter(|wait| wait.cause == WaitCause::Sleep && wait.on_ns - wait.off_ns >= ASKED_NS)
        .collect();
    // Two may be shorter, or none: who loses the processor in the microsecond after setting the timer sleeps less.
    assert!(sleeps.len() >= 48, "{}", sleeps.len());
    let told: Vec<&OffCpuWait> =
        sleeps.iter().filter(|sleep| sleep.woken_ns - sleep.off_ns >= ASKED_NS).collect();
    assert!(told.len() >= 48, "{sleeps:?}");
    let runnable_ns: u64 = told.iter().map(|sleep| sleep.on_ns - sleep.woken_ns).sum();
    assert!(runnable_ns > 0);
}

#[test]
fn waits_cover_the_fsyncs_and_have_their_causes() {
    let Some(bench) = RecordedDisk::new("waits") else {
        return;
    };
    let luc = env!("CARGO_BIN_EXE_luc");
    let script = format!(
        "{luc} bench metarates --dir {} --threads 16 --seconds 2 --file-size 1k >/dev/null",
        bench.mount()
    );
    let reader = record(&bench, "trace", &[], &script);
    let mut waits: BTreeMap<u32, Vec<OffCpuWait>> = BTreeMap::new();
    let mut causes = BTreeSet::new();
    for wait in rows::<OffCpuWait>(&reader) {
        assert!(wait.off_ns <= wait.on_ns, "{wait:?}");
        assert!(
            wait.woken_ns == 0 || (wait.off_ns..=wait.on_ns).contains(&wait.woken_ns),
            "{wait:?}"
        );
        causes.insert(wait.cause);
        waits.entry(wait.thread.0).or_default().push(wait);
    }
    for cause in [WaitCause::CommitWait, WaitCause::DataWriteback, WaitCause::Device] {
        assert!(causes.contains(&cause), "{cause}: {causes:?}");
    }
    // Creating in one directory beside commits: a lock, or a buffer that a commit is writing.
    assert!(
        causes.contains(&WaitCause::DirectoryLock) || causes.contains(&WaitCause::ShadowBuffer),
        "{causes:?}"
    );
    let (mut all_ns, mut waited_ns) = (0, 0);
    let syncs: Vec<FsyncCall> = rows(&reader);
    for sync in &syncs {
        all_ns += sync.exit_ns - sync.enter_ns;
        let inside = waits[&sync.thread.0]
            .iter()
            .filter(|wait| wait.off_ns >= sync.enter_ns && wait.on_ns <= sync.exit_ns);
        waited_ns += inside.map(|wait| wait.on_ns - wait.off_ns).sum::<u64>();
    }
    assert!(syncs.len() > 100);
    assert!(waited_ns <= all_ns && waited_ns * 100 >= all_ns * 98, "{waited_ns} of {all_ns} ns");
    let named: BTreeSet<u32> = rows::<ThreadInfo>(&reader)
        .iter()
        .filter(|task| !task.comm.is_empty())
        .map(|task| task.thread.0)
        .collect();
    assert!(waits.keys().all(|thread| named.contains(thread)));
}

/// A private instance of the kernel's own tracing, removed when dropped.
struct Tracefs {
    instance: PathBuf,
    /// A mount that is nowhere in the tree: it goes with the process, however that ends.
    _mount: OwnedFd,
}

impl Tracefs {
    fn new() -> Option<Self> {
        let mount = match mount_tracefs() {
            Ok(mount) => mount,
            Err(error) => {
                luc_testkit::skipped!("this kernel has no tracefs: {error}");
                return None;
            }
        };
        let root = format!("/proc/self/fd/{}", mount.as_raw_fd());
        let path =
            Path::new(&root).join("instances").join(format!("luc-test-{}", std::process::id()));
        fs::create_dir(&path).expect("an instance");
        let instance = Self { instance: path, _mount: mount };
        instance.write("trace_clock", "mono");
        for event in ["jbd2_start_commit", "jbd2_end_commit"] {
            instance.write(&format!("events/jbd2/{event}/enable"), "1");
        }
        Some(instance)
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.instance.join(file), text).expect("tracefs takes it");
    }

    /// Start and end of each commit on `dev`, in nanoseconds, by transaction.
    fn commits(&self, dev: Dev) -> BTreeMap<u32, (u64, u64)> {
        let text = fs::read_to_string(self.instance.join("trace")).expect("readable");
        let device = format!("dev {},{} ", dev.major(), dev.minor());
        let mut found = BTreeMap::<u32, (u64, u64)>::new();
        for line in text.lines().filter(|line| line.contains(&device)) {
            let number = |word: &str| {
                let rest = line.split(word).nth(1)?;
                rest.split_whitespace().next()?.parse::<u32>().ok()
            };
            let Some(transaction) = number("transaction ") else {
                continue;
            };
            let time = line
                .split_whitespace()
                .find_map(|field| field.strip_suffix(':')?.parse::<f64>().ok())
                .expect("a time");
            let time_ns = (time * 1e9) as u64;
            let entry = found.entry(transaction).or_default();
            if line.contains("jbd2_start_commit") {
                entry.0 = time_ns;
            } else {
                entry.1 = time_ns;
            }
        }
        found
    }
}

fn mount_tracefs() -> io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let flags = FsMountFlags::FSMOUNT_CLOEXEC;
    Ok(fsmount(&context, flags, MountAttrFlags::empty())?)
}

impl Drop for Tracefs {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.instance);
    }
}

#[test]
fn commits_are_those_that_the_kernel_traces_itself() {
    let Some(bench) = RecordedDisk::new("tracefs") else {
        return;
    };
    let Some(tracefs) = Tracefs::new() else {
        return;
    };
    let reader = record(&bench, "trace", &[], &bench.syncs(30));
    let dev = common::dev(&bench, &reader);
    let truth = tracefs.commits(dev);
    let commits: Vec<JournalCommit> =
        rows::<JournalCommit>(&reader).into_iter().filter(|commit| commit.dev == dev).collect();
    assert!(commits.len() >= 30, "{}", commits.len());
    for commit in commits {
        let (start_ns, end_ns) = truth[&commit.transaction.0];
        // tracefs prints microseconds.
        for (ours, theirs) in [(commit.start_ns, start_ns), (commit.end_ns, end_ns)] {
            assert!(ours.abs_diff(theirs) < 100_000, "{commit:?} {theirs}");
        }
        let (ours, theirs) = (commit.end_ns - commit.start_ns, end_ns - start_ns);
        assert!(ours.abs_diff(theirs) < 100_000, "{ours} {theirs}");
    }
}

/// Callers that come during a fast commit, and are served by it, neither shorten it nor hide it.
#[test]
fn fast_commits_are_recorded_whole() {
    let Some(bench) = RecordedDisk::with("fast", "-O fast_commit") else {
        return;
    };
    let script = format!(
        "{LUC} bench metarates --dir {} --threads 8 --seconds 2 --file-size 1k >/dev/null",
        bench.mount()
    );
    let reader = record(&bench, "trace", &[], &script);
    let dev = common::dev(&bench, &reader);
    let mut fast = rows::<JournalCommit>(&reader);
    fast.retain(|commit| commit.dev == dev && commit.kind == CommitKind::Fast);
    fast.sort_by_key(|commit| commit.end_ns);
    assert!(fast.len() >= 10, "{fast:?}");
    // The last block's write flushes the disk before and after it.
    for commit in &fast {
        assert!(commit.end_ns - commit.start_ns >= 2 * FLUSH_NS, "{commit:?}");
    }
    for pair in fast.windows(2) {
        assert!(pair[0].end_ns <= pair[1].start_ns, "one at a time: {pair:?}");
    }
}

#[test]
fn only_what_passes_the_filter_is_recorded() {
    let Some(bench) = RecordedDisk::new("filter") else {
        return;
    };
    let mut stranger = Command::new("sh")
        .args(["-c", &format!("while true; do {}; done", bench.syncs(5))])
        .spawn()
        .expect("sh runs");
    let reader = record(&bench, "tree", &[], &bench.syncs(10));
    let other = record(&bench, "comm", &["--all", "--comm", "no-such-name"], "sleep 0.3");
    let all = record(&bench, "all", &["--all"], "sleep 0.3");
    stranger.kill().expect("killed");
    stranger.wait().expect("reaped");

    assert_eq!(rows::<FsyncCall>(&reader).len(), 10);
    assert_eq!(reader.trace().filters, "command");
    let dev = common::dev(&bench, &reader);
    let processes: BTreeSet<u32> =
        rows::<FsyncCall>(&reader).iter().map(|sync| sync.process.0).collect();
    assert!(
        rows::<JournalHandle>(&reader)
            .iter()
            .any(|handle| handle.dev == dev && !processes.contains(&handle.process.0)),
        "the stranger's handles are there, as others wait for them"
    );
    assert_eq!(rows::<FsyncCall>(&other), []);
    assert!(!rows::<JournalCommit>(&other).is_empty());
    assert!(!rows::<FsyncCall>(&all).is_empty());
}

#[test]
fn the_summary_counts_what_the_events_list() {
    let Some(bench) = RecordedDisk::new("summary") else {
        return;
    };
    let reader = record(&bench, "trace", &["--summary"], &bench.syncs(20));
    let dev = common::dev(&bench, &reader);
    let mut counts = BTreeMap::<SummarizedKind, u64>::new();
    for row in rows::<SummaryCount>(&reader) {
        if row.dev == dev {
            *counts.entry(row.what).or_default() += row.count;
            assert!(
                row.total_ns >= row.count << row.log2_ns
                    && row.total_ns < row.count << (row.log2_ns + 1),
                "{row:?}"
            );
        }
    }
    assert_eq!(counts[&SummarizedKind::Sync], 20);
    assert!(counts[&SummarizedKind::Commit] >= 20);
    assert!(counts[&SummarizedKind::Flush] >= 40);
    assert!(counts[&SummarizedKind::Wait] >= 20);
    assert_eq!(rows::<FsyncCall>(&reader), []);
}
