//! A demonstration of `luc` in a minute: a benchmark without and with the gate, then power cuts.
//!
//! As root it runs on its own emulated disk ([`DemoStorage::Emulated`]). Otherwise it runs in a directory of the user's
//! disk ([`DemoStorage::Own`]), without power cuts. Each step is a command of `luc` that users could run themselves.
//!
//! - [`machine_checks`]: checks that this machine has everything.
//! - [`demo_disk`]: the emulated disk and its mount point, and the removal of both.
//! - [`guardian`]: the process that removes them, whatever ends the demo.
//! - `luc_command`: runs one command, and ends it if the demo is interrupted.

#[macro_use]
extern crate luc_units;

pub mod demo_disk;
mod error;
pub mod guardian;
mod luc_command;
pub mod machine_checks;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Instant;

use luc_host::interrupt_flag;
use luc_units::OnPath as _;
use serde::Serialize;
use serde_json::Value;

use demo_disk::DemoDisk;
pub use error::DemoError;
use guardian::DemoGuardian;

const CLIENTS: &str = "16";
const FILE_SIZE: &str = "1k";
/// Seconds that each run measures.
const SECONDS: &str = "3";
/// Runs with the gate, and as many without.
const PAIRS: &str = "3";
const CUTS: &str = "3";

/// Disk where the benchmark runs.
#[derive(Debug, Clone)]
pub enum DemoStorage {
    /// On an emulated disk of the demo's own (root).
    Emulated,
    Own(PathBuf),
}

/// Number and title of one step of the demo, for its progress.
#[derive(Debug, Clone, Copy)]
pub struct DemoStep {
    pub number: u32,
    /// Total number of steps.
    pub of: u32,
    pub title: &'static str,
    /// Duration in seconds on a reference machine.
    pub about_s: u32,
}

/// Report of a demo as JSON: the comparison and the power cuts.
#[derive(Debug, Serialize)]
pub struct DemoReport {
    pub version: String,
    /// The emulated disk; none if the benchmark ran in a directory of the user.
    pub disk: Option<luc_disk::ModelSpec>,
    pub directory: Option<PathBuf>,
    /// Output of `luc run --compare --json`.
    pub comparison: Value,
    /// Output of `luc powercut --json`; none without an emulated disk.
    pub powercut: Option<Value>,
    /// Time from the first step to the end of the last, in seconds.
    pub elapsed_s: f64,
}

/// Speed with the gate as a multiple of that without, with an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioInterval {
    /// Median with the gate over median without.
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
    /// Number of runs of a side, if the ends are a range and no 95 % interval.
    pub range_of: Option<u64>,
}

/// Sums over the demo's power cuts: files acknowledged, lost and torn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PowercutTotals {
    pub rounds: u64,
    /// Files that were reported durable before.
    pub acknowledged: u64,
    /// Acknowledged files that were gone.
    pub lost: u64,
    /// Acknowledged files with other content.
    pub torn: u64,
}

impl DemoReport {
    /// Returns the ratio of files created per second, with the gate over without; `None` if unknown.
    #[must_use]
    pub fn gain(&self) -> Option<RatioInterval> {
        let ratio = &self.comparison["calls_per_s"]["ratio"];
        let part = |name: &str| ratio[name].as_f64();
        Some(RatioInterval {
            ratio: part("ratio")?,
            low: part("low")?,
            high: part("high")?,
            range_of: ratio["range_of"].as_u64(),
        })
    }

    /// Returns the results of the power cuts; `None` if there were none.
    #[must_use]
    pub fn cuts(&self) -> Option<PowercutTotals> {
        let report = self.powercut.as_ref()?;
        let count = |name: &str| report[name].as_u64();
        Some(PowercutTotals {
            rounds: count("rounds")?,
            acknowledged: count("acknowledged")?,
            lost: count("lost")?,
            torn: count("torn")?,
        })
    }
}

/// Runs the demo. `luc` is the program that runs each step, and `version` its version. `tell` is called before each
/// step. The steps' progress and the comparison go to standard error.
///
/// # Errors
///
/// A missing requirement, the status of a failed step, or [`DemoError::Interrupted`]. Nothing is left behind.
pub fn run(
    luc: &Path,
    version: &str,
    place: &DemoStorage,
    tell: &mut dyn FnMut(DemoStep),
) -> Result<DemoReport, DemoError> {
    machine_checks::check(place)?;
    interrupt_flag::install().map_err(DemoError::io("take over signals for", luc))?;
    let begun = Instant::now();
    let (disk, directory, comparison, powercut) = match place {
        DemoStorage::Own(directory) => {
            tell(DemoStep {
                number: 1,
                of: 1,
                title: "Creating files on your own disk, without the gate and with it",
                about_s: 25,
            });
            let comparison = compare(luc, directory)?;
            (None, Some(directory.clone()), comparison, None)
        }
        DemoStorage::Emulated => {
            let (model, comparison, powercut) = on_emulated_disk(luc, tell)?;
            (Some(model), None, comparison, Some(powercut))
        }
    };
    Ok(DemoReport {
        version: version.to_owned(),
        disk,
        directory,
        comparison,
        powercut,
        elapsed_s: begun.elapsed().as_secs_f64(),
    })
}

fn on_emulated_disk(
    luc: &Path,
    tell: &mut dyn FnMut(DemoStep),
) -> Result<(luc_disk::ModelSpec, Value, Value), DemoError> {
    let place = DemoDisk::of_process(std::process::id());
    let guardian = DemoGuardian::start(luc, &place)?;
    tell(DemoStep {
        number: 1,
        of: 3,
        title: "Making an emulated disk: a flush takes 6 ms, a write 20 us; ext4 on it, with a large disk's journal",
        about_s: 2,
    });
    let model = place.make(luc)?;
    tell(DemoStep {
        number: 2,
        of: 3,
        title: "Creating files on it by 16 clients, without the gate and with it",
        about_s: 30,
    });
    let comparison = compare(luc, &place.directory)?;
    // Before the power cuts, which make disks of their own.
    guardian.end()?;
    tell(DemoStep {
        number: 3,
        of: 3,
        title: "Three power cuts under load: is everything there that was reported durable?",
        about_s: 8,
    });
    let words = ["powercut", "--rounds", CUTS, "--policy", "auto", "--json"];
    let powercut = luc_command::run(luc, &words.map(OsString::from), &[0, 1])?;
    Ok((model, comparison, powercut))
}

/// Runs the benchmark in `directory` without and with the gate.
fn compare(luc: &Path, directory: &Path) -> Result<Value, DemoError> {
    let mut words: Vec<OsString> =
        ["run", "--compare", PAIRS, "--json", luc_command::OUTPUT_FILE, "--"]
            .map(OsString::from)
            .to_vec();
    words.push(luc.into());
    words.extend(["bench", "metarates", "--dir"].map(OsString::from));
    words.push(directory.into());
    let options = ["--threads", CLIENTS, "--seconds", SECONDS];
    let size = ["--file-size", FILE_SIZE];
    words.extend(options.iter().chain(&size).map(|word| OsStr::new(word).to_owned()));
    luc_command::run(luc, &words, &[0])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(comparison: Value, powercut: Option<Value>) -> DemoReport {
        DemoReport {
            version: "1".to_owned(),
            disk: None,
            directory: None,
            comparison,
            powercut,
            elapsed_s: 1.0,
        }
    }

    #[test]
    fn figures_are_taken_from_the_steps() {
        let comparison = json!({"calls_per_s": {"ratio": {"ratio": 1.8, "low": 1.7, "high": 1.9}}});
        let powercut = json!({"rounds": 3, "acknowledged": 700, "lost": 1, "torn": 2});
        let report = report(comparison, Some(powercut));
        let gain = report.gain().expect("known");
        assert_eq!((gain.ratio, gain.low, gain.high), (1.8, 1.7, 1.9));
        let cuts = report.cuts().expect("made");
        let counts = [cuts.rounds, cuts.acknowledged, cuts.lost, cuts.torn];
        assert_eq!(counts, [3, 700, 1, 2]);
    }

    #[test]
    fn what_was_not_measured_is_not_known() {
        // Without calls there is no ratio.
        let report = report(json!({"calls_per_s": null}), None);
        assert_eq!(report.gain(), None);
        assert_eq!(report.cuts(), None);
    }
}
