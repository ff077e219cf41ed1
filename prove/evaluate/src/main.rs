//! `luc-evaluate`: measures what LUC claims, and writes `docs/evaluation`.
//!
//! Exit status: 0 all targets met; 1 some not met; 2 an evaluation could not be made; 130
//! interrupted.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use luc_evaluate::{
    EvaluateError, Options, PARTS, Part, measured, personalities, plant, sigkill, synthetic,
};
use luc_host::interrupt_flag;

/// Measures what LUC claims and writes a page and the raw data of each part. Needs root, but for the parts that run
/// guests in virtual time: arrivals, arrivals-write, kernel, matrix, matrix-processors, thesis, thesis-holds,
/// thesis-metarates, thesis-processors and thesis-seeks.
///
/// A part that is a plan (prove/plans) keeps each repeat at once: the same command goes on after an interruption.
/// Exit status: 0 all targets met, 1 some not met, 2 an evaluation could not be made, 130 interrupted.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true, max_term_width = 100, after_help = Part::list())]
struct Cli {
    /// Parts to evaluate [default: all]
    #[arg(value_name = "PART", value_parser = Part::named)]
    parts: Vec<Part>,
    /// The luc program [default: beside this one]
    #[arg(long, value_name = "FILE")]
    luc: Option<PathBuf>,
    /// Folder of the pages; the raw data go to raw/ below it
    #[arg(long, value_name = "DIR", default_value = "docs/evaluation")]
    out: PathBuf,
    /// Runs of each setting, of parts that are no plans [default: 2 to 7, by part]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeats: Option<u16>,
    /// Seconds measured in each run, of parts that are no plans [default: 2 to 10, by part]
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Power cuts of each trial, or kills [default: 10 to 1000, by part]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    cuts: Option<u64>,
    /// Only cells whose name, as in the tables, contains this; of parts that are plans: only those workloads
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Seed of the order of runs and of the trials
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Guests, personalities or places of kills at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,
    /// Begin no repeat after this many minutes, of parts that are plans; the page shows the repeats made until then
    #[arg(long, value_name = "MINUTES")]
    budget: Option<u32>,
    /// Measure nothing: make pages again from the raw data that are there
    #[arg(long)]
    again: bool,
    #[command(subcommand)]
    helper: Option<Helper>,
}

/// Programs that the evaluation itself runs.
#[derive(Debug, clap::Subcommand)]
enum Helper {
    #[command(hide = true)]
    SigkillWorkers(sigkill::SigkillWorkersArguments),
    /// Print a page that a file in prove/parts makes of raw data
    Page {
        page: PathBuf,
        raw: PathBuf,
        /// A page whose prelude, claims and tables come before its own
        #[arg(long)]
        like: Option<PathBuf>,
    },
    #[command(hide = true)]
    Plant(plant::PlantArguments),
    #[command(hide = true)]
    Plants {
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    #[command(hide = true)]
    Measured(measured::MeasuredArguments),
    #[command(hide = true)]
    Personality(personalities::PersonalityArguments),
    #[command(hide = true)]
    MadeUp { trace: PathBuf, commits: u64 },
    #[command(flatten)]
    Fleet(luc_evaluate_fleet::Helper),
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(status) => status,
        Err(EvaluateError::Interrupted) => {
            eprintln!("luc-evaluate: {}", EvaluateError::Interrupted);
            ExitCode::from(130)
        }
        Err(error) => {
            eprintln!("luc-evaluate: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(cli: Cli) -> Result<ExitCode, EvaluateError> {
    let failed =
        |reason| EvaluateError::File { what: "start", path: "luc-evaluate".into(), reason };
    interrupt_flag::install().map_err(failed)?;
    if let Some(helper) = cli.helper {
        say(help(helper)?.trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    let myself = std::env::current_exe().map_err(failed)?;
    let options = Options {
        luc: cli.luc.unwrap_or_else(|| myself.with_file_name("luc")).canonicalize().map_err(
            |reason| EvaluateError::File {
                what: "find",
                path: "luc: run `make build` or give --luc".into(),
                reason,
            },
        )?,
        myself,
        out: cli.out,
        repeats: cli.repeats.map(usize::from),
        seconds: cli.seconds,
        cuts: cli.cuts,
        only: cli.only,
        seed: cli.seed,
        jobs: cli.jobs.into(),
        again: cli.again,
        budget: cli.budget.map(|minutes| Duration::from_secs(60 * u64::from(minutes))),
    };
    let parts = if cli.parts.is_empty() { PARTS.to_vec() } else { cli.parts };
    let mut met = true;
    for part in parts {
        let verdict = luc_evaluate::run(part, &options)?;
        met &= verdict.met;
        for target in &verdict.targets {
            say(&format!("{}: {target}", part.name()));
        }
        say(&format!("{}: {}", part.name(), verdict.page.display()));
    }
    Ok(ExitCode::from(u8::from(!met)))
}

/// Returns what the helper prints.
fn help(helper: Helper) -> Result<String, EvaluateError> {
    Ok(match helper {
        Helper::SigkillWorkers(arguments) => sigkill::workers(&arguments)?.to_string(),
        Helper::Page { page, raw, like } => {
            let part = page.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            luc_evaluate::page_of(&part, &page, &raw, like.as_deref())?
        }
        Helper::Plant(arguments) => format!("{} rounds", plant::run(&arguments)?),
        Helper::Plants { words } => plant::scene::play(&words)?.to_string(),
        Helper::Measured(arguments) => serde_json::json!(measured::run(&arguments)?).to_string(),
        Helper::Personality(arguments) => personalities::run(&arguments)?,
        Helper::MadeUp { trace, commits } => {
            let written = synthetic::write(&trace, commits);
            written.map_err(|error| EvaluateError::Trace(Box::new(error)))?.to_string()
        }
        Helper::Fleet(helper) => helper.run()?,
    })
}

/// Prints a line. A closed output is no error.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
