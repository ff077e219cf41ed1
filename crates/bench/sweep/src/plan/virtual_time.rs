//! Sweeps in virtual time: kernel, processor speed, and checks of settings that it excludes.

use std::ops::RangeInclusive;

use luc_units::format_size;
use luc_vm::Qemu;
use serde::{Deserialize, Serialize};

use super::super::error::SweepError;
use super::file_systems::distribution_has;
use super::policy::SETTINGS;
use super::unique_list::check_unique;
use super::{
    PlanDisk, PlanDuration, PlanWorkload, SweepPlan, SweepPolicy, SweepTarget, is_default,
};
use luc_workload::name_suggestion::meant;

/// Files are made and written in a guest's memory, so its disk is no larger than this.
const MAX_LAGDISK_BYTES: u64 = 1 << 30;
/// The same of one that has a model.
pub const MAX_GUEST_DISK_BYTES: u64 = 4 << 30;
/// Memory that a benchmark and its pages need in a guest.
const MIN_MEMORY_BYTES: u64 = 16 << 20;
/// Speeds at which no time has to be stretched: an instruction takes a whole power of two of nanoseconds.
const UNSTRETCHED_MIPS: [u64; 4] = [1000, 500, 250, 125];
/// Most processors of a guest: with many more its boot takes minutes.
const MAX_PROCESSORS: u32 = 64;
/// The longest that the module holds a commit, µs; it takes no longer time.
pub(crate) const MAX_HOLD_US: u64 = 50_000;
/// Range of the module's stretch of its times, in thousandths.
const MODULE_STRETCH: RangeInclusive<u64> = 10..=100_000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VirtualTime {
    /// The distribution's kernel, as `6.1`.
    #[serde(default = "kernel")]
    pub kernel: String,
    /// Axis: millions of instructions per second of a processor.
    pub mips: Vec<u64>,
    /// Number of a guest's processors, run by the QEMU that is best at several. Without it, one processor and the
    /// system's QEMU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<u32>,
    /// Time of an instruction in the guests. Without it, the time at which the slowest speed shortens no other time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction: Option<PlanDuration>,
    /// Repeats of a point, each with a seed of its own.
    #[serde(default = "repeats")]
    pub repeats: usize,
    /// Guests at a time; nothing depends on it.
    #[serde(skip, default = "jobs")]
    pub jobs: usize,
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
    /// Returns on the distribution's `kernel`, as `6.1`, at one speed.
    pub fn of(version: &str, mips: u64) -> Self {
        Self {
            kernel: version.to_owned(),
            mips: vec![mips],
            processors: None,
            instruction: None,
            repeats: repeats(),
            jobs: jobs(),
        }
    }

    pub(crate) fn qemu(&self) -> Result<Qemu, SweepError> {
        Ok(match self.processors {
            Some(_) => Qemu::for_several()?,
            None => Qemu::system()?,
        })
    }

    /// Checks it, and all of `plan` that it bears on.
    pub(super) fn check(&self, plan: &SweepPlan) -> Result<(), SweepError> {
        let refuse = |reason: String| Err(SweepError::Plan(reason));
        // 1. The settings of `virtual` itself.
        check_speeds("virtual.mips", &self.mips)?;
        if let Some(instruction) = &self.instruction
            && !(instruction.ns().is_power_of_two() && instruction.ns() <= 512)
        {
            return refuse(format!(
                "virtual.instruction = {instruction}: write 1ns, 2ns, 4ns or another power of two up to 512ns"
            ));
        }
        check_processors("virtual.processors", self.processors.iter())?;
        check_repeats("virtual.repeats", self.repeats)?;
        // 2. Settings of the plan that make no sense in virtual time.
        let unfit = [
            (
                plan.poll_idle || plan.stop.stolen.is_some(),
                "poll-idle and stop.stolen do not go with virtual, where no other guest disturbs: leave them out",
            ),
            (
                plan.stop.best && self.repeats != repeats(),
                "virtual.repeats does not go with stop.best: write stop.min and stop.max",
            ),
            (
                !plan.stop.best && !is_default(&plan.stop),
                "stop without stop.best does not go with virtual, where a repeat differs by its seed alone: write \
                 virtual.repeats",
            ),
            (
                !plan.frequency.is_empty() || !plan.frequency_options.is_empty(),
                "frequency does not go with virtual: write virtual.mips",
            ),
            (!plan.scheduler.is_empty(), "scheduler does not go with virtual: leave it out"),
            (!is_default(&plan.energy), "energy does not go with virtual: leave it out"),
        ];
        if let Some((_, reason)) = unfit.into_iter().find(|(is_unfit, _)| *is_unfit) {
            return refuse(reason.to_owned());
        }
        // 3. Disks, targets, policies and workloads.
        let largest =
            if plan.disk.is_modelled() { MAX_GUEST_DISK_BYTES } else { MAX_LAGDISK_BYTES };
        for PlanDisk { size, model, .. } in plan.target.iter().map(|target| plan.disk_of(target)) {
            if size.bytes() > largest {
                return refuse(format!(
                    "disk.size = {size}: a guest's disk of model {model} has at most {}",
                    format_size(largest)
                ));
            }
        }
        plan.target.iter().try_for_each(|target| check_target(target, &self.kernel))?;
        for policy in plan.all_policies() {
            if let SweepPolicy::Gate(batching) = policy {
                return refuse(format!(
                    "policy '{policy}' is the gate's, which guests do not have; write 'kernel:{}'",
                    batching.name()
                ));
            }
        }
        for workload in &plan.workload {
            self.check_workload(workload)?;
            if plan.stop.best && workload.repeats.is_some() {
                return refuse(format!(
                    "workload '{}': repeats does not go with stop.best: write stop.min and stop.max",
                    workload.name
                ));
            }
            check_memory(workload, plan.disk.is_modelled())?;
        }
        self.check_unstretched(plan)?;
        check_holds(plan)?;
        self.check_module_stretch(plan)
    }

    /// Checks that the plan has a speed without stretching if it has workload files, whose times cannot be stretched.
    fn check_unstretched(&self, plan: &SweepPlan) -> Result<(), SweepError> {
        let mut files = plan.workload.iter().filter(|load| load.filebench.is_some());
        let Some(PlanWorkload { name, .. }) = files.next() else {
            return Ok(());
        };
        let of_workloads = plan.workload.iter().filter_map(|load| load.mips.as_ref());
        let speeds: Vec<u64> = of_workloads.chain([&self.mips]).flatten().copied().collect();
        let is_one = speeds.iter().all(|speed| *speed == speeds[0]);
        if is_one && UNSTRETCHED_MIPS.contains(&speeds[0]) {
            return Ok(());
        }
        Err(SweepError::Plan(format!(
            "virtual.mips = {:?}: with the workload file '{name}' times cannot be stretched: write one of \
             1000, 500, 250 and 125",
            self.mips
        )))
    }

    /// Checks that the module, if it is used, can stretch its times as much as the guest's others.
    fn check_module_stretch(&self, plan: &SweepPlan) -> Result<(), SweepError> {
        let is_kernel = |policy: SweepPolicy| matches!(policy, SweepPolicy::Kernel(..));
        if !plan.all_policies().any(is_kernel) {
            return Ok(());
        }
        let of_workloads = plan.workload.iter().filter_map(|load| load.mips.as_ref());
        for &mips in of_workloads.chain([&self.mips]).flatten() {
            let permille = plan.speed(mips).scale.permille;
            if !MODULE_STRETCH.contains(&permille) {
                return Err(SweepError::Plan(format!(
                    "virtual.instruction: with it a guest of {mips} MIPS has times {} times as long, and the module makes \
                     its own 0.01 to 100 times as long: write another one, or leave it out",
                    permille as f64 / 1000.0
                )));
            }
        }
        Ok(())
    }

    fn check_workload(&self, workload: &PlanWorkload) -> Result<(), SweepError> {
        let name = &workload.name;
        let refuse = |reason: String| Err(SweepError::Plan(format!("workload '{name}': {reason}")));
        if workload.command.is_some() {
            return refuse(
                "guests have no programs of the host: write bench or filebench".to_owned(),
            );
        }
        if let Some(mips) = &workload.mips {
            check_speeds(&format!("workload '{name}': mips"), mips)?;
        }
        if let Some(repeats) = workload.repeats {
            check_repeats(&format!("workload '{name}': repeats"), repeats)?;
        }
        if let Some(numbers) = &workload.processors {
            let what = format!("workload '{name}': processors");
            check_unique(&what, numbers.iter().map(ToString::to_string))?;
            check_processors(&what, numbers.iter())?;
            if self.processors.is_none() {
                return refuse(
                    "processors takes the place of virtual.processors: write that, too".to_owned(),
                );
            }
        }
        for setting in workload.settings.keys() {
            if !SETTINGS.contains(&&**setting) {
                return refuse(format!("settings: '{setting}'{}", meant(setting, &SETTINGS)));
            }
        }
        Ok(())
    }
}

/// Checks that a plan without `[virtual]` has nothing that only guests have.
pub(super) fn check_host(plan: &SweepPlan) -> Result<(), SweepError> {
    let refuse = |what: &str| {
        Err(SweepError::Plan(format!(
            "{what} goes with a section [virtual] only: write it, or leave {what} out"
        )))
    };
    let is_kernel = |policy: &SweepPolicy| matches!(policy, SweepPolicy::Kernel(..));
    if let Some(policy) = plan.all_policies().find(is_kernel) {
        return refuse(&format!("policy '{policy}'"));
    }
    for workload in &plan.workload {
        if !workload.settings.is_empty() {
            return refuse("settings");
        }
        if workload.mips.is_some() {
            return refuse("mips");
        }
        if workload.processors.is_some() {
            return refuse("processors");
        }
        if workload.repeats.is_some() {
            return refuse("repeats");
        }
        if workload.memory.is_some() {
            return refuse("memory");
        }
    }
    Ok(())
}

/// Checks that no setting exceeds the longest hold of the module.
fn check_holds(plan: &SweepPlan) -> Result<(), SweepError> {
    for workload in &plan.workload {
        for (setting, us) in &workload.settings {
            if setting.ends_with("_us") && *us > MAX_HOLD_US {
                return Err(SweepError::Plan(format!(
                    "workload '{}': {setting} = {us}: the module holds no commit longer than {MAX_HOLD_US} us: lower \
                     it",
                    workload.name
                )));
            }
        }
    }
    Ok(())
}

fn check_memory(workload: &PlanWorkload, is_modelled: bool) -> Result<(), SweepError> {
    let Some(memory) = &workload.memory else {
        return Ok(());
    };
    let refuse = |reason: String| {
        let name = &workload.name;
        Err(SweepError::Plan(format!("workload '{name}': {reason}")))
    };
    if !is_modelled {
        return refuse(
            "memory goes with a disk.model other than fixed: leave one of them out".to_owned(),
        );
    }
    if memory.bytes() < MIN_MEMORY_BYTES {
        return refuse(format!(
            "memory = {memory}: write 16M or more, or the benchmark itself does not fit"
        ));
    }
    Ok(())
}

fn check_speeds(name: &str, mips: &[u64]) -> Result<(), SweepError> {
    check_unique(name, mips.iter().map(ToString::to_string))?;
    let least = mips.iter().copied().min().unwrap_or(1);
    if mips.iter().any(|&mips| !(10..=100_000).contains(&mips) || mips > 16 * least) {
        return Err(SweepError::Plan(format!(
            "{name}: write numbers from 10 to 100000, the greatest at most 16 times the least"
        )));
    }
    Ok(())
}

fn check_processors<'a>(
    name: &str,
    mut numbers: impl Iterator<Item = &'a u32>,
) -> Result<(), SweepError> {
    match numbers.find(|number| !(1..=MAX_PROCESSORS).contains(number)) {
        Some(number) => Err(SweepError::Plan(format!(
            "{name} = {number}: write a number from 1 to {MAX_PROCESSORS}"
        ))),
        None => Ok(()),
    }
}

fn check_repeats(name: &str, repeats: usize) -> Result<(), SweepError> {
    if (1..=1000).contains(&repeats) {
        return Ok(());
    }
    Err(SweepError::Plan(format!("{name} = {repeats}: write a number from 1 to 1000")))
}

fn check_target(target: &SweepTarget, kernel: &str) -> Result<(), SweepError> {
    let name = &target.name;
    let refuse = |reason: String| Err(SweepError::Plan(format!("target '{name}': {reason}")));
    match &target.fs {
        None => refuse("guests have no directories of the host: write fs".to_owned()),
        Some(_) if target.device.is_some() => {
            refuse("guests have no devices of the host: leave device and erase out".to_owned())
        }
        Some(fs) if !distribution_has(kernel, fs) => refuse(format!(
            "Linux {kernel} has no {fs}: write virtual.kernel = \"6.1\", or leave the target out"
        )),
        Some(_) if target.mkfs.contains('\'') || target.mount.contains('\'') => {
            refuse("mkfs and mount have no ' in a guest: leave it out".to_owned())
        }
        Some(_) if target.mkfs.split_whitespace().any(|word| word.starts_with("-E")) => refuse(
            "mkfs: -E is the guest's own, which makes the same file system each time: leave it out"
                .to_owned(),
        ),
        Some(_) => Ok(()),
    }
}
