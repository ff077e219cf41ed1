//! `luc advise --virtual`: advice from guests in virtual time, with a file system that this machine's kernel need not
//! have. What lacks QEMU, the guests' kernel or a mkfs says `skipped`.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::{LUC, refusal, stderr, stdout};
use serde_json::Value;
use tempfile::TempDir;

/// Two file systems, a fifth of a second each.
const QUICK: &[&str] = &[
    "--virtual",
    "--workload",
    "metarates",
    "--seconds",
    "0.2",
    "--threads",
    "4",
    "--set",
    "warmup=50ms",
    "--disk",
    "ssd",
    "--disk-size",
    "512M",
    "--only",
    "ext4,reiserfs",
    "--options",
    "default",
    "--rounds",
    "3",
];

fn is_there(program: &str) -> bool {
    let folders = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
    folders.iter().any(|folder| Path::new(folder).join(program).is_file())
}

/// Whether there can be guests, after saying why not.
fn can_run() -> bool {
    if let Some(program) = ["mke2fs", "mkreiserfs"].iter().find(|name| !is_there(name)) {
        luc_testkit::skipped!("no {program}: run scripts/setup.sh");
        return false;
    }
    luc_testkit::vm::kernel("6.1").is_some()
}

fn advise(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(LUC)
        .arg("advise")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("luc runs")
}

#[test]
fn what_guests_cannot_have_is_refused_before_anything_is_made() {
    let folder = TempDir::new().expect("a folder");
    for (arguments, words) in [
        (&["--policy", "auto"][..], &["--policy auto", "--virtual"][..]),
        (&["--disk", "fixed"], &["--disk fixed", "--virtual"]),
        (&["--disk-size", "5G"], &["5G", "4G"]),
        (
            &["--only", "ext4,reiserfs", "--options", "default", "--kernel", "6.13"],
            &["6.13", "reiserfs"],
        ),
    ] {
        let whole = [&["--virtual", "--workload", "varmail"], arguments].concat();
        let message = refusal(&advise(folder.path(), &whole));
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    }
    for arguments in [
        &["--virtual", "--on", "."][..],
        &["--virtual", "--idle", "1s"],
        &["--virtual", "--device", "/dev/null", "--erase", "/dev/null"],
        &["--kernel", "6.1"],
    ] {
        let whole = [&["--workload", "varmail"], arguments].concat();
        let output = advise(folder.path(), &whole);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("--virtual"), "{}", stderr(&output));
    }
    assert_eq!(folder.path().read_dir().expect("listed").count(), 0);
}

#[test]
fn advice_in_virtual_time_is_the_same_with_the_same_seed() {
    if !can_run() {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let answer = |out: &str| -> Value {
        let whole = [QUICK, &["--json", "--out", out]].concat();
        let output = advise(folder.path(), &whole);
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_str(&stdout(&output)).expect("JSON")
    };
    let first = answer("first");
    assert_eq!(first["repeats"], 6);
    assert_eq!(first["selection"], answer("second")["selection"]);
    for figure in first["selection"]["rate"]["figures"].as_array().expect("figures") {
        assert!(figure["median"].as_f64() > Some(0.0), "{first:#}");
    }
    // All is there: the same command only says it again.
    let text = stdout(&advise(folder.path(), &[QUICK, &["--out", "first"]].concat()));
    for part in [
        "virtual time: Linux 6.1",
        "emulated disk ssd of 512M",
        "reiserfs default",
        "advice: ",
        "unavailable: virtual time",
        "the processor is a simulated one",
    ] {
        assert!(text.contains(part), "{text}");
    }
}
