//! `luc record` on distributions' kernels, which have ext4 and its journal as modules: since Linux 6.12.5 and 6.13
//! the verifier takes what a module's tracepoint gives as possibly NULL. Skipped, with the reason, where QEMU or a
//! kernel is missing.

use std::time::Duration;

use luc_vm::VirtualMachine;
use serde_json::Value;

const LUC: &str = env!("CARGO_BIN_EXE_luc");

/// Fast commits as well, so that their tracepoints are used.
const SCRIPT: &str = r#"
modprobe ext4 && modprobe loop || exit 1
dd if=/dev/zero of=/run/image bs=1M count=64 2>/dev/null
mke2fs -q -F -t ext4 -O fast_commit /run/image || exit 1
mount -o loop /run/image /mnt || exit 1
for mode in "" --summary; do
	luc record $mode --quiet --out "/run/trace$mode" -- \
		luc bench metarates --dir /mnt --threads 2 --seconds 1 --file-size 1k >/dev/null || exit 1
	luc explain --json "/run/trace$mode" >"$OUT/explained$mode.json" || exit 1
done
umount /mnt
luc record --counters=page-faults,task-clock --out /run/counted -- true 2>"$OUT/counted" || exit 1
"#;

fn check(version: &str) {
    let Some(kernel) = luc_testkit::vm::kernel(version) else {
        return;
    };
    let outcome = VirtualMachine::new(&kernel)
        .program(LUC)
        .program("mke2fs")
        .module("ext4")
        .module("loop")
        .timeout(Duration::from_secs(300))
        .script(SCRIPT)
        .run()
        .expect("a guest");
    assert_eq!(outcome.status, 0, "{}", outcome.text());
    let explained = |name: &str| -> Value {
        let text = outcome.file(name).expect("an explanation");
        serde_json::from_str(&text).expect("JSON")
    };
    let events = explained("explained.json");
    let on_ext4 = &events["file_systems"][0];
    for count in ["/syncs/latency/count", "/commits/full/count", "/commits/fast/count"] {
        let count = on_ext4.pointer(count).and_then(Value::as_u64);
        assert!(count.is_some_and(|count| count > 0), "{on_ext4:#}");
    }
    // An interrupt may come in the middle of a program on requests, which then misses what that completes.
    let lost = events["lost"].as_object().expect("what was lost");
    let is_known = |(table, _): (&String, &Value)| table == "request";
    assert!(lost.iter().all(is_known), "{lost:?}: {}", outcome.text());
    let counted = outcome.file("counted").expect("what it said");
    assert!(counted.contains(" counter, "), "{counted}");
    let summary = explained("explained--summary.json");
    let events = summary["trace"]["events"].as_u64();
    assert!(events.is_some_and(|events| events > 0), "{summary:#}");
}

#[test]
fn ext4_as_a_module_of_linux_6_1() {
    check("6.1");
}

#[test]
fn ext4_as_a_module_of_linux_6_12() {
    check("6.12");
}
