//! What has been measured, on disk as soon as it is there.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::super::EvaluateError;
use super::super::guests;
use super::cells::{Group, Load, Sheet, Speed};

/// One setting's figures. Times and rates are those of the speed that the guest stands for; counts
/// are of the whole run, making the files and warm-up included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Cell {
    pub(super) setting: String,
    pub(super) rate: f64,
    pub(super) second_rate: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fsync_mean_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) write_mean_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) write_p99_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) flushes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) commits: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) commits_by_fsync: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fsyncs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fsyncs_waited_two: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) holds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hold_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) writes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) writes_delayed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) write_delay_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) copies: Option<u64>,
}

impl Cell {
    /// Fsyncs that each commit served that any asked for.
    pub(super) fn fsyncs_per_commit(&self) -> Option<f64> {
        ratio(self.fsyncs?, self.commits_by_fsync?)
    }

    /// Commits that an fsync waited for on average: its own, and the one under way before it.
    pub(super) fn commits_waited(&self) -> Option<f64> {
        Some(1.0 + ratio(self.fsyncs_waited_two?, self.fsyncs?)?)
    }

    /// Share of changes of metadata that had to wait for a commit.
    pub(super) fn delayed_share(&self) -> Option<f64> {
        ratio(self.writes_delayed?, self.writes?)
    }

    /// How long those waited on average, ms.
    pub(super) fn mean_delay_ms(&self) -> Option<f64> {
        let delayed = self.writes_delayed? as f64;
        (delayed > 0.0).then_some(self.write_delay_ms? / delayed)
    }
}

fn ratio(numerator: u64, denominator: u64) -> Option<f64> {
    (denominator > 0).then(|| numerator as f64 / denominator as f64)
}

/// All groups that have been measured, by their place in the sweep.
#[derive(Debug)]
pub(super) struct Results(guests::Results<Cell>);

impl Results {
    /// Those of an earlier run, if there are any.
    pub(super) fn open(path: &Path, kernel: &str) -> Result<Self, EvaluateError> {
        guests::Results::open("kernel", path, kernel).map(Self)
    }

    /// Whether nothing has been measured.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a group is there and of this build.
    pub(super) fn has(&self, group: Group, build: &str) -> bool {
        self.0.has(&group.name(), build)
    }

    /// Keeps a group's cells.
    pub(super) fn add(
        &mut self,
        group: Group,
        build: String,
        cells: Vec<Cell>,
    ) -> Result<(), EvaluateError> {
        self.0.add(group.name(), build, cells)
    }

    /// How many groups there are of how many builds.
    pub(super) fn builds(&self, build: impl Fn(Group) -> String) -> (usize, usize) {
        let all = Group::all();
        let there = all.iter().filter(|group| self.0.is_there(&group.name()));
        let current = all
            .iter()
            .filter(|group| self.has(**group, &build(**group)));
        (there.count(), current.count())
    }

    /// A cell.
    pub(super) fn cell(
        &self,
        sheet: Sheet,
        load: Load,
        speed: Speed,
        setting: &str,
    ) -> Option<&Cell> {
        self.cells(sheet, load, speed)?
            .iter()
            .find(|cell| cell.setting == setting)
    }

    /// A group's cells.
    pub(super) fn cells(&self, sheet: Sheet, load: Load, speed: Speed) -> Option<&[Cell]> {
        self.0.cells(&Group { sheet, load, speed }.name())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::cells::SPEEDS;
    use super::*;

    fn cell(setting: &str) -> Cell {
        Cell {
            setting: setting.to_owned(),
            rate: 100.5,
            second_rate: 90.5,
            fsync_mean_us: Some(20.0),
            write_mean_us: None,
            write_p99_us: None,
            flushes: Some(4),
            commits: Some(3),
            commits_by_fsync: Some(2),
            fsyncs: Some(8),
            fsyncs_waited_two: Some(4),
            holds: Some(0),
            hold_ms: Some(0.0),
            writes: Some(10),
            writes_delayed: Some(2),
            write_delay_ms: Some(5.0),
            copies: Some(0),
        }
    }

    #[test]
    fn figures_of_a_cell() {
        let cell = cell("stock");
        assert_eq!(cell.fsyncs_per_commit(), Some(4.0));
        assert_eq!(cell.commits_waited(), Some(1.5));
        assert_eq!(cell.delayed_share(), Some(0.2));
        assert_eq!(cell.mean_delay_ms(), Some(2.5));
        let none = Cell {
            writes_delayed: Some(0),
            fsyncs: Some(0),
            ..cell
        };
        assert_eq!(none.mean_delay_ms(), None);
        assert_eq!(none.commits_waited(), None);
    }

    #[test]
    fn what_is_kept_is_found_again_and_another_build_is_not() {
        let folder = std::env::temp_dir().join(format!("luc-kernel-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("folder");
        let path = folder.join("kernel.json");
        let group = Group {
            sheet: Sheet::Sweep,
            load: Load::Oltp,
            speed: SPEEDS[0],
        };
        let mut results = Results::open(&path, "6.1").expect("none yet");
        assert!(!results.has(group, "b1"));
        results
            .add(group, "b1".to_owned(), vec![cell("stock"), cell("delay")])
            .expect("kept");
        let again = Results::open(&path, "6.1").expect("there");
        assert!(again.has(group, "b1"));
        assert!(!again.has(group, "b2"));
        let found = again.cell(Sheet::Sweep, Load::Oltp, SPEEDS[0], "delay");
        assert_eq!(found, Some(&cell("delay")));
        fs::write(&path, "{").expect("damage");
        let error = Results::open(&path, "6.1").expect_err("damaged");
        assert!(error.to_string().contains("remove it"), "{error}");
        fs::remove_dir_all(&folder).expect("clean up");
    }
}
