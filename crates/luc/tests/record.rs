//! `luc record` end to end: what is recorded of known work on an emulated disk is compared with what was done
//! and with what the kernel's own tracing says. Needs root, FUSE, loop devices and BTF; skipped, with the
//! reason, where they are missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use luc_events::codes::{CommitKind, Direction, RequestKind, Summarized, SyncKind};
use luc_events::store::Reader;
use luc_events::tables::{
    Commit, Data, FileSystem, Handle, Lost, Request, Row, Summary, Sync, Task, Wait,
};
use luc_events::{Cause, Dev};

/// The emulated disk's flush.
const FLUSH_NS: u64 = 6_000_000;

/// Tests take turns: each wants the machine's two processors for itself.
static TURN: Mutex<()> = Mutex::new(());

/// An emulated disk with ext4, and a folder for traces; all gone when dropped.
struct Bench {
    root: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Bench {
    /// `None`, and a line that says why, where this cannot be had.
    fn new(test: &str) -> Option<Self> {
        for device in ["/dev/fuse", "/dev/loop-control"] {
            if let Err(error) = fs::File::options().read(true).write(true).open(device) {
                println!("skipped: {device}: {error}");
                return None;
            }
        }
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let root = std::env::temp_dir().join(format!("luc-record-{test}-{}", std::process::id()));
        fs::create_dir_all(root.join("mnt")).expect("made");
        let bench = Self { root, _turn: turn };
        let probe = bench.luc(&["record", "-q", "--out", &bench.path("probe"), "--", "true"]);
        if !probe.status.success() {
            println!("skipped: {}", String::from_utf8_lossy(&probe.stderr).trim());
            return None;
        }
        let mount = bench.path("mnt");
        let made = bench.luc(&[
            "disk", "create", "rec", "--flush", "6ms", "--write", "20us", "--size", "256M",
            "--mkfs", "ext4", "--mount", &mount,
        ]);
        assert!(made.status.success(), "{made:?}");
        Some(bench)
    }

    fn path(&self, name: &str) -> String {
        self.root.join(name).display().to_string()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_luc"));
        command.args(arguments).env("LUC_RUN_DIR", &self.root);
        command
    }

    fn luc(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("luc runs")
    }

    /// Records a shell script with `options`, and opens the trace.
    fn record(&self, trace: &str, options: &[&str], script: &str) -> Reader {
        let out = self.path(trace);
        let mut arguments = vec!["record", "--out", &out];
        arguments.extend(options);
        arguments.extend(["--", "sh", "-c", script]);
        let output = self.luc(&arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        let reader = Reader::open(Path::new(&out)).expect("a readable trace");
        assert_eq!(rows::<Lost>(&reader), [], "{said}");
        reader
    }

    /// The disk's device number, from the trace that saw it mounted.
    fn dev(&self, reader: &Reader) -> Dev {
        let mount = self.path("mnt");
        let found = rows::<FileSystem>(reader)
            .into_iter()
            .find(|row| row.mount_point == mount)
            .expect("the mounted file system is in the trace");
        assert_eq!(found.kind, "ext4");
        assert!(found.journal_blocks > 0 && !found.fast_commit, "{found:?}");
        found.dev
    }

    /// A script that creates, writes and fsyncs `count` files one after the other.
    fn syncs(&self, count: u32) -> String {
        format!(
            "cd {}; for i in $(seq {count}); do \
             dd if=/dev/zero of=f$i bs=1k count=1 conv=fsync 2>/dev/null; done",
            self.path("mnt")
        )
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.luc(&["disk", "remove", "rec"]);
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn rows<T: Row>(reader: &Reader) -> Vec<T> {
    reader
        .rows::<T>()
        .expect("the table can be read")
        .map(|row| row.expect("a whole row"))
        .collect()
}

#[test]
fn every_fsync_is_recorded_with_its_commit() {
    let Some(bench) = Bench::new("fsyncs") else {
        return;
    };
    let reader = bench.record("trace", &[], &bench.syncs(40));
    let dev = bench.dev(&reader);

    let syncs: Vec<Sync> = rows(&reader);
    assert_eq!(syncs.len(), 40);
    let commits: BTreeMap<u32, Commit> = rows::<Commit>(&reader)
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
        assert!(
            phases[1..].is_sorted() && phases[0] > sync.enter_ns,
            "{commit:?}"
        );
        assert!(commit.handles > 0 && commit.blocks > 0 && commit.blocks_logged > 0);
    }

    let handles: u32 = rows::<Handle>(&reader)
        .iter()
        .filter(|handle| handle.dev == dev)
        .map(|handle| handle.count)
        .sum();
    assert!(handles >= 80, "two handles a file at least: {handles}");
    let flushes: Vec<Request> = rows::<Request>(&reader)
        .into_iter()
        .filter(|request| request.dev == dev && request.kind == RequestKind::Flush)
        .collect();
    assert!(flushes.len() >= 80, "two a commit: {}", flushes.len());
    assert!(
        flushes
            .iter()
            .all(|flush| flush.complete_ns - flush.issue_ns >= FLUSH_NS)
    );
    for direction in [Direction::Dirtied, Direction::WrittenBySync] {
        let bytes: u64 = rows::<Data>(&reader)
            .iter()
            .filter(|data| data.dev == dev && data.direction == direction)
            .map(|data| data.bytes)
            .sum();
        assert_eq!(bytes, 40 * 4096, "a page each: {direction}");
    }
}

#[test]
fn waits_cover_the_fsyncs_and_have_their_causes() {
    let Some(bench) = Bench::new("waits") else {
        return;
    };
    let luc = env!("CARGO_BIN_EXE_luc");
    let script = format!(
        "{luc} bench metarates --dir {} --threads 16 --seconds 2 --file-size 1k >/dev/null",
        bench.path("mnt")
    );
    let reader = bench.record("trace", &[], &script);
    let mut waits: BTreeMap<u32, Vec<Wait>> = BTreeMap::new();
    let mut causes = BTreeSet::new();
    for wait in rows::<Wait>(&reader) {
        assert!(wait.off_ns <= wait.on_ns, "{wait:?}");
        assert!(
            wait.woken_ns == 0 || (wait.off_ns..=wait.on_ns).contains(&wait.woken_ns),
            "{wait:?}"
        );
        causes.insert(wait.cause);
        waits.entry(wait.thread.0).or_default().push(wait);
    }
    for cause in [Cause::CommitWait, Cause::DataWriteback, Cause::Device] {
        assert!(causes.contains(&cause), "{cause}: {causes:?}");
    }
    // Creating in one directory beside commits: a lock, or a buffer that a commit is writing.
    assert!(
        causes.contains(&Cause::DirectoryLock) || causes.contains(&Cause::ShadowBuffer),
        "{causes:?}"
    );
    let (mut all_ns, mut waited_ns) = (0, 0);
    let syncs: Vec<Sync> = rows(&reader);
    for sync in &syncs {
        all_ns += sync.exit_ns - sync.enter_ns;
        let inside = waits[&sync.thread.0]
            .iter()
            .filter(|wait| wait.off_ns >= sync.enter_ns && wait.on_ns <= sync.exit_ns);
        waited_ns += inside.map(|wait| wait.on_ns - wait.off_ns).sum::<u64>();
    }
    assert!(syncs.len() > 100);
    assert!(
        waited_ns <= all_ns && waited_ns * 100 >= all_ns * 98,
        "{waited_ns} of {all_ns} ns"
    );
    let named: BTreeSet<u32> = rows::<Task>(&reader)
        .iter()
        .filter(|task| !task.comm.is_empty())
        .map(|task| task.thread.0)
        .collect();
    assert!(waits.keys().all(|thread| named.contains(thread)));
}

/// A private instance of the kernel's own tracing, removed when dropped.
struct Tracefs(PathBuf);

impl Tracefs {
    fn new() -> Option<Self> {
        let root = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"]
            .into_iter()
            .map(Path::new)
            .find(|path| path.join("instances").exists());
        let Some(root) = root else {
            println!("skipped: tracefs is not mounted on /sys/kernel/tracing");
            return None;
        };
        let path = root
            .join("instances")
            .join(format!("luc-test-{}", std::process::id()));
        if let Err(error) = fs::create_dir(&path) {
            println!("skipped: {}: {error}", path.display());
            return None;
        }
        let instance = Self(path);
        instance.write("trace_clock", "mono");
        for event in ["jbd2_start_commit", "jbd2_end_commit"] {
            instance.write(&format!("events/jbd2/{event}/enable"), "1");
        }
        Some(instance)
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.0.join(file), text).expect("tracefs takes it");
    }

    /// Start and end of each commit on `dev`, in nanoseconds, by transaction.
    fn commits(&self, dev: Dev) -> BTreeMap<u32, (u64, u64)> {
        let text = fs::read_to_string(self.0.join("trace")).expect("readable");
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

impl Drop for Tracefs {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn commits_are_those_that_the_kernel_traces_itself() {
    let Some(bench) = Bench::new("tracefs") else {
        return;
    };
    let Some(tracefs) = Tracefs::new() else {
        return;
    };
    let reader = bench.record("trace", &[], &bench.syncs(30));
    let dev = bench.dev(&reader);
    let truth = tracefs.commits(dev);
    let commits: Vec<Commit> = rows::<Commit>(&reader)
        .into_iter()
        .filter(|commit| commit.dev == dev)
        .collect();
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

#[test]
fn only_what_passes_the_filter_is_recorded() {
    let Some(bench) = Bench::new("filter") else {
        return;
    };
    let mut stranger = Command::new("sh")
        .args(["-c", &format!("while true; do {}; done", bench.syncs(5))])
        .spawn()
        .expect("sh runs");
    let reader = bench.record("tree", &[], &bench.syncs(10));
    let other = bench.record("comm", &["--all", "--comm", "no-such-name"], "sleep 0.3");
    let all = bench.record("all", &["--all"], "sleep 0.3");
    stranger.kill().expect("killed");
    stranger.wait().expect("reaped");

    assert_eq!(rows::<Sync>(&reader).len(), 10);
    assert_eq!(reader.trace().filters, "command");
    let dev = bench.dev(&reader);
    let processes: BTreeSet<u32> = rows::<Sync>(&reader)
        .iter()
        .map(|sync| sync.process.0)
        .collect();
    assert!(
        rows::<Handle>(&reader)
            .iter()
            .any(|handle| handle.dev == dev && !processes.contains(&handle.process.0)),
        "the stranger's handles are there, as others wait for them"
    );
    assert_eq!(rows::<Sync>(&other), []);
    assert!(!rows::<Commit>(&other).is_empty());
    assert!(!rows::<Sync>(&all).is_empty());
}

#[test]
fn the_summary_counts_what_the_events_list() {
    let Some(bench) = Bench::new("summary") else {
        return;
    };
    let reader = bench.record("trace", &["--summary"], &bench.syncs(20));
    let dev = bench.dev(&reader);
    let mut counts = BTreeMap::<Summarized, u64>::new();
    for row in rows::<Summary>(&reader) {
        if row.dev == dev {
            *counts.entry(row.what).or_default() += row.count;
            assert!(
                row.total_ns >= row.count << row.log2_ns
                    && row.total_ns < row.count << (row.log2_ns + 1),
                "{row:?}"
            );
        }
    }
    assert_eq!(counts[&Summarized::Sync], 20);
    assert!(counts[&Summarized::Commit] >= 20);
    assert!(counts[&Summarized::Flush] >= 40);
    assert!(counts[&Summarized::Wait] >= 20);
    assert_eq!(rows::<Sync>(&reader), []);
}

/// Waits until `ready`, for ten seconds at most.
fn until(what: &str, mut ready: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !ready() {
        assert!(begin.elapsed() < Duration::from_secs(10), "{what}");
        sleep(Duration::from_millis(20));
    }
}

/// Starts a recording of everything in the background, and waits until it records.
fn in_background(bench: &Bench, out: &str) -> Child {
    let child = bench
        .command(&["record", "--out", out])
        .stderr(Stdio::piped())
        .spawn()
        .expect("luc runs");
    until("recording begins", || programs_of(child.id()) > 0);
    child
}

/// BPF programs that process `id` holds, by its open files.
fn programs_of(id: u32) -> usize {
    let Ok(files) = fs::read_dir(format!("/proc/{id}/fd")) else {
        return 0;
    };
    files
        .flatten()
        .filter(|file| {
            fs::read_link(file.path()).is_ok_and(|target| target.ends_with("anon_inode:bpf_link"))
        })
        .count()
}

#[test]
fn ctrl_c_ends_a_recording() {
    let Some(bench) = Bench::new("interrupt") else {
        return;
    };
    let out = bench.path("trace");
    let child = in_background(&bench, &out);
    let script = bench.syncs(5);
    let worked = Command::new("sh").args(["-c", &script]).status();
    assert!(worked.expect("sh runs").success());
    signal(&child, "INT");
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("recorded in"), "{said}");
    let reader = Reader::open(Path::new(&out)).expect("a readable trace");
    assert!(reader.trace().end_ns > reader.trace().start_ns);
    let dev = bench.dev(&reader);
    let syncs = rows::<Sync>(&reader);
    assert_eq!(syncs.iter().filter(|sync| sync.dev == dev).count(), 5);
}

#[test]
fn a_killed_recorder_leaves_a_readable_trace_and_nothing_else() {
    let Some(bench) = Bench::new("killed") else {
        return;
    };
    let out = bench.path("trace");
    let mut child = in_background(&bench, &out);
    let script = bench.syncs(5);
    let worked = Command::new("sh").args(["-c", &script]).status();
    assert!(worked.expect("sh runs").success());
    until("rows are written", || {
        fs::read_dir(&out).is_ok_and(|files| {
            files
                .flatten()
                .any(|file| file.file_name().to_string_lossy().starts_with("sync-"))
        })
    });
    child.kill().expect("killed");
    child.wait().expect("reaped");
    let reader = Reader::open(Path::new(&out)).expect("a readable trace");
    assert_eq!(reader.trace().end_ns, 0);
    assert!(rows::<Sync>(&reader).len() >= 5);
    assert_eq!(programs_left(), 0, "the kernel has taken the programs back");
}

/// Programs of the recorder that are loaded in the kernel, by anyone.
fn programs_left() -> usize {
    let mut left = 0;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(5) {
        left = libbpf_rs::query::ProgInfoIter::default()
            .filter(|program| program.name.to_string_lossy() == "jbd2_end_commit")
            .count();
        if left == 0 {
            break;
        }
        sleep(Duration::from_millis(50));
    }
    left
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill")
        .args([format!("-{name}"), child.id().to_string()])
        .status();
    assert!(sent.expect("kill runs").success());
}

#[test]
fn the_exit_status_is_the_command_s() {
    let Some(bench) = Bench::new("status") else {
        return;
    };
    let out = bench.path("trace");
    let output = bench.luc(&["record", "-q", "--out", &out, "--", "sh", "-c", "exit 7"]);
    assert_eq!(output.status.code(), Some(7));
    let again = bench.luc(&["record", "-q", "--out", &out, "--", "true"]);
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert_eq!(again.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn without_privileges_one_line_says_so() {
    let capable = fs::read_to_string("/proc/self/status").is_ok_and(|status| {
        status
            .lines()
            .any(|line| line.starts_with("CapEff:") && !line.ends_with("0000000000000000"))
    });
    let mut command = Command::new("setpriv");
    if capable {
        command.args(["--bounding-set=-all", "--inh-caps=-all", "--"]);
    }
    let output = command
        .arg(env!("CARGO_BIN_EXE_luc"))
        .args(["record", "--out", "/nonexistent/trace", "--", "true"])
        .output()
        .expect("setpriv runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("needs root"), "{said}");
}
