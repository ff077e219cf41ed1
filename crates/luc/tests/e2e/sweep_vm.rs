//! `luc sweep` in virtual time: a sweep in guests that is killed goes on and ends as one that was not. What lacks
//! QEMU, the kernel or its headers says `skipped`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{LUC, stderr};
use serde_json::Value;
use tempfile::TempDir;

/// Two points of one speed, twice: two guests.
const PLAN: &str = r#"
policy = ["kernel:off", "kernel:delay"]
[virtual]
mips = [1000]
repeats = 2
[disk]
size = "32M"
write = "2ms"
flush = "6ms"
[[workload]]
name = "create"
bench = "metarates"
threads = [4]
options = { rounds = 3 }
figure = { json = "/file_creation_rate_per_second", unit = "files/s" }
settings = { delay_us = 700 }
[[target]]
name = "ext4"
fs = "ext4"
mkfs = "-b 4096 -J size=4"
"#;

/// Time limit for a guest on a busy machine.
const GUEST_TIMEOUT: Duration = Duration::from_secs(400);

/// Whether there can be guests, after saying why not.
fn can_run() -> bool {
    luc_testkit::vm::kernel_with_headers("6.1").is_some()
}

fn sweep(folder: &Path, out: &str) -> Command {
    let mut command = Command::new(LUC);
    command
        .args(["sweep", "plan.toml", "--jobs", "1", "--json", "--out", out])
        .current_dir(folder)
        .stdin(Stdio::null());
    command
}

fn lines(folder: &Path, out: &str) -> usize {
    let results = folder.join(out).join("results.jsonl");
    fs::read_to_string(results).map_or(0, |text| text.matches('\n').count())
}

/// Key, round, figure and counters of every repeat.
fn repeats(report: &Value) -> Vec<Value> {
    let rows = report["repeats"].as_array().expect("repeats");
    rows.iter()
        .map(|row| serde_json::json!([row["key"], row["round"], row["value"], row["counters"]]))
        .collect()
}

#[test]
fn killed_and_gone_on_it_ends_as_if_nothing_had_happened() {
    if !can_run() {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("plan.toml"), PLAN).expect("written");
    let whole = |out: &str| -> Value {
        let output = sweep(folder, out).output().expect("luc runs");
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };

    let mut killed = sweep(folder, "killed").stdout(Stdio::null()).spawn().expect("luc runs");
    let begun = Instant::now();
    // The head and the first guest's two points.
    while lines(folder, "killed") < 3 && begun.elapsed() < GUEST_TIMEOUT {
        sleep(Duration::from_millis(50));
    }
    killed.kill().expect("killed");
    killed.wait().expect("ended");
    assert_eq!(lines(folder, "killed"), 3);

    let gone_on = whole("killed");
    // The same modules once more: those of another folder know its path, which is microseconds in a guest.
    let results = folder.join("killed/results.jsonl");
    let text = fs::read_to_string(&results).expect("there");
    let head = text.split_inclusive('\n').next().expect("a head");
    fs::write(&results, head).expect("begun anew");
    let once = whole("killed");
    assert_eq!(repeats(&gone_on), repeats(&once));
    assert_eq!(repeats(&once).len(), 4);

    // Who shares a commit does not wait for two.
    let waited = |policy: &str| -> f64 {
        let wanted = format!("create,4,ext4,kernel:{policy},1000");
        let of_policy = repeats(&once).into_iter().filter(|repeat| repeat[0] == wanted);
        of_policy.map(|repeat| repeat[3]["luc.fsyncs_waited_two"].as_f64().expect("counted")).sum()
    };
    assert!(waited("off") > 0.0);
    assert!(waited("delay") < waited("off"));
    let point = &once["points"][1];
    assert!(point["ratios"][0]["interval"]["median"].as_f64() > Some(1.0), "{point:#}");
}

/// Two repeats of one point in guests with two processors, whose clients arrive over 40 us.
const SEVERAL: &str = r#"
[virtual]
mips = [1000]
processors = 2
repeats = 2
[disk]
size = "32M"
write = "2ms"
[[workload]]
name = "create"
bench = "metarates"
threads = [2]
options = { rounds = 3, directories = "own", arrivals = "40us" }
figure = { json = "/file_creation_rate_per_second", unit = "files/s" }
[[target]]
name = "ext4"
fs = "ext4"
mkfs = "-b 4096 -J size=4"
"#;

#[test]
fn guests_with_several_processors_are_of_one_qemu() {
    if !can_run() {
        return;
    }
    let found = luc_vm::Qemu::for_several();
    let Some(qemu) = luc_testkit::unless_missing(found, luc_vm::Error::is_unavailable) else {
        return;
    };
    let folder = TempDir::new().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("plan.toml"), SEVERAL).expect("written");
    let output = sweep(folder, "out").output().expect("luc runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = report["repeats"].as_array().expect("repeats");
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!(row["environment"]["qemu"].as_str(), Some(&*qemu.with_processors(2)));
        assert_eq!(row["counters"]["operation.open.count"].as_f64(), Some(6.0));
    }

    // One repeat of another QEMU, and the other still to be made.
    let results = folder.join("out/results.jsonl");
    let text = fs::read_to_string(&results).expect("there");
    let begun: Vec<&str> = text.split_inclusive('\n').take(2).collect();
    let other = begun.concat().replace("\"QEMU ", "\"QEMU 0.");
    fs::write(&results, &other).expect("begun by another");
    let output = sweep(folder, "out").output().expect("luc runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("QEMU 0."), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&results).expect("there"), other);
}

#[test]
fn an_old_qemu_alone_is_refused() {
    if !can_run() {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("plan.toml"), SEVERAL).expect("written");
    let old = folder.join("qemu-system-x86_64");
    fs::write(&old, "#!/bin/sh\necho QEMU emulator version 7.2.22\n").expect("written");
    fs::set_permissions(&old, PermissionsExt::from_mode(0o755)).expect("a program");
    let path = std::env::var("PATH").expect("a PATH");
    let output = sweep(folder, "out")
        .env("PATH", format!("{}:{path}", folder.display()))
        .env("XDG_CACHE_HOME", folder)
        .output()
        .expect("luc runs");
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    assert!(said.contains("QEMU 7.2.22") && said.contains("make setup-vm"), "{said}");
    assert!(!folder.join("out").exists());
}

/// The repeats that a whole sweep by this plan reports.
fn repeats_of(plan: &str) -> Vec<Value> {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("plan.toml"), plan).expect("written");
    let output = sweep(folder.path(), "out").output().expect("luc runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    report["repeats"].as_array().expect("repeats").clone()
}

/// A server on a hard disk whose files do not fit into the memory, from cold.
const SERVER: &str = r#"
[virtual]
mips = [1000]
repeats = 1
[disk]
model = "hdd"
size = "512M"
[[workload]]
name = "web"
filebench = "slides-web"
memory = "32M"
options = { seconds = 2, cold = true, set = ["nfiles=1000", "nthreads=8", "iosize=64k"] }
[[target]]
name = "ext4"
fs = "ext4"
mount = "noatime"
[[target]]
name = "reiserfs"
fs = "reiserfs"
mount = "notail"
"#;

#[test]
fn a_server_with_little_memory_reads_from_a_hard_disk() {
    if !can_run() {
        return;
    }
    let repeats = repeats_of(SERVER);
    let mounts = ["ext4 /dev/loop0 rw,noatime", "reiserfs /dev/loop0 rw,relatime,notail"];
    for mount in mounts {
        let on = |repeat: &&Value| {
            repeat["environment"]["mount"].as_str().is_some_and(|on| on.starts_with(mount))
        };
        let repeat = repeats.iter().find(on).expect(mount);
        // The set does not fit: whole files come from the drive, mostly from its own read-ahead.
        let reads = repeat["counters"]["disk.reads"].as_f64();
        assert!(reads > Some(50.0), "{repeat}");
        // A drive's rate, not that of memory.
        let rate = repeat["value"].as_f64();
        assert!(rate > Some(20.0) && rate < Some(20_000.0), "{repeat}");
    }
}

/// File creation on a hard disk, held by luc.ko, at two speeds.
const SEEKS: &str = r#"
policy = ["kernel:off", "kernel:delay"]
[virtual]
mips = [1000, 2000]
repeats = 1
[disk]
model = "hdd"
size = "256M"
[[workload]]
name = "create"
bench = "metarates"
threads = [4]
options = { rounds = 6 }
figure = { json = "/file_creation_rate_per_second", unit = "files/s" }
[[target]]
name = "ext4"
fs = "ext4"
mkfs = "-b 4096 -J size=8"
"#;

#[test]
fn a_hard_disk_is_as_fast_for_a_faster_processor_and_its_commits_are_held() {
    if !can_run() {
        return;
    }
    let repeats = repeats_of(SEEKS);
    let of = |policy: &str, mips: &str| -> &Value {
        let is = |repeat: &&Value| {
            let key = repeat["key"].as_str().unwrap_or_default();
            key.contains(policy) && key.ends_with(mips)
        };
        repeats.iter().find(is).expect("a repeat")
    };
    for policy in ["kernel:off", "kernel:delay"] {
        let rates =
            ["1000", "2000"].map(|mips| of(policy, mips)["value"].as_f64().expect("a rate"));
        // The disk decides, which is stretched: unstretched the faster processor would see twice the rate.
        let ratio = rates[1] / rates[0];
        assert!((0.8..1.25).contains(&ratio), "{policy}: {rates:?}");
    }
    let holds = |policy| of(policy, "1000")["counters"]["luc.holds"].as_f64();
    assert_eq!(holds("kernel:off"), Some(0.0));
    assert!(holds("kernel:delay") > Some(0.0));
}
