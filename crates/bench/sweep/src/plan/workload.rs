//! Workloads of a plan, and their figures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{PlanSize, SweepPolicy};
use crate::builtin_workload::BuiltinWorkload;
use crate::error::SweepError;

/// A built-in workload, a workload file or a command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanWorkload {
    pub name: String,
    pub bench: Option<BuiltinWorkload>,
    /// A workload file of Filebench's, or the name of a stock one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filebench: Option<String>,
    /// The text of that, so that results of a file that was changed are not mixed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Options of both, named as in `luc bench` without the dashes. With `bench`, a list of values is an axis.
    #[serde(default)]
    pub options: BTreeMap<String, toml::Value>,
    /// Settings of the kernel module under its policies, as `/sys/kernel/luc` has them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, u64>,
    /// Memory of a guest for it and the page cache, where the disk has a model; without it all of the guest's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<PlanSize>,
    /// Numbers of clients, which replace the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<Vec<usize>>,
    /// Policies, which replace the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Vec<SweepPolicy>>,
    /// Speeds, which replace the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mips: Option<Vec<u64>>,
    /// Axis: numbers of its guests' processors, which replace the plan's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<Vec<u32>>,
    /// Number of repeats in virtual time, which replaces the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<usize>,
    /// Names of its targets; all targets without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Vec<String>>,
    /// The user's command; `{dir}`, `{threads}` and `{seed}` are replaced.
    pub command: Option<Vec<String>>,
    /// Further numbers of its JSON that are kept as counters `report.NAME`, by their pointers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, String>,
    /// Figure of the workload. By default the rate of a built-in workload, or the run time of a command.
    pub figure: Option<FigureLocation>,
}

/// Place of the figure in the workload's output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureLocation {
    /// A regular expression; its first group is the number.
    pub regex: Option<String>,
    /// A JSON pointer, as `/a/b`.
    pub json: Option<String>,
    /// Takes all matches as a series: cuts its warm-up and takes the mean.
    #[serde(default)]
    pub series: bool,
    #[serde(default)]
    pub unit: String,
}

impl PlanWorkload {
    /// Reads the workload file, if it has one.
    pub(super) fn load(&mut self) -> Result<(), SweepError> {
        if !self.text.is_empty() {
            return Err(SweepError::Plan(format!(
                "workload '{}': text is kept with the results, and no key of a plan; write filebench = \"FILE.f\"",
                self.name
            )));
        }
        if let Some(file) = &self.filebench {
            self.text = luc_filebench::text(file)?;
        }
        Ok(())
    }
}
