//! `luc sweep` from end to end: refusals that make nothing, a whole sweep on tiny emulated disks, and sweeps that are
//! killed and go on. Disks need root and FUSE; what lacks them says `skipped`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::common::{
    LUC, as_nobody, can_make_disks, compiled_statically, is_root, refusal, stderr, stdout, until,
    without_mkfs, without_privileges,
};
use serde_json::Value;
use tempfile::TempDir;

/// Two targets and two numbers of threads; every point six times, no more.
const PLAN: &str = r#"
threads = [1, 2]
settle = "1ms"
[stop]
goal = 0.0001
min = 6
max = 6
[disk]
size = "64M"
flush = "1ms"
write = "0"
[[workload]]
name = "touch"
command = ["sh", "-c", "for i in $(seq {threads}); do echo $i > f$i; sync f$i; done; echo '{\"n\": {threads}.5}'"]
figure = { json = "/n", unit = "things" }
[[target]]
name = "plain"
fs = "ext4"
[[target]]
name = "no-journal-size"
fs = "ext4"
mkfs = "-J size=4"
mount = "noatime"
"#;

/// A folder with a plan in it, and a place of its own for disks.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new(plan: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join("plan.toml"), plan).expect("written");
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(LUC);
        command
            .args(["sweep", "plan.toml", "--out", "out", "--json"])
            .current_dir(self.folder.path())
            .env("LUC_RUN_DIR", self.path("run"))
            .stdin(Stdio::null());
        command
    }

    fn run(&self) -> Output {
        self.command().output().expect("luc runs")
    }

    /// `luc sweep report` of a folder.
    fn report(&self, folder: &str) -> Output {
        let mut command = Command::new(LUC);
        command.args(["sweep", "report", folder, "--json"]);
        let command = command.current_dir(self.folder.path());
        command.output().expect("luc runs")
    }

    fn has_disks(&self) -> bool {
        fs::read_dir(self.path("run/disk")).is_ok_and(|mut disks| disks.next().is_some())
    }

    fn has_mounts(&self) -> bool {
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("readable");
        mounts.contains(&self.folder.path().display().to_string())
    }

    /// Nothing is left but the results.
    fn assert_clear(&self) {
        assert!(!self.has_disks());
        assert!(!self.has_mounts());
        assert!(!self.path("out/work").exists());
    }

    fn lines(&self) -> usize {
        fs::read_to_string(self.path("out/results.jsonl"))
            .map_or(0, |text| text.matches('\n').count())
    }
}

/// Key and round of every repeat, and how often it is there.
fn repeats(report: &Value) -> Vec<(String, u64)> {
    let rows = report["repeats"].as_array().expect("repeats");
    let mut found: Vec<(String, u64)> = rows
        .iter()
        .map(|row| {
            let key = row["key"].as_str().expect("key").to_owned();
            (key, row["round"].as_u64().expect("round"))
        })
        .collect();
    found.sort();
    found
}

fn expected() -> Vec<(String, u64)> {
    let mut all = Vec::new();
    for threads in [1, 2] {
        for target in ["plain", "no-journal-size"] {
            all.extend((0..6).map(|round| (format!("touch,{threads},{target},off"), round)));
        }
    }
    all.sort();
    all
}

#[test]
fn bad_plans_make_nothing() {
    for (from, to, words) in [
        ("settle", "setle", &["plan.toml:3:", "'settle'"][..]),
        ("min = 6", "min = 2", &["stop.min = 2"]),
        ("size = \"64M\"", "size = \"1M\"", &["ext4", "16M", "1M"]),
        ("size = \"64M\"", "model = \"hdd\"", &["flush", "hdd"]),
        ("fs = \"ext4\"\nmkfs", "device = \"/dev/sda\"\nmkfs", &["/dev/sda", "goes with fs"]),
        ("/n\"", "/n\", series = true", &["touch", "figure"]),
        ("flush = \"1ms\"", "model = \"slow.toml\"", &["slow.toml", "No such file"]),
        ("settle", "scheduler = [\"kiber\"]\nsettle", &["plan.toml:3:", "'kyber'"]),
    ] {
        let place = Place::new(&PLAN.replacen(from, to, 1));
        let message = refusal(&place.run());
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
        assert!(!place.path("out").exists() && !place.path("run").exists(), "{message}");
    }
}

#[test]
fn programs_that_cannot_be_gated_make_nothing() {
    let folder = TempDir::new().expect("a folder");
    let program = folder.path().join("notified");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/notified.c");
    if !compiled_statically(&source, &program) {
        return;
    }
    // Of another machine, by the number in its header: neither the library nor a notification reaches it.
    let mut image = fs::read(&program).expect("readable");
    image[18..20].copy_from_slice(&0x1234_u16.to_ne_bytes());
    fs::write(&program, image).expect("written");
    let plan = format!(
        r#"
settle = "0"
policy = ["auto"]
stop = {{ min = 6, max = 6 }}
[[workload]]
name = "foreign"
command = ["{}"]
[[target]]
name = "here"
directory = "{}"
"#,
        program.display(),
        folder.path().display()
    );
    let place = Place::new(&plan);
    let message = refusal(&place.run());
    for words in ["'foreign'", "policy \"auto\"", "cannot be gated"] {
        assert!(message.contains(words), "{message}");
    }
    assert!(!place.path("out").exists());
}

#[test]
fn what_is_no_sweep_has_no_report() {
    let place = Place::new(PLAN);
    fs::create_dir(place.path("other")).expect("made");
    for text in ["", "{}\n", "{\"version\":1,\"plan\":{}}\n"] {
        fs::write(place.path("other/results.jsonl"), text).expect("written");
        let message = refusal(&place.report("other"));
        assert!(message.contains("no results of a sweep"), "{message}");
        assert_eq!(fs::read_dir(place.path("other")).expect("listed").count(), 1);
    }
    let message = refusal(&place.report("nowhere"));
    assert!(message.contains("nowhere"), "{message}");
    assert!(!place.path("nowhere").exists());
}

#[test]
fn missing_root_or_mkfs_makes_nothing() {
    let place = Place::new(PLAN);
    let plan = place.path("plan.toml").display().to_string();
    let out = place.path("out");
    if is_root() {
        let hidden = Place::new(
            &PLAN.replace("\"ext4\"", "\"xfs\"").replace("-J size=4", "").replace("64M", "512M"),
        );
        let mut command = without_mkfs();
        command.args(["sweep", "plan.toml", "--out", "out"]);
        let message =
            refusal(&command.current_dir(hidden.folder.path()).output().expect("unshare runs"));
        assert!(message.contains("mkfs.xfs") && message.contains("install"), "{message}");
        assert!(!hidden.path("out").exists());
        let mut command = as_nobody(place.folder.path());
        command.args(["sweep", &plan, "--out"]).arg(&out);
        let message = refusal(&command.output().expect("setpriv runs"));
        assert!(message.contains("need root"), "{message}");
    } else {
        let out = out.display().to_string();
        let message = refusal(&without_privileges(&["sweep", &plan, "--out", &out]));
        assert!(message.contains("need root"), "{message}");
    }
    assert!(!out.exists());
}

#[test]
fn two_by_two_points_on_disks() {
    if !can_make_disks() {
        return;
    }
    let place = Place::new(PLAN);
    let output = place.run();
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(repeats(&report), expected());
    for point in report["points"].as_array().expect("points") {
        let threads: f64 = point["key"]
            .as_str()
            .and_then(|key| key.split(',').nth(1))
            .and_then(|n| n.parse().ok())
            .expect("threads");
        assert_eq!(point["interval"]["median"], threads + 0.5);
        assert_eq!(point["verdict"], "converged");
        let ratios = point["ratios"].as_array().expect("ratios");
        let axes = |axis: &str| ratios.iter().find(|ratio| ratio["axis"] == axis);
        let against_one =
            axes("threads").map(|ratio| ratio["interval"]["median"].as_f64().expect("number"));
        assert_eq!(against_one, (threads > 1.0).then_some(2.5 / 1.5));
    }
    for repeat in report["repeats"].as_array().expect("repeats") {
        let about = &repeat["environment"];
        let mount = about["mount"].as_str().expect("mount");
        assert!(mount.starts_with("ext4 /dev/loop"), "{mount}");
        let is_second = repeat["key"].as_str().is_some_and(|key| key.contains("no-journal-size"));
        assert_eq!(mount.contains("noatime"), is_second, "{mount}");
        assert!(about["mkfs"].as_str().is_some_and(|text| text.contains("mke2fs")), "{about}");
        assert_eq!(about["caches_dropped"], true);
        let counted = |name: &str| repeat["counters"][name].as_f64().unwrap_or_default();
        // Every file is synced, and the disk has a cache to flush.
        assert!(counted("disk.flushes") >= 1.0, "{}", repeat["counters"]);
        assert!(counted("jbd2.commits") >= 1.0, "{}", repeat["counters"]);
        assert!(counted("workload.elapsed_s") > 0.0);
    }
    place.assert_clear();
    let csv = fs::read_to_string(place.path("out/results.csv")).expect("written");
    assert_eq!(csv.lines().count(), 1 + 24);
    let files =
        ["report.json", "report.html", "results.csv", "results.parquet", "counters.parquet"];
    let made: Vec<Vec<u8>> =
        files.iter().map(|name| fs::read(place.path("out").join(name)).expect("written")).collect();
    let page = String::from_utf8_lossy(&made[1]);
    for words in ["no-journal-size", "2 threads", "disk.flushes", "ext4 rw"] {
        assert!(page.contains(words), "{words}");
    }
    // From the results alone, the same is made again.
    for name in files {
        fs::remove_file(place.path("out").join(name)).expect("removed");
    }
    let again = place.report("out");
    assert!(again.status.success(), "{}", stderr(&again));
    assert_eq!(stdout(&again), stdout(&output));
    for (name, made) in files.iter().zip(made) {
        let now = fs::read(place.path("out").join(name)).expect("written");
        assert!(now == made, "{name}");
    }
    // The same again has nothing to do; another plan is refused there.
    let begun = fs::metadata(place.path("out/results.jsonl"))
        .and_then(|about| about.modified())
        .expect("times");
    assert!(place.run().status.success());
    let now = fs::metadata(place.path("out/results.jsonl"))
        .and_then(|about| about.modified())
        .expect("times");
    assert_eq!(begun, now);
    fs::write(place.path("plan.toml"), PLAN.replace("noatime", "nodiratime")).expect("written");
    let message = refusal(&place.run());
    assert!(message.contains("another plan"), "{message}");
}

#[test]
fn killed_at_random_it_goes_on_and_ends_the_same() {
    if !can_make_disks() {
        return;
    }
    let place = Place::new(PLAN);
    let mut random = fastrand(u64::from(std::process::id()));
    for kill in 0..3 {
        let before = place.lines();
        let mut child = place
            .command()
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("luc starts");
        // Two more repeats at least, so that three kills meet three places, and then anywhere in one.
        until("progress", || {
            place.lines() >= before + 2 || child.try_wait().is_ok_and(|ended| ended.is_some())
        });
        sleep(Duration::from_millis(random() % 200));
        assert!(child.try_wait().expect("known").is_none(), "kill {kill} came too late");
        child.kill().expect("killed");
        child.wait().expect("waited for");
        until("a clear house", || {
            !place.has_disks() && !place.has_mounts() && !place.path("out/work").exists()
        });
    }
    // A line that was half written when it was killed.
    let path = place.path("out/results.jsonl");
    let mut text = fs::read_to_string(&path).expect("readable");
    text += "{\"key\":\"touch,1,pl";
    fs::write(&path, text).expect("written");
    let output = place.run();
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let found = repeats(&report);
    assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), found.len());
    assert_eq!(found, expected());
    place.assert_clear();
}

#[test]
fn directories_need_no_root_and_too_wide_is_said_loudly() {
    let folder = TempDir::new().expect("a folder");
    let plan = format!(
        r#"
settle = "0"
stop = {{ goal = 0.0001, min = 6, max = 8 }}
policy = ["off"]
[[workload]]
name = "shell"
command = ["sh", "-c", "echo x > f; sleep 0.0{{seed}}"]
[[target]]
name = "here"
directory = "{}"
"#,
        folder.path().display()
    );
    let place = Place::new(&plan);
    let output = place.run();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("NOT CONVERGED"), "{}", stderr(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(report["points"][0]["count"], 8);
    assert_eq!(report["points"][0]["verdict"], "not_converged");
    assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 0);
    place.assert_clear();
}

/// Numbers that differ from run to run: any moment will do.
fn fastrand(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}
