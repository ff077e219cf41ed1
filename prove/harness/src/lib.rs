//! Common parts of evaluations.
//!
//! - [`harness`]: a work directory, and the programs that run in it.
//! - [`disks`] and [`groups`]: disks and cgroups that are removed when their values are dropped.
//! - [`guests`]: guests that a signal ends.
//! - [`runner`]: settings with subjects, interleaved in rounds, as a page's file says.
//! - [`runs`]: runs that outlive an interruption.
//! - [`steal`]: makes runs again that the machine's host disturbed.
//! - [`report`]: the page of the results. [`reports`]: what `luc run` said.

pub mod disks;
pub mod error;
pub mod groups;
pub mod guests;
pub mod harness;
pub mod machine;
pub mod progress;
pub mod report;
pub mod reports;
pub mod runner;
pub mod runs;
pub mod steal;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

pub use error::EvaluateError;
pub use harness::Harness;

#[derive(Debug, Clone)]
pub struct Options {
    pub luc: PathBuf,
    /// This program, for its hidden subcommands.
    pub myself: PathBuf,
    /// Directory of the pages; the raw data go into `raw` below it.
    pub out: PathBuf,
    /// Runs of each setting; absent: the part's own number.
    pub repeats: Option<usize>,
    /// Seconds measured in each run; absent: the part's own number.
    pub seconds: Option<f64>,
    /// Power cuts of each trial, or kills; absent: the part's own number.
    pub cuts: Option<u64>,
    /// Part of the names of the cells to run.
    pub only: Option<String>,
    /// Seed of the order of runs and of the trials.
    pub seed: u64,
    /// Number of guests or personalities at a time.
    pub jobs: usize,
    /// Whether pages are made from the raw data that are there, and nothing is measured.
    pub again: bool,
    /// Time after which no repeat is begun, of the parts that are plans.
    pub budget: Option<Duration>,
}

impl Options {
    /// Whether a cell of this name is wanted.
    #[must_use]
    pub fn wants(&self, cell: &str) -> bool {
        self.only.as_ref().is_none_or(|only| cell.contains(only))
    }

    /// Returns the number and duration of runs; the part's own where the user gave none.
    #[must_use]
    pub fn extent(&self, repeats: usize, seconds: f64) -> Extent {
        Extent {
            repeats: self.repeats.unwrap_or(repeats),
            seconds: self.seconds.unwrap_or(seconds),
        }
    }

    /// Returns the error where no cell is wanted.
    #[must_use]
    pub fn no_cell(&self) -> EvaluateError {
        EvaluateError::NoCell(self.only.clone().unwrap_or_default())
    }
}

/// Number and duration of the runs of each setting.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    pub repeats: usize,
    pub seconds: f64,
}

/// Writes raw data.
///
/// # Errors
/// [`EvaluateError::File`].
pub fn write_json(path: &Path, data: &Value) -> Result<(), EvaluateError> {
    fs::write(path, text(data)).map_err(EvaluateError::file("write", path))
}

/// Formats JSON for people, but each run on a line of its own, which is a third shorter.
fn text(data: &Value) -> String {
    let mut frame = data.clone();
    let runs = frame["runs"].take();
    let runs: Vec<String> = runs.as_array().into_iter().flatten().map(Value::to_string).collect();
    let lines = format!("\"runs\": [\n    {}\n  ]", runs.join(",\n    "));
    format!("{frame:#}\n").replacen("\"runs\": null", &lines, 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_run_has_a_line_and_nothing_is_lost() {
        for runs in [json!([]), json!([{ "a": [1, 2] }, { "b": "\"runs\": null" }])] {
            let data = json!({ "part": "x", "options": { "seed": 1 }, "runs": runs });
            let text = text(&data);
            assert_eq!(serde_json::from_str::<Value>(&text).ok(), Some(data));
            assert!(text.lines().count() < 12, "{text}");
        }
    }
}
