//! Tasks that ruin each other's disk, from a recording on an emulated one. Needs root, FUSE, loop devices and BTF.

use std::fs;
use std::process::Command;

use crate::common::{EmulatedTestDisk, LUC, stderr, stdout};
use serde_json::Value;

/// Size of the file of a reader; on this disk half a second.
const FILE: &str = "32M";

/// Records readers of these files, which are cold, and returns what `luc explain` says of them.
fn explained(disk: &EmulatedTestDisk, trace: &str, files: &[&str]) -> Value {
    let trace = disk.path(trace);
    let reads = files.iter().map(|file| {
        let path = format!("{}/{file}", disk.mount());
        format!("cat {path} >/dev/null &")
    });
    let script = format!("{} wait", reads.collect::<Vec<_>>().join(" "));
    fs::write("/proc/sys/vm/drop_caches", "3").expect("dropped");
    let mut record = Command::new(LUC);
    record.args(["record", "-q", "-o", &trace, "--", "sh", "-c", &script]);
    let output = record.output().expect("luc runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let explain = Command::new(LUC).args(["explain", "--json", &trace]).output();
    let output = explain.expect("luc runs");
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

fn contention(report: &Value) -> Option<&Value> {
    let findings = report["findings"].as_array().expect("findings");
    let mut found = findings.iter();
    found.find(|finding| finding["kind"] == "disk_contention" && is_of_cats(finding))
}

/// Whether it is about these readers: others may use other disks meanwhile.
fn is_of_cats(finding: &Value) -> bool {
    let sentence = finding["sentence"].as_str().expect("a sentence");
    sentence.matches("cat (").count() == 2
}

#[test]
fn two_streams_on_a_hard_disk_are_found_and_one_is_not() {
    let Some(disk) = EmulatedTestDisk::with_model("contention", "hdd") else {
        return;
    };
    // Far from each other.
    let script = format!(
        "cd {} && head -c {FILE} /dev/zero >a && fallocate -l 300M gap && head -c {FILE} /dev/zero >b && sync",
        disk.mount()
    );
    let made = Command::new("sh").args(["-c", &script]).output().expect("sh runs");
    assert!(made.status.success(), "{}", stderr(&made));

    let one = explained(&disk, "one", &["a"]);
    assert!(contention(&one).is_none(), "{:#}", one["findings"]);

    let two = explained(&disk, "two", &["a", "b"]);
    let found = contention(&two).unwrap_or_else(|| panic!("{:#}", two["disks"]));
    assert!(!found["victim"].is_null(), "{found:#}");
    let remedies = two["remedies"].as_array().expect("remedies");
    let turns = remedies.iter().find(|remedy| remedy["kind"] == "turns");
    let gain = turns.expect("proposed")["predicted_gain"].as_f64();
    assert!(gain.is_some_and(|gain| gain > 0.2), "{remedies:#?}");

    let text = Command::new(LUC).args(["explain", &disk.path("two")]).output();
    let text = stdout(&text.expect("luc runs"));
    for said in [
        "ruin each other's disk",
        "luc throttle run",
        "Who shared the disk",
        "while the disk served cat",
    ] {
        assert!(text.contains(said), "no {said:?} in\n{text}");
    }
}
