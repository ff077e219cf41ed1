//! The plan: read from TOML, and checked whole before anything is made.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::SweepError;
use crate::energy;
use crate::filebench;
use crate::frequency::{self, Setting};
use crate::stats::Goal;

mod check;
mod file_systems;
#[cfg(test)]
mod tests;

pub(crate) use check::meant;
pub(crate) use file_systems::kernel_has;

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
    /// Name of the model, or a TOML file.
    pub model: String,
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
    #[serde(default, skip_deserializing, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Options of both, as those of `luc bench` without the dashes.
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
    /// Refused: devices are not formatted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<PathBuf>,
}

impl Default for Plan {
    /// Nothing is run anywhere.
    fn default() -> Self {
        Self {
            seed: one(),
            settle: settle(),
            stop: Stop::default(),
            disk: Disk::default(),
            threads: one_thread(),
            policy: no_policy(),
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

impl Workload {
    /// Reads the workload file, if it has one.
    fn load(&mut self) -> Result<(), SweepError> {
        if let Some(file) = &self.filebench {
            self.text = filebench::text(file)?;
        }
        Ok(())
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

    fn parse(text: &str, path: &Path) -> Result<Self, SweepError> {
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
        plan.check()?;
        Ok(plan)
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
        let mut words = vec!["--model".to_owned(), self.model.clone()];
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

    fn costs(&self) -> [(&'static str, &Option<String>); 3] {
        [
            ("flush", &self.flush),
            ("write", &self.write),
            ("read", &self.read),
        ]
    }
}
