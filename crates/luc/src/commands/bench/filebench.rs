//! `luc bench filebench`: runs workload files (.f) in Filebench's language.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use luc_filebench::{DrawnValues, FilebenchError, FilebenchOptions, WorkloadFile};
use luc_workload::option_units::seconds_ns;

use super::{or_interrupted, status, workload_output};

/// Run a Filebench workload file (.f), or a stock workload by its name
///
/// Stock workloads are all personalities of Filebench's, such as varmail, fileserver, webserver, webproxy and oltp;
/// for all names see docs/reference/filebench.md. Every fileset is made in a fresh subdirectory of --dir, whatever
/// path the file gives. A run lasts --seconds, else as long as the file says, else 60 s or until its threads are
/// done.
///
/// A .f file is a program: its lines `system "..."` are run by /bin/sh, with your rights. As root they are run with
/// --system only.
///
/// Exit status: 0 done; 1 the run failed; 2 the file or an option is wrong, and nothing was touched.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  luc bench filebench varmail --dir /mnt/x
  luc bench filebench my.f --dir /mnt/x --seconds 10 --set nthreads=4 --set filesize=16k
  luc bench filebench webserver --dir /mnt/x --cold
  luc bench filebench fileserver --dir /mnt/x --compat --json")]
pub(crate) struct Args {
    /// Workload file, or the name of a stock workload
    #[arg(value_name = "FILE.f")]
    file: String,
    /// Directory to work in, on the measured file system
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Length of the run in seconds [default: what the file says, else 60]
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Seed of all random choices; the same seed gives each thread the same draws
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Set a variable of the file; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Keep Filebench's quirks: files in turn, empty appends, calls rounded up, no sync before the run
    #[arg(long)]
    compat: bool,
    /// Write all back and drop the kernel's caches after the files are made, before the run (root)
    #[arg(long)]
    cold: bool,
    /// As root, also run the commands that the file has for the shell (system "...")
    #[arg(long)]
    system: bool,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the workload and prints its figures.
pub(super) fn main(args: &Args) -> anyhow::Result<ExitCode> {
    // 1. The workload, and root's consent to its commands.
    let measured_ns = args.seconds.map(|seconds| seconds_ns("--seconds", seconds)).transpose()?;
    let workload = WorkloadFile::load(&args.file, &args.set)?;
    if rustix::process::geteuid().is_root()
        && !args.system
        && !workload.is_stock()
        && let Some((line, command)) = workload.first_command()
    {
        bail!(
            "{}:{line}: the file has the shell run '{}', and luc runs as root: look at it, then give --system",
            args.file,
            luc_units::plain(&command)
        );
    }
    // 2. The run.
    let options = FilebenchOptions {
        directory: args.dir.clone(),
        measured_ns,
        seed: args.seed,
        compat: args.compat,
        cold: args.cold,
    };
    let bar = if workload.is_open_ended(&options) {
        workload_output::WorkloadProgressBar::none()
    } else {
        workload_output::WorkloadProgressBar::new("filebench", &workload.schedule(&options))
    };
    let outcome = workload.run(&options, &mut |progress| bar.tick(progress));
    bar.clear();
    let report = match outcome {
        Ok(report) => report,
        Err(FilebenchError::Bench(error)) => return or_interrupted(error),
        Err(error @ FilebenchError::Run { .. }) => {
            eprintln!("luc: {error}");
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => return Err(error.into()),
    };
    // 3. The report.
    let head = &report.head;
    if args.json {
        luc_cli::print_json(&report)?;
        return Ok(status(head.interrupted));
    }
    let quirks = if report.compat { " with Filebench's quirks" } else { "" };
    let cold = if report.cold { ", caches dropped" } else { "" };
    let first = format!(
        "filebench {}{quirks}{cold}: {}, {}, seed {}",
        report.file,
        workload_output::clients(head.clients, head.client_kind),
        workload_output::times(head.measured_s, head.warmup_s, head.interrupted),
        head.seed
    );
    let rates = format!(
        "{:.1} operations/s ({} operations); {:.1} MiB/s read, {:.1} MiB/s written",
        report.flowops_per_second,
        report.flowops,
        report.read_mib_per_second,
        report.written_mib_per_second
    );
    workload_output::text(&[&first, &rates], &report.operations);
    for drawn in &report.drawn {
        let DrawnValues { operation, count, mean, deviation } = drawn;
        println!("{operation}: {count} draws, mean {mean:.3}, standard deviation {deviation:.3}");
    }
    Ok(status(head.interrupted))
}
