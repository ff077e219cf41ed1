//! Trials of failed writes in a guest with a distribution's kernel.

use std::time::Duration;

use serde_json::{Value, json};

use crate::error::EvaluateError;
use crate::guests::succeed;
use crate::harness::{Harness, parse};
use crate::safety::guest::Guests;

/// Timeout of a guest. Without hardware virtualization the matrix takes some minutes, on a busy machine much longer.
const GUEST_TIMEOUT: Duration = Duration::from_secs(3 * 3600);
const SETUP: &str = "modprobe ext4 && modprobe loop && modprobe fuse || exit 2\n\
    mount -t tmpfs tmpfs /dev/shm 2>/dev/null || { mkdir -p /dev/shm && mount -t tmpfs tmpfs /dev/shm; }\n";
const LOAD: &str = "insmod /root/luc.ko || exit 2\n";
/// Texts of the kernel's messages about a failing disk.
const DISK_MESSAGES: [&str; 2] = ["EXT4-fs", "JBD2"];

/// Returns the report of `luc faults WORDS` in a guest with the kernel of `version`, with or without luc.ko.
pub(super) fn report(
    harness: &Harness,
    version: &str,
    words: &[&str],
    has_module: bool,
) -> Result<Value, EvaluateError> {
    let words = words.join(" ");
    let load = if has_module { LOAD } else { "" };
    // Status 1 is bad news, and an answer, too.
    let script =
        format!("{SETUP}{load}luc faults --json {words} >\"$OUT/report.json\"\n[ $? -le 1 ]\n");
    let guests = Guests::prepare(harness, version)?;
    let vm = guests
        .machine(GUEST_TIMEOUT)
        .program(harness.luc_path().with_file_name("libluc_gate_preload.so"));
    let vm = ["ext4", "loop", "fuse"].into_iter().fold(vm, luc_vm::Vm::module);
    let outcome = succeed(&vm.script(script), "luc faults")?;
    let text = outcome.file("report.json").unwrap_or_default();
    let mut report: Value = parse(&text, "the report of luc faults")?;
    let of_the_disk = |line: &&str| DISK_MESSAGES.iter().any(|words| line.contains(words));
    let warnings = outcome.complaints();
    let warnings: Vec<&str> = warnings.into_iter().filter(|line| !of_the_disk(line)).collect();
    report["warnings"] = json!(warnings);
    Ok(report)
}
