//! The evaluation: drives the `luc` program as a user would and compares what it does with its
//! targets.
//!
//! `parts` is the table of all parts. A part that compares settings is a plan and claims in `prove/plans`, which
//! `plans` runs and judges. Any other part is a file here. Each writes two files: every single run as JSON, and a page
//! with the targets. `harness` runs programs, `disks` makes disks, `rounds` runs settings in a random order, `report`
//! turns figures into a page.

mod analysis;
mod call_cost;
mod coverage;
mod disks;
mod engine;
mod error;
mod faults;
mod groups;
mod harness;
mod kills;
mod machine;
pub mod measured;
mod parts;
mod personalities;
mod plans;
pub mod plant;
mod powercut;
mod prediction;
mod progress;
mod recording;
mod rival;
mod rounds;
mod safety;
mod services;
pub mod sigkill;
mod steal;
mod sweep_kills;
pub mod switches;
mod synthetic;
mod throttle;
mod throttle_safety;
mod truth;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use luc_claims::report::Page;
use serde_json::{Value, json};

pub use error::EvaluateError;
use harness::Harness;
use parts::Made;
pub use parts::{PARTS, Part};

/// What to evaluate, and how thoroughly.
#[derive(Debug, Clone)]
pub struct Options {
    /// The `luc` program.
    pub luc: PathBuf,
    /// This program, for its hidden subcommands.
    pub myself: PathBuf,
    /// Where the pages go; the raw data into `raw` below it.
    pub out: PathBuf,
    /// Runs of each setting; absent: the part's own number.
    pub repeats: Option<usize>,
    /// Seconds measured in each run; absent: the part's own number.
    pub seconds: Option<f64>,
    /// Power cuts of each trial, or kills; absent: the part's own number.
    pub cuts: Option<u64>,
    /// Only cells whose name contains this.
    pub only: Option<String>,
    /// Seed of the order of runs and of the trials.
    pub seed: u64,
    /// Guests or personalities at a time.
    pub jobs: usize,
    /// Pages are made of the raw data that are there; nothing is measured.
    pub again: bool,
    /// No repeat is begun after this time, of the parts that are plans.
    pub budget: Option<Duration>,
}

impl Options {
    /// Whether a cell of this name is wanted.
    fn wants(&self, cell: &str) -> bool {
        self.only.as_ref().is_none_or(|only| cell.contains(only))
    }
}

/// What a part came to.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// The page written.
    pub page: PathBuf,
    /// Targets met and not met, one line each.
    pub targets: Vec<String>,
    /// Whether all were met.
    pub met: bool,
}

/// Makes one part and writes its page and raw data.
///
/// # Errors
/// [`EvaluateError`]; the runs made until then are in `raw/PART.partial.json`.
pub fn run(part: Part, options: &Options) -> Result<Verdict, EvaluateError> {
    match part.made {
        Made::Here(_) if options.again => Err(EvaluateError::NoPlan { part: part.name() }),
        Made::Here(measure) => here(part, measure, options),
        Made::Planned(planned) => {
            if !options.again {
                let raw = options.out.join("raw");
                fs::create_dir_all(&raw).map_err(EvaluateError::file("make", &raw))?;
                planned.measure(options)?;
            }
            let (page, made) = planned.page(options)?;
            write_page(part, &page, &made, options)
        }
    }
}

fn here(
    part: Part,
    measure: fn(&Harness) -> Result<Page, EvaluateError>,
    options: &Options,
) -> Result<Verdict, EvaluateError> {
    if !rustix::process::geteuid().is_root() {
        return Err(EvaluateError::Root);
    }
    let name = part.name();
    let raw = options.out.join("raw");
    fs::create_dir_all(&raw).map_err(EvaluateError::file("make", &raw))?;
    let harness = Harness::open(name, options)?;
    let before = machine::describe(&options.luc)?;
    let outcome = measure(&harness);
    let data = json!({
        "part": name,
        "made_by": format!("make evaluate-{name}"),
        "options": { "repeats": options.repeats, "seconds": options.seconds, "cuts": options.cuts,
                     "only": options.only, "seed": options.seed },
        "machine": before,
        "finished": machine::now()?,
        "load_at_end": machine::load(),
        "runs": harness.runs(),
    });
    // A page of nothing must not replace one of something.
    let outcome = outcome.and_then(|page| {
        if page.tables.iter().all(|(_, table)| table.is_empty()) {
            let only = options.only.clone().unwrap_or_default();
            return Err(EvaluateError::NoCell(only));
        }
        Ok(page)
    });
    let page = match outcome {
        Ok(page) => page,
        Err(error) => {
            write_json(&raw.join(format!("{name}.partial.json")), &data)?;
            return Err(error);
        }
    };
    write_json(&raw.join(format!("{name}.json")), &data)?;
    let _ = fs::remove_file(raw.join(format!("{name}.partial.json")));
    let machine = format!(
        "{}{}",
        machine::sentence(&data["machine"]),
        harness.disturbances()
    );
    write_page(part, &page, &machine, options)
}

/// Writes a part's page; `machine` is the sentence on the machine.
fn write_page(
    part: Part,
    page: &Page,
    machine: &str,
    options: &Options,
) -> Result<Verdict, EvaluateError> {
    let path = options.out.join(format!("{}.md", part.name()));
    fs::write(&path, page.markdown(part.name(), machine))
        .map_err(EvaluateError::file("write", &path))?;
    Ok(Verdict {
        page: path,
        targets: page.targets.iter().map(ToString::to_string).collect(),
        met: page.targets.iter().all(|target| target.met != Some(false)),
    })
}

fn write_json(path: &Path, data: &Value) -> Result<(), EvaluateError> {
    fs::write(path, text(data)).map_err(EvaluateError::file("write", path))
}

/// JSON for people, but each run on a line of its own, which is a third shorter.
fn text(data: &Value) -> String {
    let mut frame = data.clone();
    let runs = frame["runs"].take();
    let runs: Vec<String> = runs
        .as_array()
        .into_iter()
        .flatten()
        .map(Value::to_string)
        .collect();
    let lines = format!("\"runs\": [\n    {}\n  ]", runs.join(",\n    "));
    format!("{frame:#}\n").replacen("\"runs\": null", &lines, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_a_line_and_nothing_is_lost() {
        for runs in [
            json!([]),
            json!([{ "a": [1, 2] }, { "b": "\"runs\": null" }]),
        ] {
            let data = json!({ "part": "x", "options": { "seed": 1 }, "runs": runs });
            let text = text(&data);
            assert_eq!(serde_json::from_str::<Value>(&text).ok(), Some(data));
            assert!(text.lines().count() < 12, "{text}");
        }
    }
}
