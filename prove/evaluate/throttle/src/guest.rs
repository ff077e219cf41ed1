//! Runs a mix of tasks in a guest with a distribution's kernel, in virtual time.

use std::fmt::Write as _;
use std::time::Duration;

use luc_harness::error::EvaluateError;
use luc_harness::guests::{self, succeed};
use luc_harness::harness::{Harness, missing};
use luc_vm::{GuestKernel, GuestOutcome, GuestTime, VirtualMachine};
use serde_json::{Value, json};

use super::mixes::{Mix, Model};
use super::settings::{Setting, plain};

pub(super) const CELLS: &str = include_str!("cell.sh");
/// Size of the disk. Only written parts of it take memory.
const DISK_BYTES: u64 = 2 << 30;
/// Memory for the kernel, programs, and all else outside the disk and the page cache, MiB.
const SYSTEM_MIB: u64 = 700;
/// Timeout of a guest on a busy host.
const GUEST_TIMEOUT: Duration = Duration::from_secs(2 * 3600);
/// Kernel arguments: pages are not cleared when they are allocated, RCU lets an idle processor sleep, and pressure can
/// be read.
const KERNEL_ARGUMENTS: [&str; 3] = ["init_on_alloc=0", "rcu_nocbs=0", "psi=1"];
/// Beginning of the script. A drive has no command queueing: the elevator sorts, and one request at a time is at the
/// drive.
const HEAD: &str = "
modprobe ext4; modprobe fuse; modprobe bfq; modprobe kyber-iosched
modprobe loop max_loop=1 hw_queue_depth=1
LUC=luc DEVICE=loop0 CGROUPS=/sys/fs/cgroup BLKIO= WORK=/root/work MNT=/mnt
BEFORE='rm -f /mnt/copy.*'
export LUC MNT
mkdir -p $WORK /mnt
";
/// Options for a journal that does not fill the disk, and no work in the background.
const MKFS: &str = "-J size=16 -E nodiscard,lazy_itable_init=1,lazy_journal_init=1";

/// Runs a mix alone and together, under each setting. The result has the times of each.
pub(super) fn run(
    harness: &Harness,
    kernel: &GuestKernel,
    mix: &Mix,
    settings: &[&Setting],
    seed: u64,
) -> Result<Value, EvaluateError> {
    let outcome = boot(harness, kernel, mix, script(mix, &cells(mix, &plain(), settings), seed))?;
    read(&outcome, kernel.release(), mix, settings)
}

/// Runs a script on a mix's disk.
pub(super) fn boot(
    harness: &Harness,
    kernel: &GuestKernel,
    mix: &Mix,
    script: String,
) -> Result<GuestOutcome, EvaluateError> {
    let vm = machine(harness, kernel, mix.model, mix.bytes()).script(script);
    succeed(&vm, &format!("running '{}' in a guest", mix.name))
}

/// Describes a guest with `luc`, the files to make a disk of this model, and memory for `file_bytes` of files.
pub(super) fn machine<'a>(
    harness: &Harness,
    kernel: &'a GuestKernel,
    model: Model,
    file_bytes: u64,
) -> VirtualMachine<'a> {
    let memory_mib = SYSTEM_MIB + 2 * (file_bytes >> 20);
    let mut vm = VirtualMachine::new(kernel)
        .mode(GuestTime::VirtualTime { shift: 0, processors: 1 })
        .memory_mib(memory_mib as u32)
        .timeout(GUEST_TIMEOUT)
        .program(harness.luc_path())
        .program("mkfs.ext4")
        .content("/root/model.toml", model.file(DISK_BYTES))
        .content("/root/cell.sh", CELLS);
    for module in ["fuse", "bfq", "kyber-iosched"] {
        vm = vm.module(module);
    }
    for argument in KERNEL_ARGUMENTS {
        vm = vm.kernel_argument(argument);
    }
    vm
}

/// Beginning of each guest's script: makes the disk, and defines the functions that run cells.
pub(super) fn beginning() -> String {
    format!(
        "{HEAD}luc disk create drive --model /root/model.toml --size {DISK_BYTES} --mkfs ext4 --mkfs-options '{MKFS}' \
         --mount /mnt --mount-options noatime,noinit_itable >/dev/null || exit 1\n. /root/cell.sh\n"
    )
}

/// Returns the script that makes the disk and the files, then runs these lines.
pub(super) fn script(mix: &Mix, lines: &[String], seed: u64) -> String {
    let mut script = beginning();
    script += &mix.preparation(seed);
    for line in lines {
        let _ = writeln!(script, "{line}"); // a String takes any text
    }
    script
}

/// Returns the calls of `cell`: each task alone under one setting, then all together under each of `settings`.
pub(super) fn cells(mix: &Mix, alone: &Setting, settings: &[&Setting]) -> Vec<String> {
    let tasks = mix.kinds.len();
    let cell = |name: String, tasks: String, setting: &Setting, slots: &str| {
        let words = setting.words().join(" ");
        format!("cell {name} '{tasks}' {words} '{slots}' '{}'", setting.policy)
    };
    let alone = (1..=tasks).map(|task| cell(format!("alone.{task}"), task.to_string(), alone, ""));
    let all: Vec<String> = (1..=tasks).map(|task| task.to_string()).collect();
    let slots = mix.at_a_time.map_or_else(String::new, |count| count.to_string());
    let together = settings.iter().enumerate().map(|(number, setting)| {
        cell(format!("together.{number}"), all.join(" "), setting, &slots)
    });
    alone.chain(together).collect()
}

/// Returns the time of each task alone, seconds.
pub(super) fn alone_s(outcome: &GuestOutcome, mix: &Mix) -> Result<Vec<f64>, EvaluateError> {
    let mut alone = Vec::new();
    for task in 1..=mix.kinds.len() {
        let name = format!("alone.{task}.tasks");
        let [(start, finish)] = times(&guests::file(outcome, &name)?)?[..] else {
            return Err(missing("a task alone"));
        };
        alone.push(finish - start);
    }
    Ok(alone)
}

fn read(
    outcome: &GuestOutcome,
    release: &str,
    mix: &Mix,
    settings: &[&Setting],
) -> Result<Value, EvaluateError> {
    let alone = alone_s(outcome, mix)?;
    let mut cells = Vec::new();
    for (number, setting) in settings.iter().enumerate() {
        let of = times(&guests::file(outcome, &format!("together.{number}.tasks"))?)?;
        let report = outcome.file(&format!("together.{number}.json"));
        let report: Value =
            report.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        cells.push(json!({ "setting": setting.name, "tasks": of, "throttle": report }));
    }
    Ok(json!({
        "release": release, "tasks": mix.about(), "file_mib": mix.sizes(), "alone_s": alone, "cells": cells,
        "wall_s": outcome.wall.as_secs(),
    }))
}

/// Returns the start and end of each task, in the tasks' order, in seconds from the first start.
pub(super) fn times(text: &str) -> Result<Vec<(f64, f64)>, EvaluateError> {
    let line = |line: &str| {
        let mut words = line.split(' ').map(|word| word.parse::<f64>().ok());
        Some((words.next()??, words.next()??, words.next()??))
    };
    let lines: Option<Vec<_>> = text.lines().map(line).collect();
    let mut lines = lines.ok_or_else(|| missing("a task's times"))?;
    lines.sort_by(|one, other| one.0.total_cmp(&other.0));
    let first = lines.iter().map(|(_, start, _)| *start).fold(f64::INFINITY, f64::min);
    let microseconds = |time: f64| ((time - first) * 1e6).round() / 1e6;
    let since = |(_, start, finish): (f64, f64, f64)| (microseconds(start), microseconds(finish));
    Ok(lines.into_iter().map(since).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_the_order_of_the_tasks() {
        let text =
            "2 1767225610.120000 1767225628.344674 0\n1 1767225610.118000 1767225628.500000 0\n";
        let of = times(text).expect("times");
        assert_eq!(of, [(0.0, 18.382), (0.002, 18.226_674)]);
        assert!(times("1 a b\n").is_err());
    }

    #[test]
    fn each_task_is_alone_once_and_all_are_together_under_each_setting() {
        let setting = plain();
        let all = cells(&Mix::streams(2, 8), &plain(), &[&setting]);
        assert_eq!(all[1], "cell alone.2 '2' none 128 '' '' '' '' ''");
        assert_eq!(all[2], "cell together.0 '1 2' none 128 '' '' '' '' ''");
        assert_eq!(all.len(), 3);
        let batch = cells(&Mix::batch(16, 8), &plain(), &[&setting]);
        assert!(batch[16].ends_with("'' '' '' '8' ''"), "{}", batch[16]);
    }
}
