//! The evaluation: drives the `luc` program as a user would and compares what it does with its
//! targets.
//!
//! Each part is a file here and writes two: every single run as JSON, and a table with the targets.
//! `lab` runs programs, `disks` makes disks, `rounds` runs settings in a random order, `report`
//! turns figures into a page.

mod disengaged;
mod disks;
mod error;
mod head_to_head;
mod kernel;
mod lab;
mod machine;
mod metarates;
mod no_harm;
pub mod plant;
mod powercut;
mod prediction;
mod progress;
mod report;
mod rounds;
mod safety;
pub mod sigkill;
pub mod sqlite;
mod steal;
mod varmail;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

pub use error::EvaluateError;
use lab::Lab;
use report::Page;

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
    /// Guests at a time, of the kernel part.
    pub jobs: usize,
    /// No guest is started after this time, of the kernel part.
    pub budget: Option<Duration>,
}

impl Options {
    /// Whether a cell of this name is wanted.
    fn wants(&self, cell: &str) -> bool {
        self.only.as_ref().is_none_or(|only| cell.contains(only))
    }
}

/// Measures a part on this machine.
type Measure = fn(&Lab) -> Result<Page, EvaluateError>;

/// A part of the evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// File creation, with and without the gate.
    Metarates,
    /// The mail server on a hard disk.
    Varmail,
    /// ext4, fast commits and XFS, each with and without the gate.
    HeadToHead,
    /// Where the gate cannot help it must not harm.
    NoHarm,
    /// Power cuts under the gate.
    Powercut,
    /// Workers killed at random under the gate.
    Sigkill,
    /// Eight SQLite writers.
    Sqlite,
    /// What batching would gain, predicted and obtained.
    Prediction,
    /// The kernel module by processor speed, in virtual time.
    Kernel,
    /// Power cuts with `luc.ko`.
    KernelPowercut,
    /// `luc.ko` loaded and unloaded under load.
    KernelCycles,
    /// Stress of file systems with `luc.ko`.
    KernelStress,
}

impl Part {
    /// All parts, in the order in which they are run.
    pub const ALL: [Self; 12] = [
        Self::Metarates,
        Self::Varmail,
        Self::HeadToHead,
        Self::NoHarm,
        Self::Powercut,
        Self::Sigkill,
        Self::Sqlite,
        Self::Prediction,
        Self::Kernel,
        Self::KernelPowercut,
        Self::KernelCycles,
        Self::KernelStress,
    ];

    /// Its name: of the files, and after `make evaluate-`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Metarates => "metarates",
            Self::Varmail => "varmail",
            Self::HeadToHead => "head-to-head",
            Self::NoHarm => "no-harm",
            Self::Powercut => "powercut",
            Self::Sigkill => "sigkill",
            Self::Sqlite => "sqlite",
            Self::Prediction => "prediction",
            Self::Kernel => "kernel",
            Self::KernelPowercut => "kernel-powercut",
            Self::KernelCycles => "kernel-cycles",
            Self::KernelStress => "kernel-stress",
        }
    }

    /// What measures it on this machine; the kernel part measures in guests.
    fn on_host(self) -> Option<Measure> {
        Some(match self {
            Self::Metarates => metarates::run,
            Self::Varmail => varmail::run,
            Self::HeadToHead => head_to_head::run,
            Self::NoHarm => no_harm::run,
            Self::Powercut => powercut::run,
            Self::Sigkill => sigkill::run,
            Self::Sqlite => sqlite::run,
            Self::Prediction => prediction::run,
            Self::Kernel => return None,
            Self::KernelPowercut => safety::powercut::run,
            Self::KernelCycles => safety::cycles::run,
            Self::KernelStress => safety::stress::run,
        })
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

/// Runs one part and writes its page and raw data.
///
/// # Errors
/// [`EvaluateError`]; the runs made until then are in `raw/PART.partial.json`.
pub fn run(part: Part, options: &Options) -> Result<Verdict, EvaluateError> {
    let Some(measure) = part.on_host() else {
        return in_guests(part, options);
    };
    if !rustix::process::geteuid().is_root() {
        return Err(EvaluateError::Root);
    }
    let name = part.name();
    let raw = options.out.join("raw");
    fs::create_dir_all(&raw).map_err(EvaluateError::file("make", &raw))?;
    let lab = Lab::open(name, options)?;
    let before = machine::describe(&lab)?;
    let outcome = measure(&lab);
    let data = json!({
        "part": name,
        "made_by": format!("make evaluate-{name}"),
        "options": { "repeats": options.repeats, "seconds": options.seconds, "cuts": options.cuts,
                     "only": options.only, "seed": options.seed },
        "machine": before,
        "finished": machine::now()?,
        "load_at_end": machine::load(),
        "runs": lab.runs(),
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
        lab.disturbances()
    );
    write_page(part, &page, &machine, options)
}

/// A part that works in guests keeps its raw data itself and needs no root.
fn in_guests(part: Part, options: &Options) -> Result<Verdict, EvaluateError> {
    let raw = options.out.join("raw");
    fs::create_dir_all(&raw).map_err(EvaluateError::file("make", &raw))?;
    let (page, made) = kernel::run(options)?;
    write_page(part, &page, &made, options)
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
    let text = format!("{data:#}\n");
    fs::write(path, text).map_err(EvaluateError::file("write", path))
}
