//! The matrix in a guest with a distribution's kernel.

use std::thread;
use std::time::Duration;

use luc_host::interrupt::interrupted;
use luc_vm::{Kernel, Vm};
use serde_json::Value;

use crate::error::EvaluateError;
use crate::harness::{Harness, missing};

/// What a guest may take: without hardware virtualization the matrix takes some minutes, on a busy machine much longer.
const LIMIT: Duration = Duration::from_secs(3 * 3600);
/// How often a running guest is looked at.
const POLL: Duration = Duration::from_millis(50);
const SETUP: &str = "modprobe ext4 && modprobe loop && modprobe fuse || exit 2\n\
    mount -t tmpfs tmpfs /dev/shm 2>/dev/null || { mkdir -p /dev/shm && mount -t tmpfs tmpfs /dev/shm; }\n";

/// The report of `luc faults WORDS` in a guest with the kernel of `version`.
pub(super) fn report(
    harness: &Harness,
    version: &str,
    words: &[&str],
) -> Result<Value, EvaluateError> {
    let words = words.join(" ");
    // Status 1 is bad news, and an answer, too.
    let script = format!("{SETUP}luc faults --json {words} >\"$OUT/report.json\"\n[ $? -le 1 ]\n");
    let kernel = Kernel::bootable(version)?;
    let mut vm = Vm::new(&kernel)
        .program(harness.luc_path())
        .program(harness.luc_path().with_file_name("libluc_gate_preload.so"))
        .program("mkfs.ext4")
        .memory_mib(1024)
        .timeout(LIMIT)
        .script(script);
    for module in ["ext4", "loop", "fuse"] {
        vm = vm.module(module);
    }
    let mut guest = vm.start()?;
    while guest.is_running()? {
        if interrupted() {
            return Err(EvaluateError::Interrupted);
        }
        thread::sleep(POLL);
    }
    let outcome = guest.wait()?;
    if outcome.status != 0 {
        let text = outcome.text();
        let lines: Vec<&str> = text.lines().collect();
        return Err(EvaluateError::Command {
            command: "luc faults in a guest".to_owned(),
            how: format!("exit status {} in the guest", outcome.status),
            said: lines[lines.len().saturating_sub(8)..].join("; "),
        });
    }
    let report = outcome.file("report.json").unwrap_or_default();
    serde_json::from_str(&report).map_err(|_| missing("the report of luc faults"))
}
