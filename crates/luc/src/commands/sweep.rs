//! `luc sweep`: measures every point of a plan until its figure is sure.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use luc_sweep::{SweepPlan, SweepReport};

use super::{INTERRUPTED, own_path, progress_bar};

/// Time that `luc sweep restore` waits for busy resources.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(20);

/// Repeat workloads over the points of a plan until the figures are sure
///
/// A plan (TOML) names workloads, numbers of threads, targets and policies of the gate; every combination is a point.
/// A target is a file system with options, or an existing directory. A file system is made anew for each repeat, on
/// an emulated disk or a device of yours.
///
/// Points are repeated in rounds of random order until the 95 % interval of each median is narrow enough. A point
/// whose interval is still too wide after stop.max repeats is marked NOT CONVERGED.
///
/// The axis `frequency` sets the processors' frequency (cpufreq), and turns turbo and SMT off if asked. Without
/// cpufreq, a throttle limits processor time instead, and the report says so. Each repeat has its energy (RAPL, perf
/// events or a meter's command), or the reason why there is none.
///
/// Everything is restored on any exit. If the sweep is killed, its cleanup process restores. If that is killed as
/// well, the next luc command of root does (`luc sweep restore`).
///
/// With a section `virtual`, points run in guests in virtual time. QEMU gives them a set number of instructions per
/// second, and luc.ko has the policies. This needs no root and is exact on a busy machine.
///
/// Every finished repeat is kept in the --out folder. To resume an interrupted or killed sweep, give the same
/// command. Emulated disks need root.
///
/// A device of yours is formatted only if its target names it twice (device and erase). Nothing may use it, and it
/// must be empty unless the target has `overwrite`. No other sweep, mkfs or mount gets it meanwhile, and it is empty
/// again at the end. The sweep removes only file systems that it made, which it knows by their UUID. The axis
/// `scheduler` sets the disk's I/O scheduler.
///
/// The results are report.html (one page for any browser), report.json, results.csv, results.parquet and
/// counters.parquet. `luc sweep report DIR` makes them again, also from an unfinished sweep.
///
/// Exit status: 0 done, even if a point did not converge; 2 the plan or the machine does not allow it, or a workload
/// failed; 130 interrupted.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true
)]
#[command(after_help = "Examples:
  luc sweep plan.toml
  luc sweep plan.toml --out results --json
  luc sweep report results
  luc sweep virtual.toml --jobs 2
  luc sweep restore

A plan:
  threads = [1, 16]
  policy = [\"off\", \"auto\"]
  [disk]
  flush = \"6ms\"
  [[workload]]
  name = \"create\"
  bench = \"metarates\"
  options = { seconds = 2, file-size = \"1k\" }
  [[target]]
  name = \"ext4\"
  fs = \"ext4\"

A target on a device of yours, all of which may go:
  [[target]]
  name = \"nvme\"
  fs = \"xfs\"
  device = \"/dev/nvme1n1\"
  erase = \"/dev/nvme1n1\"

docs/reference/sweep.md has every key; docs/reference/energy.md is about frequency and energy.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Subcommand>,
    /// File of the plan
    #[arg(required_unless_present = "clean_up")]
    plan: Option<PathBuf>,
    /// Folder for the results [default: ./NAME.sweep for a plan NAME.toml]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Number of guests at a time, for plans with a section `virtual` [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: Option<u16>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Root of sysfs; tests give a directory of their own
    #[arg(long, hide = true, default_value = "/sys")]
    sysfs: PathBuf,
    #[arg(long, hide = true)]
    clean_up: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Subcommand {
    Report(ReportArgs),
    Restore(RestoreArgs),
}

/// Restore what killed sweeps left changed (root)
///
/// /run/luc/sweep records what sweeps change: processors, devices, schedulers, cgroups, mounts and disks. Running
/// sweeps are left alone. Every luc command of root does the same first and waits 2 s for busy resources; this one
/// waits 20 s.
///
/// Exit status: 0, even if there was nothing to do; 2 if something could not be restored.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  luc sweep restore
  luc sweep restore --json")]
struct RestoreArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Make the reports of a sweep again from its results
///
/// Reads results.jsonl and writes report.html, report.json, results.csv, results.parquet and counters.parquet beside
/// it. The sweep may be running or interrupted. Needs no privileges but to write there.
///
/// Exit status: 0; 2 if DIR has no results of a sweep, or cannot be written.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  luc sweep report plan.sweep
  luc sweep report plan.sweep --json | jq '.points[] | {key, interval}'
  duckdb -c \"select target, median(value) from 'plan.sweep/results.parquet' group by 1\"")]
struct ReportArgs {
    /// Folder with the sweep's results
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// A sweep to make: the command line without its grammar.
#[derive(Debug)]
struct SweepRequest {
    plan: SweepPlan,
    out: PathBuf,
    sysfs: PathBuf,
    is_json: bool,
}

impl SweepRequest {
    /// Reads the plan of the file `path`.
    fn new(path: &Path, args: Args) -> anyhow::Result<Self> {
        let mut plan = SweepPlan::read(path)?;
        if let Some(jobs) = args.jobs {
            plan.set_jobs(jobs.into())?;
        }
        let out = args.out.unwrap_or_else(|| {
            let mut name = path.file_stem().unwrap_or(path.as_os_str()).to_owned();
            name.push(".sweep");
            PathBuf::from(name)
        });
        Ok(Self { plan, out, sysfs: args.sysfs, is_json: args.json })
    }
}

pub(crate) fn main(mut args: Args) -> anyhow::Result<ExitCode> {
    match (args.command.take(), args.plan.take()) {
        (Some(Subcommand::Report(args)), _) => {
            let report = luc_sweep::report_again(&args.dir)?;
            show(&report, &args.dir, args.json)
        }
        (Some(Subcommand::Restore(args)), _) => restore(args.json),
        (None, Some(path)) => {
            luc_host::interrupt_flag::install()?;
            sweep(&SweepRequest::new(&path, args)?)
        }
        (None, None) => {
            luc_sweep::clean_up()?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn sweep(request: &SweepRequest) -> anyhow::Result<ExitCode> {
    let SweepRequest { plan, out, sysfs, is_json } = request;
    let luc = own_path()?;
    let bar = progress_bar(1, "{bar:30} repeat {pos} of {len} or more, {eta} left  {msg}");
    let report = luc_sweep::run(plan, out, &luc, sysfs, &mut |made, wanted, what| {
        bar.set_length(wanted as u64);
        bar.set_message(what.to_owned());
        bar.set_position(made as u64);
        if what.is_empty() {
            // Repeats of an earlier command say nothing on how long the rest takes.
            bar.reset_eta();
        }
    });
    bar.finish_and_clear();
    show(&report?, out, *is_json)
}

impl Args {
    /// Whether this process cleans up after a sweep, or restores by itself.
    pub(crate) fn restores(&self) -> bool {
        self.clean_up || matches!(self.command, Some(Subcommand::Restore(_)))
    }
}

fn restore(is_json: bool) -> anyhow::Result<ExitCode> {
    if !rustix::process::geteuid().is_root() {
        anyhow::bail!("restoring what a sweep has changed needs root: use sudo");
    }
    let outcome = crate::restore_after_kill::all(RESTORE_TIMEOUT);
    if is_json {
        let value = serde_json::json!({ "restored": outcome.restored, "failed": outcome.failed });
        luc_cli::print_json(&value)?;
    } else if outcome.restored.is_empty() && outcome.failed.is_empty() {
        println!("nothing to restore");
    } else {
        for text in &outcome.restored {
            println!("{text}: restored");
        }
    }
    match outcome.failed.first() {
        Some(error) => anyhow::bail!("not restored: {error}"),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn show(report: &SweepReport, out: &Path, is_json: bool) -> anyhow::Result<ExitCode> {
    write_page(report, out)?;
    if is_json {
        luc_cli::print_json(report)?;
    } else {
        print!("{report}");
        println!("results: {}", out.display());
    }
    let wide = report.not_converged();
    if is_json && wide > 0 {
        eprintln!("luc: {wide} of {} points NOT CONVERGED", report.points.len());
    }
    if report.interrupted {
        eprintln!("luc: interrupted; the same command goes on from here");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes `report.html` to the folder `out`, whole or not at all.
fn write_page(report: &SweepReport, out: &Path) -> anyhow::Result<()> {
    let whole = out.canonicalize().unwrap_or_else(|_| out.to_owned());
    let name = whole.file_stem().unwrap_or(whole.as_os_str());
    let page = luc_sweep::page(report, &name.to_string_lossy());
    let (path, new) = (out.join("report.html"), out.join("report.html.new"));
    std::fs::write(&new, luc_graphs::page(&page))
        .and_then(|()| std::fs::rename(&new, &path))
        .with_context(|| format!("cannot write {}: check the space left", path.display()))
}
