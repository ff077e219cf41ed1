//! `luc powercut`: cuts the power under load, and checks the files that were acknowledged.

use std::ffi::OsString;
use std::io::{IsTerminal as _, stderr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use luc_disk::ModelSpec;
use luc_powercut::{PowercutReport, PowercutRequest};
use luc_units::{parse_duration_ns, parse_size_bytes};
use luc_workload::workers::ClientKind;

use super::run::gate_reach::ReachOption;
use super::{INTERRUPTED, own_path};

/// Check that acknowledged fsyncs survive power cuts of an emulated disk
///
/// Each round makes a fresh disk and file system. Clients write files, sync them and acknowledge each. At a random
/// moment the power is cut. Then luc mounts the rest, checks every acknowledged file, and runs the file system's own
/// checker. Needs root and FUSE.
///
/// Exit status: 0 nothing was lost; 1 something was lost or torn, or a file system was damaged; 2 the trial could not
/// be made; 130 interrupted.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  luc powercut
  luc powercut --rounds 200 --policy auto --json
  luc powercut --policy auto --reach notify      # by notifications of system calls
  luc powercut --fs ext4 --mkfs-options '-O fast_commit' --processes
  luc powercut --rounds 3 --unsafe-no-fsync      # must find losses
  luc powercut --rounds 5 -- ./my-store          # prints a path per durable file

A COMMAND works in its working directory, which is also in LUC_POWERCUT_DIR. For each file that it
holds for durable it prints the file's path and flushes its output. It must not change the file
afterwards without printing it again, and must go on until it is killed.")]
pub(crate) struct Args {
    /// Number of rounds, each with a fresh disk
    #[arg(long, value_name = "N", default_value_t = 10)]
    rounds: u64,
    /// Seed of the first round; each further round takes the next number
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of clients
    #[arg(long, value_name = "N", default_value_t = 8)]
    clients: usize,
    /// Make clients processes instead of threads
    #[arg(long)]
    processes: bool,
    /// File system: ext4, xfs, btrfs, ...
    #[arg(long, default_value = "ext4")]
    fs: String,
    /// Further options for mkfs
    #[arg(long, value_name = "OPTIONS", default_value = "", allow_hyphen_values = true)]
    mkfs_options: String,
    /// Mount options, as for mount -o
    #[arg(long, value_name = "OPTIONS", default_value = "")]
    mount_options: String,
    /// Run the clients under `luc run --policy P`; off runs them without luc
    #[arg(long, value_name = "P")]
    policy: Option<String>,
    /// With --policy: what brings their calls into rounds, as for `luc run`
    #[arg(long, value_enum, requires = "policy")]
    reach: Option<ReachOption>,
    /// Latency model: a name or a path ending in .toml, as in `luc disk create`
    #[arg(long, default_value = "fixed")]
    model: String,
    /// Time of a flush, model fixed only [default: 6ms]
    #[arg(long, value_name = "TIME")]
    flush: Option<String>,
    /// Time of a write, model fixed only [default: 20us]
    #[arg(long, value_name = "TIME")]
    write: Option<String>,
    /// Time of a read, model fixed only [default: 20us]
    #[arg(long, value_name = "TIME")]
    read: Option<String>,
    /// Size of the disk, such as 512M
    #[arg(long, default_value = "512M")]
    size: String,
    /// Use this lagdisk (kernel/lagdisk) instead of an emulated disk; its content is destroyed
    #[arg(long, value_name = "DEVICE", conflicts_with_all = ["model", "flush", "write", "read", "size"])]
    lagdisk: Option<PathBuf>,
    /// Skip every fsync, as a check of the trial: it must report losses
    #[arg(long, conflicts_with = "command")]
    unsafe_no_fsync: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Program to run instead of luc's clients
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    luc_host::interrupt_flag::install()?;
    let json = args.json;
    let plan = plan(args)?;
    let bar = bar(plan.rounds);
    let report = luc_powercut::run(&plan, &mut |done| bar.set_position(done));
    bar.finish_and_clear();
    let report = report?;
    if json {
        luc_cli::print_json(&report)?;
    } else {
        text(&report);
    }
    Ok(match &report {
        report if !report.is_clean() => ExitCode::from(1),
        report if report.interrupted => ExitCode::from(INTERRUPTED),
        _ => ExitCode::SUCCESS,
    })
}

fn plan(args: Args) -> anyhow::Result<PowercutRequest> {
    let luc = own_path()?;
    let model = model(&args)?;
    let wrap = match args.policy.as_deref() {
        None | Some("off") => Vec::new(),
        Some(policy) => {
            let mut words: Vec<OsString> = vec![luc.clone().into()];
            words.extend(["run", "--policy", policy, "--quiet"].map(OsString::from));
            if let Some(reach) = args.reach {
                words.extend(["--reach".into(), reach.to_string().into()]);
            }
            words.push("--".into());
            words
        }
    };
    Ok(PowercutRequest {
        luc,
        rounds: args.rounds,
        seed: args.seed,
        clients: args.clients,
        kind: if args.processes { ClientKind::Process } else { ClientKind::Thread },
        fs: args.fs,
        mkfs_options: args.mkfs_options,
        mount_options: args.mount_options,
        model,
        size_bytes: parse_size_bytes(&args.size)?,
        lagdisk: args.lagdisk,
        policy: args.policy,
        wrap,
        unsafe_no_fsync: args.unsafe_no_fsync,
        command: (!args.command.is_empty()).then_some(args.command),
    })
}

fn model(args: &Args) -> anyhow::Result<ModelSpec> {
    let times = [("flush", &args.flush), ("write", &args.write), ("read", &args.read)];
    if args.model != "fixed" {
        if let Some((option, _)) = times.iter().find(|(_, time)| time.is_some()) {
            anyhow::bail!("--{option} goes with --model fixed only: leave it out");
        }
        let path = Path::new(&args.model);
        let is_file = path.extension().is_some_and(|extension| extension == "toml");
        return Ok(if is_file {
            ModelSpec::from_toml_file(path)?
        } else {
            ModelSpec::from_name(&args.model)?
        });
    }
    let ns = |time: &Option<String>, default: &str| {
        parse_duration_ns(time.as_deref().unwrap_or(default))
    };
    Ok(ModelSpec::Fixed {
        read_ns: ns(&args.read, "20us")?,
        write_ns: ns(&args.write, "20us")?,
        flush_ns: ns(&args.flush, "6ms")?,
    })
}

/// A progress bar on a terminal's standard error, redrawn by ticks.
fn bar(rounds: u64) -> ProgressBar {
    if rounds < 2 || !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(rounds), ProgressDrawTarget::stderr());
    let template = "power cuts [{bar:40}] {pos}/{len}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_position(0);
    bar
}

fn text(report: &PowercutReport) {
    let who = match (&report.command, report.clients) {
        (Some(words), _) => format!("'{}'", words.join(" ")),
        (None, clients) => format!("{} clients", clients.unwrap_or(0)),
    };
    let gate = match report.policy.as_deref() {
        None | Some("off") => String::new(),
        Some(policy) => format!(", policy {policy}"),
    };
    let unsafe_mark = if report.unsafe_no_fsync { ", UNSAFE: fsync skipped" } else { "" };
    let early = if report.interrupted { " (interrupted)" } else { "" };
    println!(
        "{} power cuts{early}: {}, {who}{gate}{unsafe_mark}, seed {}",
        report.rounds, report.fs, report.seed
    );
    println!(
        "acknowledged {}, lost {}, torn {}; not mountable {}, {} unclean {}",
        report.acknowledged,
        report.lost,
        report.torn,
        report.not_mountable,
        report.checker.as_deref().unwrap_or("(no checker)"),
        report.fsck_unclean
    );
    for round in &report.bad_rounds {
        println!(
            "seed {}: of {} acknowledged {} lost, {} torn{}{}; repeat with --rounds 1 --seed {}",
            round.seed,
            round.acknowledged,
            round.lost,
            round.torn,
            if round.not_mountable { ", not mountable" } else { "" },
            if round.fsck_unclean { ", unclean" } else { "" },
            round.seed
        );
        for example in &round.examples {
            println!("  {example}");
        }
    }
}
