//! LUC on kernels of other distributions, one guest each: the module, power cuts, the recorder, the notifier, the
//! throttle. Skipped, with the reason, where QEMU, a kernel or its headers are missing (`scripts/setup-kernels.sh`).

use std::path::Path;
use std::time::Duration;

use luc_vm::{GuestOutcome, VirtualMachine};
use serde_json::Value;

const LUC: &str = env!("CARGO_BIN_EXE_luc");
const CUTS: u64 = 2;
const WRITES: u64 = 200;
const BYTES: u64 = 3000;
/// Messages that the kernel is right to print at a power cut.
const EXPECTED_AT_A_CUT: [&str; 2] = ["EXT4-fs error", "JBD2: Error"];

fn json(outcome: &GuestOutcome, name: &str) -> Value {
    let text = outcome.file(name).unwrap_or_else(|| panic!("no {name}"));
    serde_json::from_str(&text).expect("JSON")
}

fn check(version: &str) {
    let Some(kernel) = luc_testkit::vm::kernel_with_headers(version) else {
        return;
    };
    let work = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernel");
    let module = |name: &str| {
        let built = kernel.build_module(&sources.join(name), work);
        built.unwrap_or_else(|error| panic!("{error}"))
    };
    let outcome = ["mke2fs", "mkfs.ext4", "e2fsck", "dd"]
        .into_iter()
        .fold(VirtualMachine::new(&kernel), |vm, program| vm.program(program))
        .program(LUC)
        .file("/root/luc.ko", module("luc"))
        .file("/root/lagdisk.ko", module("lagdisk"))
        .variable("CUTS", &CUTS.to_string())
        .variable("WRITES", &WRITES.to_string())
        .variable("BYTES", &BYTES.to_string())
        .memory_mib(2048)
        .timeout(Duration::from_secs(600))
        .script(include_str!("kernels/guest.sh"))
        .run()
        .unwrap_or_else(|error| panic!("{error}"));
    let text = outcome.text();
    assert_eq!(outcome.status, 0, "{text}");
    let said = |name: &str| {
        let start = format!("{name}: ");
        let mut values = text.lines().filter_map(|line| line.strip_prefix(&start));
        values.next().unwrap_or_else(|| panic!("no {name}:\n{text}"))
    };
    let number =
        |name: &str| said(name).parse::<u64>().unwrap_or_else(|_| panic!("{name}:\n{text}"));
    let unexpected = |line: &&str| !EXPECTED_AT_A_CUT.iter().any(|words| line.contains(words));
    let complaints: Vec<&str> = outcome.complaints().into_iter().filter(unexpected).collect();
    assert_eq!(complaints, Vec::<&str>::new(), "{text}");
    assert_eq!(said("release"), kernel.release());
    assert_eq!([said("layout"), said("tested")], ["checked", "tested"]);
    for name in ["cuts", "unloaded", "notifier", "throttle", "fsck"] {
        assert_eq!(number(name), 0, "{name}:\n{text}");
    }
    assert!(number("holds") > 0 && number("copies") > 0, "{text}");

    // Every program was taken, and no row is lost in silence.
    let recorded =
        ["record.txt", "fleet.txt"].map(|name| outcome.file(name).expect("what it said"));
    assert!(!recorded.concat().contains("cannot be recorded"), "{recorded:?}");
    for what in ["syncs", "messages"] {
        let [made, seen, lost] =
            ["made", "seen", "lost"].map(|which| number(&format!("{what}_{which}")));
        assert!(seen + lost >= made, "{what}:\n{text}");
    }
    // No call is missed: they are seen by programs that run to their end. From 7.0 on a program that sees messages may
    // be preempted, and is then skipped.
    assert_eq!(number("calls_lost"), 0, "{recorded:?}");
    assert!(number("messages_lost") == 0 || version.starts_with('7'), "{recorded:?}");

    let held = &json(&outcome, "notified.json")["file_systems"][0]["gate"];
    assert!(held["gated"].as_u64() > Some(0), "{held:#}");
    let throttled = json(&outcome, "throttled.json");
    let orders = throttled["orders"].as_array().map(Vec::len);
    assert!(orders > Some(0), "{throttled:#}");
}

#[test]
fn linux_6_17() {
    check("6.17");
}

#[test]
#[ignore = "a kernel between two others: `make test-all`"]
fn linux_7_0() {
    check("7.0");
}

#[test]
fn linux_7_3() {
    check("7.3");
}
