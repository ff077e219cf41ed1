//! The plan: read from TOML, and checked whole before anything is made.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::error::SweepError;
use crate::energy;
use crate::filebench;
use crate::frequency::{self, Setting};
use crate::stats::Goal;

mod check;
mod file_systems;
mod policy;
mod scheduler;
#[cfg(test)]
mod tests;
mod virtual_time;

pub(crate) use check::meant;
pub(crate) use file_systems::{kernel_has, least_size};
pub use policy::Policy;
pub use scheduler::Scheduler;
pub(super) use virtual_time::LONGEST_HOLD_US;
pub use virtual_time::VirtualTime;

/// A sweep: its axes, and when a point is repeated enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Plan {
    /// Of the order, and of the workloads.
    #[serde(default = "one")]
    pub seed: u64,
    /// Wait after the caches are dropped, before the workload.
    #[serde(default = "settle")]
    pub settle: String,
    /// When to stop.
    #[serde(default)]
    pub stop: Stop,
    /// The emulated disk of the targets with `fs`.
    #[serde(default)]
    pub disk: Disk,
    /// Axis: clients.
    #[serde(default = "one_thread")]
    pub threads: Vec<usize>,
    /// Axis: the gate's policy.
    #[serde(default = "no_policy")]
    pub policy: Vec<Policy>,
    /// Runs the points in guests in virtual time instead of here; its `mips` are an axis.
    #[serde(default, rename = "virtual", skip_serializing_if = "Option::is_none")]
    pub virtual_time: Option<VirtualTime>,
    /// Axis: the I/O scheduler of the disk; without it that stays as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scheduler: Vec<Scheduler>,
    /// Axis: the processors' frequency; without it they stay as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frequency: Vec<Setting>,
    /// Turbo and SMT.
    #[serde(default, skip_serializing_if = "frequency::Options::is_empty")]
    pub frequency_options: frequency::Options,
    /// What is measured of energy, and how.
    #[serde(default, skip_serializing_if = "is_default")]
    pub energy: energy::Options,
    /// Axis: what is run.
    pub workload: Vec<Workload>,
    /// Axis: where.
    pub target: Vec<Target>,
}

/// When a point is repeated enough.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stop {
    /// Half the 95 % interval over the median.
    pub goal: f64,
    /// Fewest repeats.
    pub min: usize,
    /// Most repeats.
    pub max: usize,
    /// Only the best target and policy is wanted: others are given up as soon as they are shown to be worse.
    #[serde(skip_serializing_if = "is_default")]
    pub best: bool,
}

/// What the emulated disk costs, as `luc disk create` takes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Disk {
    /// Name of the model, or a TOML file, relative to the plan.
    pub model: String,
    /// Where that file is.
    #[serde(skip)]
    pub file: Option<PathBuf>,
    /// Size, as in 512M.
    pub size: String,
    /// Of a flush; model fixed only, as the next two.
    pub flush: Option<String>,
    /// Of a write.
    pub write: Option<String>,
    /// Of a read.
    pub read: Option<String>,
}

/// A workload of `luc bench`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bench {
    /// File creation.
    Metarates,
    /// A mail server.
    Varmail,
    /// A database; the threads are its writers.
    Oltp,
    /// IOzone's.
    InitialWrite,
}

/// What is run: a built-in workload, a workload file or a command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// What the report calls it.
    pub name: String,
    /// A built-in one.
    pub bench: Option<Bench>,
    /// A workload file of Filebench's, or the name of a stock one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filebench: Option<String>,
    /// The text of that, so that results of a file that was changed are not mixed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Options of both, as those of `luc bench` without the dashes; of `bench`, a list of values is an axis.
    #[serde(default)]
    pub options: BTreeMap<String, toml::Value>,
    /// Settings of the kernel module under its policies, as `/sys/kernel/luc` has them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, u64>,
    /// Clients, in place of the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<Vec<usize>>,
    /// Policies, in place of the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Vec<Policy>>,
    /// Speeds, in place of the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mips: Option<Vec<u64>>,
    /// Names of its targets, in place of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Vec<String>>,
    /// The user's command; `{dir}`, `{threads}` and `{seed}` are replaced.
    pub command: Option<Vec<String>>,
    /// Its figure. Without it a built-in one's rate, or a command's run time.
    pub figure: Option<Figure>,
}

/// Where the figure is in what the workload prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// A regular expression; its first group is the number.
    pub regex: Option<String>,
    /// A JSON pointer, as `/a/b`.
    pub json: Option<String>,
    /// All matches are a series, whose warm-up is cut and whose mean counts.
    #[serde(default)]
    pub series: bool,
    /// What it is counted in.
    #[serde(default)]
    pub unit: String,
}

/// Where it is run: a fresh file system on an emulated disk, or an existing directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// What the report calls it.
    pub name: String,
    /// ext2, ext3, ext4, xfs, btrfs or f2fs.
    pub fs: Option<String>,
    /// Options of mkfs.
    #[serde(default)]
    pub mkfs: String,
    /// Options of mount -o.
    #[serde(default)]
    pub mount: String,
    /// Policies, in place of the workload's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Vec<Policy>>,
    /// The built-in workloads' fsyncs do nothing: what is left without them. UNSAFE.
    #[serde(default, rename = "no-fsync", skip_serializing_if = "is_default")]
    pub no_fsync: bool,
    /// An existing directory; a fresh one is made in it for each repeat.
    pub directory: Option<PathBuf>,
    /// A block device to be formatted, in place of the emulated disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<PathBuf>,
    /// The same again, as a promise that it may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erase: Option<PathBuf>,
    /// Whether that also holds for file systems and the like that are on it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub overwrite: bool,
}

impl Default for Plan {
    /// Nothing is run anywhere.
    fn default() -> Self {
        Self {
            virtual_time: None,
            seed: one(),
            settle: settle(),
            stop: Stop::default(),
            disk: Disk::default(),
            threads: one_thread(),
            policy: no_policy(),
            scheduler: Vec::new(),
            frequency: Vec::new(),
            frequency_options: frequency::Options::default(),
            energy: energy::Options::default(),
            workload: Vec::new(),
            target: Vec::new(),
        }
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self {
            goal: 0.05,
            min: 10,
            max: 40,
            best: false,
        }
    }
}

impl Default for Disk {
    fn default() -> Self {
        Self {
            model: "fixed".to_owned(),
            file: None,
            size: "1G".to_owned(),
            flush: None,
            write: None,
            read: None,
        }
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

fn no_policy() -> Vec<Policy> {
    vec![Policy::Off]
}

fn settle() -> String {
    "500ms".to_owned()
}

impl Bench {
    /// Its name as in `luc bench NAME`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Metarates => "metarates",
            Self::Varmail => "varmail",
            Self::Oltp => "oltp",
            Self::InitialWrite => "initial-write",
        }
    }

    /// Where its figure is in its report.
    pub(super) fn figure(self) -> &'static str {
        match self {
            Self::Metarates => "/creations_per_second",
            Self::Varmail | Self::Oltp => "/flowops_per_second",
            Self::InitialWrite => "/parent_kib_per_second/median",
        }
    }

    /// The option that takes the number of clients.
    pub(super) fn clients(self) -> &'static str {
        if self == Self::Oltp {
            "--writers"
        } else {
            "--threads"
        }
    }
}

impl Workload {
    /// Reads the workload file, if it has one.
    fn load(&mut self) -> Result<(), SweepError> {
        if !self.text.is_empty() {
            return Err(SweepError::Plan(format!(
                "workload '{}': text is kept with the results, and no key of a plan; write filebench = \"FILE.f\"",
                self.name
            )));
        }
        if let Some(file) = &self.filebench {
            self.text = filebench::text(file)?;
        }
        Ok(())
    }
}

impl Target {
    /// Whether it is a disk made anew for each repeat.
    pub(super) fn is_emulated(&self) -> bool {
        self.fs.is_some() && self.device.is_none()
    }
}

impl Plan {
    /// The plan in a file, checked.
    ///
    /// # Errors
    /// [`SweepError`], naming the line or the value.
    pub fn read(path: &Path) -> Result<Self, SweepError> {
        let text = fs::read_to_string(path).map_err(SweepError::file("read", path))?;
        Self::parse(&text, path)
    }

    /// A plan that was made by a program, if it is right.
    pub(crate) fn checked(self) -> Result<Self, SweepError> {
        self.check()?;
        Ok(self)
    }

    pub(crate) fn parse(text: &str, path: &Path) -> Result<Self, SweepError> {
        let mut plan: Self = toml::from_str(text).map_err(|error| SweepError::Syntax {
            path: path.to_owned(),
            line: 1 + error.span().map_or(0, |span| {
                text[..span.start.min(text.len())].matches('\n').count()
            }),
            reason: check::reason(error.message()),
        })?;
        for workload in &mut plan.workload {
            workload.load()?;
        }
        plan.disk.find_file(path)?;
        plan.check()?;
        Ok(plan)
    }

    /// How many guests run at a time, in virtual time.
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

    /// In virtual time: starts no guest after `deadline`, and reports what there is then.
    pub fn set_deadline(&mut self, deadline: Instant) {
        if let Some(virtual_time) = &mut self.virtual_time {
            virtual_time.deadline = Some(deadline);
        }
    }

    /// Every policy that it names.
    fn all_policies(&self) -> impl Iterator<Item = Policy> {
        let of_workloads = self
            .workload
            .iter()
            .filter_map(|workload| workload.policy.as_ref());
        let of_targets = self
            .target
            .iter()
            .filter_map(|target| target.policy.as_ref());
        let lists = std::iter::once(&self.policy)
            .chain(of_workloads)
            .chain(of_targets);
        lists.flatten().copied()
    }

    /// The first line of the results: what makes them comparable.
    pub(super) fn head(&self) -> Result<serde_json::Value, SweepError> {
        let mut head = serde_json::json!({ "version": 1, "plan": self });
        if let Some(file) = &self.disk.file {
            // A file that was changed is another disk.
            let text = fs::read_to_string(file).map_err(SweepError::file("read", file))?;
            head["model"] = text.into();
        }
        Ok(head)
    }

    /// Whether it changes settings of the processors.
    pub(super) fn lends_processors(&self) -> bool {
        let is_frequency = |setting: &Setting| setting.khz().is_some();
        self.frequency.iter().any(is_frequency) || !self.frequency_options.is_empty()
    }

    /// Whether it limits the processors' time.
    pub(super) fn throttles(&self) -> bool {
        self.frequency
            .iter()
            .any(|setting| setting.share().is_some())
    }

    /// When a point is repeated enough. In virtual time a repeat differs by its seed alone, and their number is given.
    pub(super) fn goal(&self) -> Goal {
        if let Some(virtual_time) = &self.virtual_time {
            return Goal {
                relative_half_width: self.stop.goal,
                min: virtual_time.repeats,
                max: virtual_time.repeats,
            };
        }
        Goal {
            relative_half_width: self.stop.goal,
            min: self.stop.min,
            max: self.stop.max,
        }
    }
}

impl Disk {
    /// The words of `luc disk create`.
    pub(super) fn words(&self) -> Vec<String> {
        let file = self.file.as_ref();
        let model = file.map_or(self.model.clone(), |file| file.display().to_string());
        let mut words = vec!["--model".to_owned(), model];
        words.extend(["--size".to_owned(), self.size.clone()]);
        for (option, value) in self.costs() {
            words.extend(
                value
                    .iter()
                    .flat_map(|value| [format!("--{option}"), value.clone()]),
            );
        }
        words
    }

    /// Finds the model's file beside the plan.
    fn find_file(&mut self, plan: &Path) -> Result<(), SweepError> {
        if self.model.ends_with(".toml") {
            let file = plan.parent().unwrap_or(Path::new("")).join(&self.model);
            let whole = std::path::absolute(&file).map_err(SweepError::file("find", &file))?;
            self.file = Some(whole);
        }
        Ok(())
    }

    fn costs(&self) -> [(&'static str, &Option<String>); 3] {
        [
            ("flush", &self.flush),
            ("write", &self.write),
            ("read", &self.read),
        ]
    }
}
