//! Shared parts of the timed workloads: options, the run, and the printing of figures.

use std::path::PathBuf;
use std::process::ExitCode;

use luc_workload::BenchError;
use luc_workload::latency::LatencyFigures;
use luc_workload::option_units::{duration_ns, seconds_ns};
use luc_workload::workers::{ClientKind, RunProgress, RunSchedule, ThinkDistribution, ThinkTime};
use luc_workload::workloads::timed_run::{SyncCall, TimedPlan, TimedReportHead};
use serde::Serialize;

use super::{or_interrupted, status, workload_output};

/// Options that the timed workloads share.
#[derive(Debug, clap::Args)]
pub(super) struct TimedOptions {
    /// Directory to work in, on the measured file system
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Length of the measured interval in seconds
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    seconds: f64,
    /// Time before the measured interval, such as 500ms [default: the longer of 1s and a tenth of --seconds]
    #[arg(long, value_name = "DUR")]
    warmup: Option<String>,
    /// Make clients processes instead of threads
    #[arg(long)]
    processes: bool,
    /// Pause of each client after each round of its loop, such as 1ms
    #[arg(long, value_name = "DUR", default_value = "0")]
    think: String,
    /// Distribution of the pauses: constant, or exponential with --think as the mean, for random arrivals
    #[arg(long, value_enum, value_name = "HOW", default_value_t = How::Constant)]
    think_distribution: How,
    /// Number of slow clients
    #[arg(long, value_name = "N", default_value_t = 0)]
    slow_clients: usize,
    /// Factor by which the rounds of slow clients are longer, pause included
    #[arg(long, value_name = "F", default_value_t = 10.0)]
    slow_factor: f64,
    /// Seed of all random choices; the same seed gives the same operations
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// UNSAFE: skip every fsync, to see its cost; a power cut then loses everything
    #[arg(long)]
    no_fsync: bool,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum How {
    Constant,
    Exponential,
}

/// The call that synchronizes.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(super) enum SyncCallOption {
    Fdatasync,
    Fsync,
}

impl From<SyncCallOption> for SyncCall {
    fn from(call: SyncCallOption) -> Self {
        match call {
            SyncCallOption::Fdatasync => Self::Fdatasync,
            SyncCallOption::Fsync => Self::Fsync,
        }
    }
}

impl TimedOptions {
    /// The common part of a plan for `clients` clients.
    pub(super) fn timed(&self, clients: usize) -> Result<TimedPlan, BenchError> {
        let kind = if self.processes { ClientKind::Process } else { ClientKind::Thread };
        let warmup_ns =
            self.warmup.as_deref().map(|text| duration_ns("--warmup", text)).transpose()?;
        Ok(TimedPlan {
            directory: self.dir.clone(),
            schedule: RunSchedule::new(
                clients,
                kind,
                warmup_ns,
                seconds_ns("--seconds", self.seconds)?,
            )?,
            think: self.think(clients)?,
            seed: self.seed,
            no_fsync: self.no_fsync,
        })
    }

    fn think(&self, clients: usize) -> Result<ThinkTime, BenchError> {
        let think = ThinkTime {
            mean_ns: duration_ns("--think", &self.think)?,
            distribution: match self.think_distribution {
                How::Constant => ThinkDistribution::Constant,
                How::Exponential => ThinkDistribution::Exponential,
            },
            slow_clients: self.slow_clients,
            slow_factor: self.slow_factor,
        };
        think.check(clients)?;
        Ok(think)
    }

    /// Runs a workload and prints its figures: as JSON, or as the head, a line with rates, and the latencies.
    pub(super) fn present<R: ShownFigures>(
        &self,
        timed: &TimedPlan,
        run: impl FnOnce(&mut dyn FnMut(RunProgress)) -> Result<R, BenchError>,
    ) -> anyhow::Result<ExitCode> {
        let bar = workload_output::WorkloadProgressBar::new(R::NAME, &timed.schedule);
        let outcome = run(&mut |progress| bar.tick(progress));
        bar.clear();
        let report = match outcome {
            Ok(report) => report,
            Err(error) => return or_interrupted(error),
        };
        let head = report.head();
        if self.json {
            luc_cli::print_json(&report)?;
            return Ok(status(head.interrupted));
        }
        let first = format!(
            "{}: {}, {}, seed {}",
            report.title(),
            workload_output::clients(head.clients, head.client_kind),
            workload_output::times(head.measured_s, head.warmup_s, head.interrupted),
            head.seed
        );
        let first = workload_output::unsafe_if(head.no_fsync, first);
        workload_output::text(&[&first, &report.rates()], report.operations());
        Ok(status(head.interrupted))
    }
}

/// The figures that every timed workload prints.
pub(super) trait ShownFigures: Serialize {
    const NAME: &'static str;

    /// The figures common to all workloads.
    fn head(&self) -> &TimedReportHead;

    /// The name, with the name of its parameter set if it has several.
    fn title(&self) -> String {
        Self::NAME.to_owned()
    }

    /// A line with the rates.
    fn rates(&self) -> String;

    fn operations(&self) -> &[LatencyFigures];
}
