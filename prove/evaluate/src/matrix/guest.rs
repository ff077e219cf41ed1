//! One group in one guest: the script, the run in virtual time, and what came out.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use luc_sweep::guest_needs;
use luc_vm::{Kernel, Mode, Outcome, Vm};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::EvaluateError;
use super::super::guests::{self, Fnv};
use super::cells::{Config, DISK_MIB, Group, Load, SECONDS};

/// The distribution's kernel: the last of its kind with ReiserFS.
const VERSION: &str = "6.1";
/// What a group may take on a busy host.
const LIMIT: Duration = Duration::from_secs(3600);
/// What each cell does in the guest.
const PREAMBLE: &str = include_str!("cell.sh");
/// A thousand million instructions a second.
const SHIFT: u32 = 0;
/// The kernel, the programs and the ballast's smallest weight.
const SYSTEM_MIB: u64 = 300;
/// The distribution's kernel clears each page that it gives out; most of a guest's time would go into that. RCU's
/// work on a thread of its own lets an idle processor sleep through its ticks, which are what idle time costs.
const KERNEL_ARGUMENTS: [&str; 2] = ["init_on_alloc=0", "rcu_nocbs=0"];
/// Before the run of each workload file: what it reads is on the disk and nowhere else.
const COLD: &str = "create files\nsystem \"sync; echo 3 >/proc/sys/vm/drop_caches\"\n\nrun ";

/// One run's figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Cell {
    pub(super) file_system: String,
    pub(super) options: String,
    /// Operations per second.
    pub(super) rate: f64,
    /// Operations done.
    pub(super) operations: u64,
    /// Moved by the benchmark, MiB per second.
    pub(super) read_mib_per_s: f64,
    pub(super) written_mib_per_s: f64,
    /// What the disk has done since mkfs.
    pub(super) disk_reads: u64,
    pub(super) disk_writes: u64,
    pub(super) disk_flushes: u64,
    /// As the kernel had it mounted.
    pub(super) mounted: String,
}

/// What all guests share.
#[derive(Debug)]
pub(super) struct GuestRunner {
    kernel: Kernel,
    luc: PathBuf,
    /// Stands for all that a result depends on.
    build: String,
}

impl GuestRunner {
    /// Finds the kernel.
    pub(super) fn open(luc: &Path) -> Result<Self, EvaluateError> {
        if let Some(reason) = luc_vm::missing() {
            return Err(reason.into());
        }
        let kernel = Kernel::find(VERSION)?;
        let mut hash = Fnv::new();
        hash.add(kernel.release().as_bytes());
        hash.add(PREAMBLE.as_bytes());
        hash.add(&fs::read(luc).map_err(EvaluateError::file("read", luc))?);
        Ok(Self {
            kernel,
            luc: luc.to_owned(),
            build: hash.hex(),
        })
    }

    /// Stands for the kernel, the benchmark and the group's script: a result of another build is made again.
    pub(super) fn build(&self, group: &Group) -> String {
        let mut hash = Fnv::new();
        hash.add(self.build.as_bytes());
        hash.add(cold(group.load).as_bytes());
        hash.add(script(group).as_bytes());
        hash.hex()
    }

    /// The kernel's release.
    pub(super) fn release(&self) -> &str {
        self.kernel.release()
    }

    /// Boots a guest and runs a group.
    pub(super) fn run(&self, group: &Group) -> Result<Vec<Cell>, EvaluateError> {
        let memory_mib = DISK_MIB + group.load.memory_mib + SYSTEM_MIB;
        let mut vm = Vm::new(&self.kernel)
            .mode(Mode::VirtualTime { shift: SHIFT })
            .memory_mib(memory_mib as u32)
            .timeout(LIMIT)
            .module("fuse")
            .program(&self.luc)
            .content("/root/load.f", cold(group.load))
            .script(script(group));
        for argument in KERNEL_ARGUMENTS {
            vm = vm.kernel_argument(argument);
        }
        for config in group.configs() {
            let needs = guest_needs(config.file_system);
            vm = vm.module(needs.module);
            // Each program once, though most file systems have several configurations.
            if config.is_default() {
                vm = vm.program(needs.program);
            }
        }
        let outcome = vm.run()?;
        guests::check(&outcome, &group.name())?;
        let cell = |(number, config)| read(&outcome, group, number, config);
        (1..).zip(group.configs()).map(cell).collect()
    }
}

/// The workload file, made cold before its run.
fn cold(load: Load) -> String {
    load.text.replacen("run ", COLD, 1)
}

/// The guest's script.
fn script(group: &Group) -> String {
    let settings: Vec<String> = group
        .load
        .settings
        .iter()
        .map(|setting| format!("--set {setting}"))
        .collect();
    let mut script = format!(
        "DISK_MIB={DISK_MIB} MEMORY_MIB={} SECONDS_RUN={SECONDS} SEED={} SETTINGS='{}'\n{PREAMBLE}",
        group.load.memory_mib,
        group.seed,
        settings.join(" ")
    );
    for config in group.configs() {
        let _ = writeln!(
            script,
            "cell {} '{}' '{}' /root/load.f",
            config.file_system, config.mkfs, config.mount
        ); // a String takes any text
    }
    script
}

/// One cell's figures.
fn read(
    outcome: &Outcome,
    group: &Group,
    number: usize,
    config: Config,
) -> Result<Cell, EvaluateError> {
    let missing = |what: &str| EvaluateError::Missing {
        what: format!(
            "{what} of {}, {} {}",
            group.name(),
            config.file_system,
            config.options
        ),
    };
    let file = |kind: &str| outcome.file(&format!("{number}.{kind}"));
    let json = |kind: &str| -> Option<Value> { serde_json::from_str(&file(kind)?).ok() };
    let report = json("json").ok_or_else(|| missing("the report"))?;
    let disk = json("disk").ok_or_else(|| missing("the disk's counts"))?;
    let figure = |name: &str| report[name].as_f64().ok_or_else(|| missing(name));
    let count = |from: &Value, name: &str| from[name].as_u64().ok_or_else(|| missing(name));
    let mounted = file("mount").unwrap_or_default();
    Ok(Cell {
        file_system: config.file_system.to_owned(),
        options: config.options.to_owned(),
        rate: round(figure("flowops_per_second")?),
        operations: count(&report, "flowops")?,
        read_mib_per_s: round(figure("read_mib_per_second")?),
        written_mib_per_s: round(figure("written_mib_per_second")?),
        disk_reads: count(&disk, "reads")?,
        disk_writes: count(&disk, "writes")?,
        disk_flushes: count(&disk, "flushes")?,
        mounted: mounted
            .split_whitespace()
            .skip(2)
            .take(2)
            .collect::<Vec<_>>()
            .join(" "),
    })
}

/// Five digits are enough.
fn round(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_has_a_cell_for_each_configuration() {
        for group in Group::all() {
            let text = script(&group);
            let cells = text.lines().filter(|line| line.ends_with("/root/load.f"));
            assert_eq!(cells.count(), group.configs().len());
            let seed = format!(" SEED={} ", group.seed);
            assert!(text.starts_with("DISK_MIB=") && text.contains(&seed));
        }
    }

    #[test]
    fn a_workload_is_made_cold_before_its_run() {
        for load in super::super::cells::LOADS {
            let text = cold(load);
            let (before, run) = text.split_once(COLD).expect("made cold");
            assert!(before.contains("define process") && run.trim() == "60");
        }
    }
}
