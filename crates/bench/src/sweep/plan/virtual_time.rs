//! Sweeps in virtual time: which kernel, how fast its processor is, and what of a plan such a sweep cannot have.

use std::time::Instant;

use luc_disk::units::parse_size_bytes;
use serde::{Deserialize, Serialize};

use super::super::error::SweepError;
use super::super::guests::Speed;
use super::check::unique;
use super::policy::SETTINGS;
use super::{Disk, Plan, Policy, Target, Workload, is_default, meant};

/// Files are made and written in a guest's memory, so its disk is no larger than this.
const LARGEST_DISK: &str = "1G";
/// The longest that the module holds a commit, µs; it takes no longer time.
pub(in crate::sweep) const LONGEST_HOLD_US: u64 = 50_000;
/// File systems that a guest has.
const FILE_SYSTEMS: [&str; 4] = ["ext2", "ext3", "ext4", "xfs"];

/// The section `[virtual]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VirtualTime {
    /// The distribution's kernel, as `6.1`.
    #[serde(default = "kernel")]
    pub kernel: String,
    /// Axis: millions of instructions per second of the one processor.
    pub mips: Vec<u64>,
    /// Repeats of a point, each with a seed of its own.
    #[serde(default = "repeats")]
    pub repeats: usize,
    /// Guests at a time; nothing depends on it.
    #[serde(skip, default = "jobs")]
    pub jobs: usize,
    /// No guest is started after it.
    #[serde(skip)]
    pub deadline: Option<Instant>,
}

fn kernel() -> String {
    "6.1".to_owned()
}

fn repeats() -> usize {
    3
}

fn jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl VirtualTime {
    /// Checks it, and all of `plan` that it bears on.
    pub(super) fn check(&self, plan: &Plan) -> Result<(), SweepError> {
        let refuse = |reason: String| Err(SweepError::Plan(reason));
        check_speeds("virtual.mips", &self.mips)?;
        if !(1..=1000).contains(&self.repeats) {
            return refuse(format!(
                "virtual.repeats = {}: write a number from 1 to 1000",
                self.repeats
            ));
        }
        if !is_default(&plan.stop) {
            return refuse(
                "stop does not go with virtual, where a repeat differs by its seed alone: write virtual.repeats"
                    .to_owned(),
            );
        }
        if !plan.frequency.is_empty() || !plan.frequency_options.is_empty() {
            return refuse("frequency does not go with virtual: write virtual.mips".to_owned());
        }
        if !plan.scheduler.is_empty() {
            return refuse("scheduler does not go with virtual: leave it out".to_owned());
        }
        if !is_default(&plan.energy) {
            return refuse("energy does not go with virtual: leave it out".to_owned());
        }
        if plan.disk.model != Disk::default().model {
            return refuse(format!(
                "disk.model = \"{}\" does not go with virtual: write model = \"fixed\"",
                plan.disk.model
            ));
        }
        if parse_size_bytes(&plan.disk.size)? > parse_size_bytes(LARGEST_DISK)? {
            return refuse(format!(
                "disk.size = {}: a guest's disk has at most {LARGEST_DISK}",
                plan.disk.size
            ));
        }
        plan.target.iter().try_for_each(check_target)?;
        for policy in plan.all_policies() {
            if policy == Policy::Auto {
                return refuse(
                    "policy 'auto' is the gate's, which guests do not have; write 'kernel:auto'"
                        .to_owned(),
                );
            }
        }
        plan.workload.iter().try_for_each(Self::check_workload)?;
        self.check_holds(plan)
    }

    /// Whether the module can hold commits for as long as it is told, in the guest's time.
    fn check_holds(&self, plan: &Plan) -> Result<(), SweepError> {
        for workload in &plan.workload {
            let speeds = workload.mips.as_ref().unwrap_or(&self.mips);
            let Some(&fastest) = speeds.iter().max() else {
                continue;
            };
            let stretch = Speed::of(plan, fastest).stretch;
            for (setting, &us) in &workload.settings {
                let is_time = setting.ends_with("_us");
                if is_time && stretch.stretch(us) > LONGEST_HOLD_US {
                    return Err(SweepError::Plan(format!(
                        "workload '{}': {setting} = {us} is {} us in a guest that stands for {fastest} MIPS, and the \
                         module holds no commit longer than {LONGEST_HOLD_US}: lower it, or virtual.mips",
                        workload.name,
                        stretch.stretch(us)
                    )));
                }
            }
        }
        Ok(())
    }

    fn check_workload(workload: &Workload) -> Result<(), SweepError> {
        let name = &workload.name;
        let refuse = |reason: String| Err(SweepError::Plan(format!("workload '{name}': {reason}")));
        if workload.bench.is_none() {
            return refuse("guests run built-in workloads only: write bench".to_owned());
        }
        if let Some(mips) = &workload.mips {
            check_speeds(&format!("workload '{name}': mips"), mips)?;
        }
        for setting in workload.settings.keys() {
            if !SETTINGS.contains(&&**setting) {
                return refuse(format!(
                    "settings: '{setting}'{}",
                    meant(setting, &SETTINGS)
                ));
            }
        }
        Ok(())
    }
}

/// What a plan without `[virtual]` must not have.
pub(super) fn check_host(plan: &Plan) -> Result<(), SweepError> {
    let refuse = |what: &str| {
        Err(SweepError::Plan(format!(
            "{what} goes with a section [virtual] only: write it, or leave {what} out"
        )))
    };
    if let Some(policy) = plan.all_policies().find(|policy| policy.module().is_some()) {
        return refuse(&format!("policy '{}'", policy.name()));
    }
    for workload in &plan.workload {
        if !workload.settings.is_empty() {
            return refuse("settings");
        }
        if workload.mips.is_some() {
            return refuse("mips");
        }
    }
    Ok(())
}

fn check_speeds(name: &str, mips: &[u64]) -> Result<(), SweepError> {
    unique(name, mips.iter().map(ToString::to_string))?;
    let least = mips.iter().copied().min().unwrap_or(1);
    if mips
        .iter()
        .any(|&mips| !(10..=100_000).contains(&mips) || mips > 16 * least)
    {
        return Err(SweepError::Plan(format!(
            "{name}: write numbers from 10 to 100000, the greatest at most 16 times the least"
        )));
    }
    Ok(())
}

fn check_target(target: &Target) -> Result<(), SweepError> {
    let name = &target.name;
    let refuse = |reason: String| Err(SweepError::Plan(format!("target '{name}': {reason}")));
    match &target.fs {
        None => refuse("guests have no directories of the host: write fs".to_owned()),
        Some(_) if target.device.is_some() => {
            refuse("guests have no devices of the host: leave device and erase out".to_owned())
        }
        Some(fs) if !FILE_SYSTEMS.contains(&&**fs) => refuse(format!(
            "guests have no {fs}; there are {}",
            FILE_SYSTEMS.join(", ")
        )),
        Some(_) if target.mkfs.contains('\'') || target.mount.contains('\'') => {
            refuse("mkfs and mount have no ' in a guest: leave it out".to_owned())
        }
        Some(_) if target.mkfs.split_whitespace().any(|word| word.starts_with("-E")) => refuse(
            "mkfs: -E is the guest's own, which makes the same file system each time: leave it out".to_owned(),
        ),
        Some(_) => Ok(()),
    }
}
