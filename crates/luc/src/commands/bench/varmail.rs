//! `luc bench varmail`.

use std::process::ExitCode;

use luc_bench::workloads::varmail::{self, Varmail};

use super::{Common, or_interrupted, show, status};

/// Runs a mail server as Filebench's varmail models it
///
/// Each client loops over: delete; create, append, fsync, close; open, read whole, append, fsync,
/// close; open, read whole, close. Figures: Filebench's operations per second and the latency of
/// each operation. As in Filebench files are chosen in turn, and an append is uniform between
/// nothing and the append size.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  luc bench varmail --dir /mnt/x
  luc bench varmail --dir /mnt/x --parameters luc --seconds 60 --json
  luc bench varmail --dir /mnt/x --threads 4 --processes")]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Number of clients [default: 16, with --parameters luc 64]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Whose sizes: Filebench's (1000 files of 16k, appends up to 16k) or the LUC paper's (256
    /// files, 1k each)
    #[arg(long, value_enum, default_value_t = Parameters::Filebench)]
    parameters: Parameters,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Parameters {
    Filebench,
    Luc,
}

/// Runs the workload and prints its figures.
pub(super) fn main(args: &Args) -> anyhow::Result<ExitCode> {
    let parameters = match args.parameters {
        Parameters::Filebench => varmail::FILEBENCH,
        Parameters::Luc => varmail::LUC,
    };
    let plan = Varmail {
        directory: args.common.dir.clone(),
        schedule: args
            .common
            .schedule(args.threads.unwrap_or(parameters.clients))?,
        parameters,
        think_ns: args.common.think_ns()?,
        seed: args.common.seed,
    };
    let bar = show::Bar::new("varmail", &plan.schedule);
    let outcome = varmail::run(&plan, &mut |progress| bar.tick(progress));
    bar.clear();
    let report = match outcome {
        Ok(report) => report,
        Err(error) => return or_interrupted(error),
    };
    if args.common.json {
        show::json(&report)?;
        return Ok(status(report.interrupted));
    }
    let head = format!(
        "varmail ({} parameters): {}, {}, seed {}",
        report.parameters.name,
        show::clients(report.clients, report.client_kind),
        show::times(report.measured_s, report.warmup_s, report.interrupted),
        report.seed
    );
    let rates = format!(
        "{:.1} operations/s ({} operations); {:.1} fsyncs/s",
        report.flowops_per_second, report.flowops, report.fsyncs_per_second
    );
    show::text(&[&head, &rates], &report.operations)?;
    Ok(status(report.interrupted))
}
