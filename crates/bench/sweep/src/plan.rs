//! The plan: read from TOML, and checked whole before anything is made.

use std::fs;
use std::path::{Path, PathBuf};

use luc_borrow::{DeviceRequest, IoScheduler};
use luc_power::energy;
use luc_power::frequency::{self, FrequencySetting};
use luc_stats::StoppingRule;
use luc_units::OnPath as _;
use serde::{Deserialize, Serialize};

use super::error::SweepError;
use super::time_scale::GuestSpeed;

mod check;
mod durations_and_sizes;
mod file_systems;
mod plan_disk;
mod policy;
mod target_checks;
#[cfg(test)]
mod tests;
mod unique_list;
mod virtual_time;
mod workload;

pub use durations_and_sizes::{PlanDuration, PlanSize};
pub use file_systems::{distribution_has, kernel_has, least_bytes};
pub use plan_disk::{PlanDisk, TargetDisk};
pub use policy::{BatchingRule, CopyOutRule, SweepPolicy};
pub use virtual_time::MAX_GUEST_DISK_BYTES;
pub(super) use virtual_time::MAX_HOLD_US;
pub use virtual_time::VirtualTime;
pub(super) use workload::FigureLocation;
pub use workload::PlanWorkload;

/// A sweep: its axes, and when a point is repeated enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SweepPlan {
    /// Seed of the order and of the workloads.
    #[serde(default = "one")]
    pub seed: u64,
    /// Wait after the caches are dropped, before the workload.
    #[serde(default = "settle")]
    pub settle: PlanDuration,
    /// Idle processors poll and do not halt.
    #[serde(default, skip_serializing_if = "is_default")]
    pub poll_idle: bool,
    #[serde(default)]
    pub stop: StopRule,
    /// The emulated disk of the targets with `fs`.
    #[serde(default)]
    pub disk: PlanDisk,
    #[serde(default = "one_thread")]
    pub threads: Vec<usize>,
    /// Axis: the gate's policy.
    #[serde(default = "no_policy")]
    pub policy: Vec<SweepPolicy>,
    /// Runs the points in guests in virtual time instead of here; its `mips` are an axis.
    #[serde(default, rename = "virtual", skip_serializing_if = "Option::is_none")]
    pub virtual_time: Option<VirtualTime>,
    /// Axis: I/O schedulers of the disk. Without it the scheduler is not changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scheduler: Vec<IoScheduler>,
    /// Axis: the processors' frequency; absent: unchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frequency: Vec<FrequencySetting>,
    #[serde(default, skip_serializing_if = "frequency::TurboAndSmtOptions::is_empty")]
    pub frequency_options: frequency::TurboAndSmtOptions,
    /// Energy that is measured, and how.
    #[serde(default, skip_serializing_if = "is_default")]
    pub energy: energy::EnergyOptions,
    pub workload: Vec<PlanWorkload>,
    pub target: Vec<SweepTarget>,
}

/// Rule by which a point has enough repeats.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StopRule {
    /// Half the 95 % interval over the median.
    pub goal: f64,
    pub min: usize,
    pub max: usize,
    /// Only the best target and policy is wanted: others are given up as soon as they are shown to be worse.
    #[serde(skip_serializing_if = "is_default")]
    pub best: bool,
    /// A repeat is made again if the hypervisor took more than this share of the processors' time meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stolen: Option<f64>,
}

/// Place where a workload runs: a fresh file system on an emulated disk or device, or an existing directory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepTarget {
    pub name: String,
    /// ext2, ext3, ext4, xfs, btrfs or f2fs.
    pub fs: Option<String>,
    #[serde(default)]
    pub mkfs: String,
    /// Options of mount -o.
    #[serde(default)]
    pub mount: String,
    /// Policies, which replace the workload's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Vec<SweepPolicy>>,
    /// Fsyncs of the built-in workloads do nothing, to measure the time left without them. UNSAFE.
    #[serde(default, rename = "no-fsync", skip_serializing_if = "is_default")]
    pub no_fsync: bool,
    /// Values of the emulated disk, which replace the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<TargetDisk>,
    /// An existing directory; a fresh one is made in it for each repeat.
    pub directory: Option<PathBuf>,
    /// Block device to be formatted, which replaces the emulated disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<PathBuf>,
    /// The same again, as a promise that it may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erase: Option<PathBuf>,
    /// Whether that also holds for file systems and the like that are on it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub overwrite: bool,
}

impl Default for SweepPlan {
    /// Returns a plan without workloads and targets.
    fn default() -> Self {
        Self {
            virtual_time: None,
            seed: one(),
            settle: settle(),
            poll_idle: false,
            stop: StopRule::default(),
            disk: PlanDisk::default(),
            threads: one_thread(),
            policy: no_policy(),
            scheduler: Vec::new(),
            frequency: Vec::new(),
            frequency_options: frequency::TurboAndSmtOptions::default(),
            energy: energy::EnergyOptions::default(),
            workload: Vec::new(),
            target: Vec::new(),
        }
    }
}

impl Default for StopRule {
    fn default() -> Self {
        Self { goal: 0.05, min: 10, max: 40, best: false, stolen: None }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn one() -> u64 {
    1
}

fn one_thread() -> Vec<usize> {
    vec![1]
}

fn no_policy() -> Vec<SweepPolicy> {
    vec![SweepPolicy::Off]
}

fn settle() -> PlanDuration {
    PlanDuration::of_ms(500)
}

impl SweepTarget {
    /// Returns whether it is a disk made anew for each repeat.
    pub(super) fn is_emulated(&self) -> bool {
        self.fs.is_some() && self.device.is_none()
    }

    /// Returns the device to be borrowed; `None` for directories and emulated disks.
    pub(super) fn device_request(&self) -> Option<DeviceRequest> {
        let file_system = self.fs.clone().unwrap_or_default();
        Some(DeviceRequest {
            path: self.device.clone()?,
            min_bytes: least_bytes(&file_system),
            file_system,
            overwrite: self.overwrite,
        })
    }
}

impl SweepPlan {
    /// Reads a plan from a file and checks it.
    ///
    /// # Errors
    /// [`SweepError`], naming the line or the value.
    pub fn read(path: &Path) -> Result<Self, SweepError> {
        let text = fs::read_to_string(path).map_err(SweepError::io("read", path))?;
        Self::parse(&text, path)
    }

    /// Checks a plan that was made by a program.
    ///
    /// # Errors
    /// [`SweepError`], naming the value.
    pub fn checked(self) -> Result<Self, SweepError> {
        self.check()?;
        Ok(self)
    }

    /// Returns a processor of `mips` in this plan's guests.
    pub(crate) fn speed(&self, mips: u64) -> GuestSpeed {
        let of_workloads = self.workload.iter().filter_map(|load| load.mips.as_ref());
        let of_plan = self.virtual_time.iter().map(|time| &time.mips);
        let least = of_plan.chain(of_workloads).flatten().min();
        let instruction = self.virtual_time.as_ref().and_then(|time| time.instruction.as_ref());
        match instruction {
            Some(instruction) => GuestSpeed::of_instruction(instruction.ns(), mips),
            None => GuestSpeed::new(*least.unwrap_or(&mips), mips),
        }
    }

    /// Parses a plan and checks it. `path` is named in errors; files in the plan are below its folder.
    ///
    /// # Errors
    /// [`SweepError`], naming the line or the value.
    pub fn parse(text: &str, path: &Path) -> Result<Self, SweepError> {
        let mut plan: Self = toml::from_str(text).map_err(|error| SweepError::Syntax {
            path: path.to_owned(),
            line: 1 + error
                .span()
                .map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count()),
            reason: check::reason(error.message()),
        })?;
        for workload in &mut plan.workload {
            workload.load()?;
        }
        plan.disk.find_file(path)?;
        plan.check()?;
        Ok(plan)
    }

    /// Sets the number of guests that run at a time in virtual time.
    ///
    /// # Errors
    /// [`SweepError::Plan`]: it has no guests.
    pub fn set_jobs(&mut self, jobs: usize) -> Result<(), SweepError> {
        let Some(virtual_time) = &mut self.virtual_time else {
            let reason = "--jobs goes with a section [virtual] only: repeats on one machine would disturb each other";
            return Err(SweepError::Plan(reason.to_owned()));
        };
        virtual_time.jobs = jobs;
        Ok(())
    }

    /// Returns whether guests differ in the number of their processors.
    pub(crate) fn has_processors_axis(&self) -> bool {
        let mut workloads = self.workload.iter();
        workloads.any(|workload| workload.processors.is_some())
    }

    /// Returns the emulated disk of a target.
    pub(crate) fn disk_of(&self, target: &SweepTarget) -> PlanDisk {
        self.disk.with(target.disk.as_ref())
    }

    /// Returns every policy that it names.
    pub(crate) fn all_policies(&self) -> impl Iterator<Item = SweepPolicy> {
        let of_workloads = self.workload.iter().filter_map(|workload| workload.policy.as_ref());
        let of_targets = self.target.iter().filter_map(|target| target.policy.as_ref());
        let lists = std::iter::once(&self.policy).chain(of_workloads).chain(of_targets);
        lists.flatten().copied()
    }

    /// Returns the first line of the results. Results with another first line are not comparable.
    pub(super) fn head(&self) -> Result<serde_json::Value, SweepError> {
        let mut head = serde_json::json!({ "version": 1, "plan": self });
        if let Some(file) = &self.disk.file {
            // A changed file is another disk.
            let text = fs::read_to_string(file).map_err(SweepError::io("read", file))?;
            head["model"] = text.into();
        }
        Ok(head)
    }

    /// Returns whether it changes settings of the processors.
    pub(super) fn lends_processors(&self) -> bool {
        let is_frequency = |setting: &FrequencySetting| setting.khz().is_some();
        self.frequency.iter().any(is_frequency) || !self.frequency_options.is_empty()
    }

    pub(super) fn throttles(&self) -> bool {
        self.frequency.iter().any(|setting| setting.share().is_some())
    }

    /// Returns the goal of a workload's points, unless only the best is wanted. In virtual time, repeats differ only by
    /// their seed, and the plan gives their number.
    pub(super) fn goal_of(&self, workload: &PlanWorkload) -> StoppingRule {
        match self.repeats_of(workload) {
            Some(repeats) => {
                StoppingRule { relative_half_width: self.stop.goal, min: repeats, max: repeats }
            }
            None => self.goal(),
        }
    }

    /// Returns the goal of points without a fixed number of repeats.
    pub(super) fn goal(&self) -> StoppingRule {
        StoppingRule { relative_half_width: self.stop.goal, min: self.stop.min, max: self.stop.max }
    }

    /// Returns the number of repeats of a workload's points; `None` if the figures decide.
    pub(super) fn repeats_of(&self, workload: &PlanWorkload) -> Option<usize> {
        let guests = self.virtual_time.as_ref().filter(|_| !self.stop.best)?;
        Some(workload.repeats.unwrap_or(guests.repeats))
    }
}
