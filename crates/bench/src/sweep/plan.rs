//! The plan: read from TOML, and checked whole before anything is made.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::SweepError;
use crate::energy;
use crate::frequency::{self, Setting};
use crate::stats::Goal;

mod check;
mod file_systems;
mod scheduler;
#[cfg(test)]
mod tests;

pub(super) use check::meant;
pub(super) use file_systems::least_size;
pub use scheduler::Scheduler;

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

/// The gate, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// The workload as it is.
    Off,
    /// Under `luc run --level gate --policy auto`.
    Auto,
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

/// What is run: a built-in workload or a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// What the report calls it.
    pub name: String,
    /// A built-in one.
    pub bench: Option<Bench>,
    /// Its options, as those of `luc bench` without the dashes.
    #[serde(default)]
    pub options: BTreeMap<String, toml::Value>,
    /// The user's command; `{dir}`, `{threads}` and `{seed}` are replaced.
    pub command: Option<Vec<String>>,
    /// Its figure; its run time if there is none.
    pub figure: Option<Figure>,
}

/// Where a command's figure is in its standard output.
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

impl Default for Stop {
    fn default() -> Self {
        Self {
            goal: 0.05,
            min: 10,
            max: 40,
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
}

impl Policy {
    /// As in the plan.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Auto => "auto",
        }
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

    fn parse(text: &str, path: &Path) -> Result<Self, SweepError> {
        let mut plan: Self = toml::from_str(text).map_err(|error| SweepError::Syntax {
            path: path.to_owned(),
            line: 1 + error.span().map_or(0, |span| {
                text[..span.start.min(text.len())].matches('\n').count()
            }),
            reason: check::reason(error.message()),
        })?;
        plan.disk.find_file(path)?;
        plan.check()?;
        Ok(plan)
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

    /// When a point is repeated enough.
    pub(super) fn goal(&self) -> Goal {
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
