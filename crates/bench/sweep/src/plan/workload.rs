//! What is run, and which number counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Policy, Size};
use crate::bench::Bench;
use crate::error::SweepError;

/// What is run: a built-in workload, a workload file or a command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// What the report calls it.
    pub name: String,
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
    /// Memory of a guest for it and the page cache, where the disk has a model; without it all of the guest's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    /// Clients, in place of the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<Vec<usize>>,
    /// Policies, in place of the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Vec<Policy>>,
    /// Speeds, in place of the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mips: Option<Vec<u64>>,
    /// Axis: numbers of processors of its guests, in place of the plan's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<Vec<u32>>,
    /// Repeats in virtual time, in place of the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<usize>,
    /// Names of its targets, in place of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Vec<String>>,
    /// The user's command; `{dir}`, `{threads}` and `{seed}` are replaced.
    pub command: Option<Vec<String>>,
    /// Further numbers of its JSON that are kept as counters `report.NAME`, by their pointers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, String>,
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

impl Workload {
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
