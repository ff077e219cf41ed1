//! `luc bench varmail`: a mail server, by the operations of Filebench's personality.

use std::process::ExitCode;

use luc_workload::latency::LatencyFigures;
use luc_workload::workers::Arrivals;
use luc_workload::workloads::timed_run::TimedReportHead;
use luc_workload::workloads::varmail::{self, Varmail, VarmailReport};

use super::Directories;
use super::timed_options::{ShownFigures, TimedOptions};

/// Run a mail server as Filebench's varmail models it
///
/// Each client loops over: delete; create, append, fsync, close; open, read whole, append, fsync, close; open, read
/// whole, close. As in Filebench, files are chosen in turn. Sizes of appends are uniform from 0 to the append size.
/// Figures: Filebench's operations per second and the latency of each operation.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  luc bench varmail --dir /mnt/x
  luc bench varmail --dir /mnt/x --parameters luc --seconds 60 --json
  luc bench varmail --dir /mnt/x --threads 4 --processes
  luc bench varmail --dir /mnt/x --parameters luc --threads 8 --rounds 50 --arrivals 100us")]
pub(crate) struct Args {
    #[command(flatten)]
    common: TimedOptions,
    /// Number of clients [default: 16, with --parameters luc 64]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Set of sizes: Filebench's (1000 files of 16k, appends up to 16k) or the LUC paper's (256 files, 1k each)
    #[arg(long, value_enum, default_value_t = Parameters::Filebench)]
    parameters: Parameters,
    /// Directories of the files: one for all, as in Filebench, or for each client its own with its share of them
    #[arg(long, value_enum, value_name = "WHICH", default_value = "one")]
    directories: Directories,
    /// Measure this many rounds instead of --seconds
    ///
    /// In each round all clients go through the loop once, on a journal at rest. This models mail that comes in
    /// bursts.
    #[arg(long, value_name = "R", conflicts_with_all = ["seconds", "warmup", "think", "think_distribution", "slow_clients"])]
    rounds: Option<usize>,
    /// Spread the starts of a round over a time: 40us, exponential:40us (its mean), or file:PATH [default: all at
    /// once]
    ///
    /// The time does not depend on the processor's speed. A file has a time on each line.
    #[arg(long, value_name = "SPREAD", requires = "rounds")]
    arrivals: Option<String>,
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
    let clients = args.threads.unwrap_or(parameters.clients);
    let plan = Varmail {
        timed: args.common.timed(clients)?,
        parameters,
        directory_per_client: args.directories == Directories::Own,
        rounds: args.rounds,
        arrivals: args.arrivals.as_deref().map(Arrivals::parse).transpose()?,
    };
    args.common.present(&plan.timed, |tick| varmail::run(&plan, tick))
}

impl ShownFigures for VarmailReport {
    const NAME: &'static str = "varmail";

    fn head(&self) -> &TimedReportHead {
        &self.head
    }

    fn title(&self) -> String {
        format!("varmail ({} parameters)", self.parameters.name)
    }

    fn rates(&self) -> String {
        let arrivals = super::workload_output::arrivals(self.arrivals.as_ref());
        format!(
            "{:.1} operations/s ({} operations); {:.1} fsyncs/s{arrivals}",
            self.flowops_per_second, self.flowops, self.fsyncs_per_second
        )
    }

    fn operations(&self) -> &[LatencyFigures] {
        &self.operations
    }
}
