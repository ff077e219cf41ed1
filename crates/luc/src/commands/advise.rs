//! `luc advise`.

use std::io::{Write as _, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use luc_power::energy;
use luc_sweep::Policy;
use luc_sweep::advise::{Answer, Device, Place, Request, prepare};
use luc_units::parse_duration_ns;

use super::INTERRUPTED;

/// Says which file system, with which options, is best for a workload, by how much, and how sure that is
///
/// Measures the workload on every file system that this kernel and the installed mkfs tools allow, each as
/// mkfs makes it and with sensible options, on an emulated disk that is made anew for each run (root), on a
/// block device of yours (--device), or in existing directories (--on). Rounds have every candidate once, in
/// random order. After 3, 6, 12, ... rounds those that are shown to be worse than the best are given up; it
/// ends when the rest is within --goal of the best, after --rounds, or when --time is up.
///
/// The advice is the best candidate, or to stay with a default where nothing is shown to be better. Intervals
/// of ratios hold all together with 95 %. What loses data in a power cut is not tried without --unsafe, and
/// never advised.
///
/// With --virtual every run is in a guest (QEMU) in virtual time: the figures depend on nothing that this machine
/// does meanwhile, are the same with the same seed, and need no root and no file system of this machine's kernel.
///
/// A device is formatted only if it is named twice (--device and --erase), nothing uses it, and it is empty or
/// --overwrite is given; nobody else gets it meanwhile, and it is empty at the end.
///
/// Every finished run is kept in the --out folder: the same command goes on. Exit status: 0 done; 2 something
/// is wrong with the request or the machine; 130 interrupted.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  luc advise --workload varmail --disk ssd
  luc advise --workload webserver --set nfiles=500 --disk hdd --only ext4,xfs --time 10m
  luc advise --workload oltp --policy off,auto --only ext4 --options default,fast-commit --unsafe
  luc record --out mail.trace -- ./import-mail.sh && luc advise --workload mail.trace
  luc advise --workload varmail --device /dev/nvme1n1 --erase /dev/nvme1n1
  luc advise --workload my.f --on /srv/a --on /srv/b --json
  luc advise --virtual --workload varmail --disk hdd --only ext4,reiserfs,f2fs

docs/reference/advise.md says what is measured and how sure the answer is.")]
pub(crate) struct Args {
    /// What to run: metarates, varmail, oltp, initial-write, a personality of Filebench's such as webserver
    /// (filebench/varmail where the names are the same), a workload file (.f), or the directory of a trace
    /// that luc record made
    #[arg(long, value_name = "WORKLOAD")]
    workload: String,
    /// Set an option of a built-in workload or a variable of a personality; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Length of each run in seconds [default: 5, with --virtual 2, or to its end]
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Clients; for a personality its variable nthreads [default: the workload's own]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Emulated disk: hdd, ssd, cloud, fixed, or a path ending in .toml
    #[arg(
        long,
        value_name = "MODEL",
        default_value = "ssd",
        conflicts_with = "on"
    )]
    disk: String,
    /// Its size, as in 4G [default: by the workload's files]
    #[arg(long, value_name = "SIZE", conflicts_with = "on")]
    disk_size: Option<String>,
    /// Measure on this block device, which is formatted for each run: all on it goes
    #[arg(long, value_name = "DEV", conflicts_with_all = ["disk", "disk_size", "on"])]
    device: Option<PathBuf>,
    /// The same device again, as a promise that it may be formatted
    #[arg(long, value_name = "DEV", requires = "device")]
    erase: Option<PathBuf>,
    /// Also if there are file systems or the like on the device
    #[arg(long, requires = "device")]
    overwrite: bool,
    /// Measure in guests in virtual time: exact on a busy machine, and with the file systems of another kernel
    #[arg(long = "virtual", conflicts_with_all = ["on", "device", "idle"])]
    virtual_time: bool,
    /// The distribution's kernel of the guests; before 6.13 it has ReiserFS [default: 6.1]
    #[arg(long, value_name = "VERSION", requires = "virtual_time")]
    kernel: Option<String>,
    /// Measure in this directory, on the file system that is there; may be repeated
    #[arg(long, value_name = "DIR")]
    on: Vec<PathBuf>,
    /// Try only these file systems, as ext4,xfs
    #[arg(long, value_name = "FS", value_delimiter = ',')]
    only: Vec<String>,
    /// Try only these options, as default,noatime
    #[arg(long, value_name = "LABEL", value_delimiter = ',')]
    options: Vec<String>,
    /// Policies of the fsync gate: off, auto, or both
    #[arg(long, value_enum, value_delimiter = ',', default_value = "off")]
    policy: Vec<Gate>,
    /// Also try what loses data in a power cut; it is marked UNSAFE and never advised
    #[arg(long = "unsafe")]
    unsafe_too: bool,
    /// Begin no run after this time; the same command goes on
    #[arg(long, value_name = "TIME", default_value = "30m")]
    time: String,
    /// Most rounds of each candidate [default: 24, with --virtual 6]
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// A difference that is too small to matter, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    goal: f64,
    /// Seed of the order and of the workload
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long the idle machine's power is measured where energy is; 0 for not at all
    #[arg(long, value_name = "TIME", default_value = "10s")]
    idle: String,
    /// Folder of the results [default: the workload's name with .advice, here]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the workload as a personality in Filebench's language, and measure nothing
    #[arg(long)]
    show_workload: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print a line for each candidate as CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Root of sysfs: a test gives a directory of its own
    #[arg(long, hide = true, default_value = "/sys")]
    sysfs: PathBuf,
}

/// A policy on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Gate {
    /// The program as it is
    Off,
    /// Under luc run --level gate --policy auto
    Auto,
}

/// Fewest rounds that give a comparison.
const LEAST_ROUNDS: usize = 3;
/// Most rounds where nothing says otherwise: runs of a machine differ by its noise, of guests by their seeds alone.
const ROUNDS: usize = 24;
const VIRTUAL_ROUNDS: usize = 6;
/// The guests' kernel where nothing says otherwise: the last of its kind with ReiserFS.
const GUEST_KERNEL: &str = "6.1";

/// Runs the subcommand.
pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let time = Duration::from_nanos(parse_duration_ns(&args.time).context("--time")?);
    let prepared = prepare(&request(&args)?)?;
    if args.show_workload {
        let text = prepared.text();
        let text =
            text.with_context(|| format!("{}: not in Filebench's language", args.workload))?;
        write!(stdout(), "{text}")?;
        return Ok(ExitCode::SUCCESS);
    }
    luc_host::interrupt::install()?;
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| PathBuf::from(format!("{}.advice", prepared.name)));
    let luc = std::env::current_exe().context("cannot find the luc binary: reinstall it")?;
    let bar = bar();
    let deadline = begun + time;
    let sweep = luc_sweep::Sweep {
        plan: &prepared.plan,
        out: &out,
        luc: &luc,
        sysfs: &args.sysfs,
        deadline: Some(deadline),
    };
    let report = sweep.run(&mut |made, wanted, what| {
        let left = deadline.saturating_duration_since(Instant::now());
        bar.set_length(wanted as u64);
        bar.set_message(format!("{what}, at most {} s more", left.as_secs()));
        bar.set_position(made as u64);
        if what.is_empty() {
            // What an earlier command made says nothing on how long the rest takes.
            bar.reset_eta();
        }
    });
    bar.finish_and_clear();
    let report = report.map_err(luc_sweep::advise::AdviseError::from)?;
    let answer = Answer::of(&prepared, &report);
    if args.json {
        writeln!(stdout(), "{}", serde_json::to_string_pretty(&answer)?)?;
    } else if args.csv {
        write!(stdout(), "{}", answer.csv())?;
    } else {
        write!(stdout(), "{answer}")?;
        writeln!(stdout(), "results: {}", out.display())?;
    }
    if answer.interrupted {
        eprintln!("luc: interrupted; the same command goes on from here");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    if answer.selection.is_none() && !answer.unfinished {
        let why = answer.not_tried.last().map_or("", |one| one.why.as_str());
        bail!("no candidate could be measured: {why}");
    }
    Ok(ExitCode::SUCCESS)
}

fn request(args: &Args) -> anyhow::Result<Request> {
    if !(args.goal > 0.0 && args.goal < 100.0) {
        bail!("--goal {}: write a percentage such as 5", args.goal);
    }
    let most_rounds = args.rounds.unwrap_or(if args.virtual_time {
        VIRTUAL_ROUNDS
    } else {
        ROUNDS
    });
    if most_rounds < LEAST_ROUNDS {
        bail!("--rounds {most_rounds}: fewer than {LEAST_ROUNDS} give no comparison");
    }
    let mut policies = Vec::new();
    for (gate, policy) in [(Gate::Off, Policy::Off), (Gate::Auto, Policy::AUTO)] {
        policies.extend(args.policy.contains(&gate).then_some(policy));
    }
    Ok(Request {
        workload: args.workload.clone(),
        set: args.set.clone(),
        seconds: args.seconds,
        threads: args.threads,
        place: place(args),
        only: args.only.clone(),
        options: args.options.clone(),
        policies,
        unsafe_too: args.unsafe_too,
        least_rounds: LEAST_ROUNDS,
        most_rounds,
        goal: args.goal / 100.0,
        seed: args.seed,
        energy: if args.virtual_time {
            energy::Options::default()
        } else {
            energy::Options {
                idle: args.idle.clone(),
                ..energy::Options::default()
            }
        },
    })
}

fn place(args: &Args) -> Place {
    if let Some(device) = &args.device {
        return Place::Device(Device {
            path: device.clone(),
            erase: args.erase.clone(),
            overwrite: args.overwrite,
            sysfs: args.sysfs.clone(),
        });
    }
    if args.virtual_time {
        let kernel = args.kernel.as_deref().unwrap_or(GUEST_KERNEL);
        return Place::Virtual {
            model: args.disk.clone(),
            size: args.disk_size.clone(),
            kernel: kernel.to_owned(),
        };
    }
    if args.on.is_empty() {
        return Place::Disk {
            model: args.disk.clone(),
            size: args.disk_size.clone(),
        };
    }
    Place::Directories(args.on.clone())
}

/// Drawn on a terminal only.
fn bar() -> ProgressBar {
    let style =
        ProgressStyle::with_template("{bar:30} run {pos} of {len} or more, {eta} left  {msg}");
    let bar = ProgressBar::new(1);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
