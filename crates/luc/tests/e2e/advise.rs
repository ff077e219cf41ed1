//! `luc advise` from end to end: refusals that make nothing, advice on emulated disks, and a recorded program as the
//! workload. Disks need root and FUSE, recording needs BTF; what lacks them says `skipped`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::common::{
    LUC, RecordedDisk, as_nobody, can_make_disks, is_root, refusal, rows, stderr, stdout, until,
    without_mkfs, without_privileges,
};
use luc_events::event_kinds::FileCallKind;
use luc_events::store::{TraceReader, TraceWriter};
use luc_events::tables::{FileCall, FsyncCall, TraceDescription};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Four candidates; short runs.
const QUICK: &[&str] = &[
    "--workload",
    "metarates",
    "--seconds",
    "1",
    "--threads",
    "2",
    "--set",
    "warmup=0",
    "--only",
    "ext4,xfs",
    "--options",
    "default,noatime",
    "--rounds",
    "3",
    "--idle",
    "0",
    "--disk-size",
    "512M",
    "--out",
    "out",
];

/// A folder to work in, with a place of its own for disks.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: TempDir::new().expect("a folder") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(LUC);
        command
            .arg("advise")
            .args(arguments)
            .current_dir(self.folder.path())
            .env("LUC_RUN_DIR", self.path("run"))
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("luc runs")
    }

    /// Nothing is left but the results.
    fn assert_clear(&self) {
        let disks = fs::read_dir(self.path("run/disk"));
        assert!(!disks.is_ok_and(|mut disks| disks.next().is_some()));
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("readable");
        assert!(!mounts.contains(&self.folder.path().display().to_string()), "{mounts}");
        assert!(!self.path("out/work").exists());
    }
}

/// Whether this machine makes these file systems.
fn has(file_systems: &[&str]) -> bool {
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let there = file_systems.iter().all(|name| known.split_whitespace().any(|word| word == *name));
    if !there {
        luc_testkit::skipped!("this kernel lacks one of {}", file_systems.join(", "));
    }
    there
}

#[test]
fn bad_requests_make_nothing() {
    let place = Place::new();
    let empty = place.path("empty.trace");
    let writer = TraceWriter::create(&empty, TraceDescription::default()).expect("begun");
    writer.finish(TraceDescription::default()).expect("finished");
    fs::create_dir(place.path("folder")).expect("made");
    fs::write(place.path("bad.f"), "define fileset nam=x\n").expect("written");
    for (arguments, words) in [
        (&["--workload", "varmial"][..], &["varmial", "did you mean 'varmail'"][..]),
        (&["--workload", "bad.f"], &["bad.f:1:", "nam"]),
        (&["--workload", "empty.trace"], &["empty.trace", "--no-calls"]),
        (&["--workload", "folder"], &["folder", "no trace is here"]),
        (&["--workload", "varmail", "--only", "ext5"], &["ext5", "'ext"]),
        (&["--workload", "varmail", "--options", "fastcommit"], &["'fast-commit'"]),
        (&["--workload", "varmail", "--disk", "hhd"], &["hhd", "'hdd'"]),
        (&["--workload", "varmail", "--disk-size", "64M"], &["--disk-size 64M"]),
        (&["--workload", "varmail", "--disk-size", "lots"], &["--disk-size", "lots"]),
        (&["--workload", "varmail", "--set", "warmpu=1s"], &["'warmpu'", "'warmup'"]),
        (&["--workload", "varmail", "--only", "ext4", "--options", "default"], &["two candidates"]),
        (&["--workload", "varmail", "--on", "nowhere"], &["nowhere"]),
        (&["--workload", "varmail", "--rounds", "2"], &["--rounds 2"]),
        (&["--workload", "varmail", "--goal", "0"], &["--goal 0"]),
        (&["--workload", "initial-write", "--seconds", "1"], &["rounds"]),
    ] {
        let message = refusal(&place.run(arguments));
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    }
    for left in ["run", "varmail.advice", "initial-write.advice"] {
        assert!(!place.path(left).exists(), "{left}");
    }
}

#[test]
fn missing_root_or_mkfs_makes_nothing() {
    let place = Place::new();
    let out = place.path("out").display().to_string();
    if !is_root() {
        let message =
            refusal(&without_privileges(&["advise", "--workload", "varmail", "--out", &out]));
        assert!(message.contains("need root"), "{message}");
        return;
    }
    if !has(&["xfs"]) {
        return;
    }
    let mut command = without_mkfs();
    command.args(["advise", "--workload", "varmail"]);
    command.args(["--only", "xfs", "--out", &out]);
    let message = refusal(&command.output().expect("unshare runs"));
    assert!(message.contains("mkfs.xfs") && message.contains("install xfsprogs"), "{message}");
    let mut command = as_nobody(place.folder.path());
    command.args(["advise", "--workload", "varmail", "--out", &out]);
    let message = refusal(&command.output().expect("setpriv runs"));
    assert!(message.contains("need root"), "{message}");
    assert!(!Path::new(&out).exists());
}

#[test]
fn advice_on_disks_goes_on_without_what_cannot_be_made() {
    if !can_make_disks() || !has(&["ext4", "xfs"]) {
        return;
    }
    let place = Place::new();
    // An mkfs.xfs that knows no XFS.
    fs::create_dir(place.path("bin")).expect("made");
    let broken = place.path("bin/mkfs.xfs");
    fs::write(&broken, "#!/bin/sh\necho no such thing >&2\nexit 1\n").expect("written");
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).expect("executable");
    // Root takes tools of the system from fixed folders.
    let script = "mount --bind \"$0\" \"$(command -v mkfs.xfs)\" && exec \"$@\"";
    let advise = place.command(QUICK);
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script])
        .arg(&broken)
        .arg(advise.get_program())
        .args(advise.get_args())
        .arg("--json")
        .current_dir(place.folder.path())
        .env("LUC_RUN_DIR", place.path("run"))
        .output()
        .expect("unshare runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let answer: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let selection = &answer["selection"];
    let candidates = selection["candidates"].as_array().expect("candidates");
    assert_eq!(candidates.len(), 4);
    let rate = &selection["rate"];
    assert_eq!(rate["unjudged"], serde_json::json!([2, 3]));
    assert_eq!(rate["comparisons"].as_array().map(Vec::len), Some(1));
    for figure in rate["figures"].as_array().expect("figures").iter().take(2) {
        assert_eq!(
            (&figure["rounds"], &figure["bounds"]),
            (&Value::from(3), &Value::from("range"))
        );
    }
    assert_eq!(answer["repeats"], 6);
    let commands = answer["by_rate"]["commands"].as_array().expect("commands");
    assert_eq!(commands[0], "mkfs.ext4 DEVICE");
    let not_tried = answer["not_tried"].as_array().expect("reasons");
    let failed =
        |one: &&Value| one["why"].as_str().is_some_and(|why| why.contains("no such thing"));
    assert_eq!(not_tried.iter().filter(failed).count(), 2, "{not_tried:?}");
    place.assert_clear();
    // All is there: the same command measures nothing more.
    let csv = place.command(QUICK).arg("--csv").output().expect("luc runs");
    let csv = stdout(&csv);
    assert_eq!(csv.lines().count(), 1 + 4, "{csv}");
    assert!(csv.contains("rate,ext4,default,true,false,3,"), "{csv}");
    let text = stdout(&place.run(QUICK));
    for part in [
        "workload: luc bench metarates",
        "place: emulated disk ssd of 512M",
        "advice: ext4",
        "not tried: xfs",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn interrupted_it_clears_up_and_goes_on() {
    if !can_make_disks() || !has(&["ext4"]) {
        return;
    }
    let place = Place::new();
    let mut arguments = QUICK.to_vec();
    arguments[9] = "ext4";
    let mut child = place
        .command(&arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("luc starts");
    let lines = || {
        fs::read_to_string(place.path("out/results.jsonl")).map_or(0, |text| text.lines().count())
    };
    until("a finished run", || lines() >= 2);
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::INT).expect("signalled");
    assert_eq!(child.wait().expect("waited for").code(), Some(130));
    place.assert_clear();
    let before = lines();
    let output = place.command(&arguments).arg("--json").output().expect("luc runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let answer: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!((&answer["repeats"], &answer["unfinished"]), (&Value::from(6), &Value::from(false)));
    assert!(before < 7, "it was over before it was interrupted");
    place.assert_clear();
}

#[test]
fn directories_are_compared_without_root() {
    let place = Place::new();
    for name in ["a", "b"] {
        fs::create_dir(place.path(name)).expect("made");
    }
    let arguments = [
        "--workload",
        "filemicro_createrand",
        "--set",
        "nfiles=20",
        "--seconds",
        "0.1",
        "--on",
        "a",
        "--on",
        "b",
        "--rounds",
        "3",
        "--goal",
        "50",
        "--idle",
        "0",
        "--out",
        "out",
        "--json",
    ];
    let output = place.run(&arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let answer: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(answer["unit"], "operations/s");
    assert_eq!(answer["selection"]["candidates"][0]["file_system"], "directory");
    for name in ["a", "b"] {
        assert_eq!(fs::read_dir(place.path(name)).expect("listed").count(), 0);
    }
    place.assert_clear();
}

/// Shares of creations, syncs and removals among all three.
fn shares(counts: [f64; 3]) -> [f64; 3] {
    let all: f64 = counts.iter().sum();
    counts.map(|count| count / all)
}

#[test]
fn a_recorded_program_is_run_with_its_shares() {
    let Some(bench) = RecordedDisk::new("advise") else {
        return;
    };
    let trace = bench.path("trace");
    // 12 KiB and a sync to each file; all but the last few are removed.
    let script = format!(
        "cd {}; for i in $(seq 60); do dd if=/dev/zero of=f$i bs=4k count=3 conv=fsync 2>/dev/null; rm -f f$((i - 3)); \
         done",
        bench.mount()
    );
    let recorded = bench.luc(&["record", "-q", "--out", &trace, "--", "sh", "-c", &script]);
    assert!(recorded.status.success(), "{}", stderr(&recorded));
    let reader = TraceReader::open(Path::new(&trace)).expect("a trace");
    let calls: Vec<FileCall> = rows(&reader);
    let of = |kind: FileCallKind| {
        calls.iter().filter(|call| call.kind == kind && call.errno == 0).count() as f64
    };
    let syncs = rows::<FsyncCall>(&reader).len() as f64;
    let wanted = shares([of(FileCallKind::Create), syncs, of(FileCallKind::Unlink)]);

    let shown = bench.luc(&["advise", "--workload", &trace, "--show-workload"]);
    assert!(shown.status.success(), "{}", stderr(&shown));
    let file = bench.path("derived.f");
    fs::write(&file, shown.stdout).expect("written");
    let mount = bench.mount();
    let run = [
        "bench",
        "filebench",
        &file,
        "--dir",
        &mount,
        "--seconds",
        "2",
        "--set",
        "think=0",
        "--json",
    ];
    let run = bench.luc(&run);
    assert!(run.status.success(), "{}", stderr(&run));
    let report: Value = serde_json::from_str(&stdout(&run)).expect("JSON");
    let count = |end: &str| -> f64 {
        let operations = report["operations"].as_array().expect("operations").iter();
        let ours = operations
            .filter(|one| one["operation"].as_str().is_some_and(|name| name.ends_with(end)));
        ours.filter_map(|one| one["count"].as_f64()).sum()
    };
    let found = shares([count("create"), count("newsync") + count("oldsync"), count("delete")]);
    for (wanted, found) in wanted.iter().zip(found) {
        assert!((wanted - found).abs() < 0.05, "recorded {wanted}, run {found}: {report}");
    }
    // Most writes have no row: they are known by what they made dirty.
    let moved = report["moved"].as_array().expect("moved").iter();
    let bytes: f64 = moved.filter_map(|one| one["bytes"].as_f64()).sum();
    let per_file = bytes / count("create");
    assert!((per_file / 12_288.0 - 1.0).abs() < 0.1, "{per_file}: {report}");
}
