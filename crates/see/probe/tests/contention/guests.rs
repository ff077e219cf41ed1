//! The tests of contention on distributions' kernels: Linux 6.1 has no `block_io_start`, and fentry is allowed in
//! guests. Skipped, with the reason, if QEMU or a kernel is missing.

use std::env;
use std::time::Duration;

use luc_vm::VirtualMachine;

/// Script that runs the other tests. All of them must run.
const SCRIPT: &str = r#"
modprobe ext4 && modprobe loop || exit 1
mkdir -p /tmp && mount -t tmpfs none /tmp || exit 1
grep -q cgroup2 /proc/mounts || mount -t cgroup2 none /sys/fs/cgroup || exit 1
LUC_NO_SKIPS=1 RUST_BACKTRACE=0 "$TESTS" --skip guests --test-threads 1 --nocapture
"#;

fn check(version: &str) {
    let Some(kernel) = luc_testkit::vm::kernel(version) else {
        return;
    };
    let tests = env::current_exe().expect("this program");
    let name = tests.file_name().expect("a name").to_string_lossy();
    let outcome = VirtualMachine::new(&kernel)
        .program(&tests)
        .variable("TESTS", &name)
        .program("dd")
        .program("losetup")
        .program("mke2fs")
        .module("ext4")
        .module("loop")
        .timeout(Duration::from_secs(300))
        .script(SCRIPT)
        .run()
        .expect("a guest");
    assert_eq!(outcome.status, 0, "{}", outcome.text());
    assert!(!outcome.text().contains("not seen here"), "{}", outcome.text());
}

#[test]
fn on_linux_6_1() {
    check("6.1");
}

#[test]
fn on_linux_6_12() {
    check("6.12");
}
