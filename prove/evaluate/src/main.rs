//! `luc-evaluate`: measures what LUC claims, and writes `docs/evaluation`.
//!
//! Exit status: 0 all targets met; 1 some not met; 2 an evaluation could not be made; 130
//! interrupted.

use std::ffi::OsString;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use luc_evaluate::sigkill::Orders;
use luc_evaluate::{EvaluateError, Options, PARTS, Part, measured, plant, sigkill, switches};
use luc_evaluate_fleet::cost::loaded;
use luc_evaluate_fleet::pools::back_end;
use luc_evaluate_fleet::solr::{clients, tap, trouble};
use luc_host::interrupt;

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
    /// Only cells whose name, as in the tables, contains this, of parts that are no plans
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

/// Programs that the evaluation runs under `luc run`.
#[derive(Debug, clap::Subcommand)]
enum Helper {
    #[command(hide = true)]
    SigkillWorkers {
        caller: PathBuf,
        directory: PathBuf,
        kills: u64,
        limit_ms: f64,
        seed: u64,
    },
    /// Print a page that a file in prove/parts makes of raw data
    Page {
        page: PathBuf,
        raw: PathBuf,
        /// A page whose prelude, claims and tables come before its own
        #[arg(long)]
        like: Option<PathBuf>,
    },
    #[command(hide = true)]
    Plant(plant::Orders),
    #[command(hide = true)]
    Plants {
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    Switches(switches::Orders),
    #[command(hide = true)]
    Measured(measured::Orders),
    #[command(hide = true)]
    Loaded {
        #[arg(long, required = true)]
        server: Vec<u32>,
        #[arg(long)]
        recorder: Option<u32>,
        #[arg(long, value_name = "S", default_value_t = 0.0)]
        warmup: f64,
        #[arg(required = true, trailing_var_arg = true)]
        command: Vec<OsString>,
    },
    #[command(hide = true)]
    BackEnd {
        port: u16,
        seed: u64,
        calls: PathBuf,
    },
    #[command(hide = true)]
    Hog {
        threads: u64,
    },
    #[command(hide = true)]
    Tap {
        to: PathBuf,
    },
    #[command(hide = true)]
    SearchClients {
        to: SocketAddr,
        shards: String,
        #[arg(long)]
        clients: u64,
        #[arg(long)]
        queries: Option<u64>,
        #[arg(long)]
        seconds: f64,
        #[arg(long)]
        think_ms: u64,
        #[arg(long)]
        seed: u64,
    },
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
    interrupt::install().map_err(failed)?;
    if let Some(helper) = cli.helper {
        return help(helper).map(|()| ExitCode::SUCCESS);
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

fn help(helper: Helper) -> Result<(), EvaluateError> {
    match helper {
        Helper::SigkillWorkers { caller, directory, kills, limit_ms, seed } => {
            let counted = sigkill::workers(&Orders { caller, directory, kills, limit_ms, seed })?;
            say(&counted.to_string());
        }
        Helper::Page { page, raw, like } => {
            let part = page.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            say(luc_evaluate::page_of(&part, &page, &raw, like.as_deref())?.trim_end());
        }
        Helper::Switches(orders) => {
            let done = switches::run(&orders)?;
            say(&serde_json::json!(done).to_string());
        }
        Helper::Measured(orders) => {
            let measured = measured::run(&orders)?;
            say(&serde_json::json!(measured).to_string());
        }
        Helper::Loaded { server, recorder, warmup, command } => {
            let loaded = loaded::run(&loaded::Orders {
                servers: server,
                recorder,
                warmup: Duration::from_secs_f64(warmup.clamp(0.0, 60.0)),
                command,
            })?;
            say(&serde_json::json!(loaded).to_string());
        }
        Helper::BackEnd { port, seed, calls } => {
            back_end::run(&back_end::Orders { port, seed, calls })?
        }
        Helper::Tap { to } => tap::run(&to)?,
        Helper::Hog { threads } => trouble::hog(threads)?,
        Helper::SearchClients { to, shards, clients, queries, seconds, think_ms, seed } => {
            let asked = clients::run(&clients::Orders {
                to,
                shards,
                clients,
                queries,
                longest: Duration::from_secs_f64(seconds.clamp(0.0, 86_400.0)),
                think: Duration::from_millis(think_ms),
                seed,
            })?;
            say(&serde_json::json!(asked).to_string());
        }
        Helper::Plant(orders) => say(&format!("{} rounds", plant::run(&orders)?)),
        Helper::Plants { words } => say(&plant::scene::play(&words)?.to_string()),
    }
    Ok(())
}

/// Prints a line. A closed output is no error.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
