//! What the timed workloads share: their options, their run, and how their figures are shown.

use std::path::PathBuf;
use std::process::ExitCode;

use luc_bench::BenchError;
use luc_bench::latency::LatencyFigures;
use luc_bench::units::{duration_ns, seconds_ns};
use luc_bench::workers::{ClientKind, Progress, Schedule};
use luc_bench::workloads::timed::{Head, Timed};
use serde::Serialize;

use super::{or_interrupted, show, status};

/// Options that the timed workloads share.
#[derive(Debug, clap::Args)]
pub(super) struct Common {
    /// Directory to work in, on the file system to be measured
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Length of the measured interval in seconds
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    seconds: f64,
    /// Time left out of the figures [default: the longer of 1s and a tenth of --seconds]
    #[arg(long, value_name = "DUR")]
    warmup: Option<String>,
    /// Clients are processes instead of threads
    #[arg(long)]
    processes: bool,
    /// Pause of each client after each round of its loop
    #[arg(long, value_name = "DUR", default_value = "0")]
    think: String,
    /// Seed of everything random; the same seed gives the same operations
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// UNSAFE: leave every fsync out, to see what they cost; a power cut then loses everything
    #[arg(long)]
    no_fsync: bool,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

impl Common {
    /// The common part of a plan for `clients` clients.
    pub(super) fn timed(&self, clients: usize) -> Result<Timed, BenchError> {
        let kind = if self.processes {
            ClientKind::Process
        } else {
            ClientKind::Thread
        };
        let warmup_ns = self
            .warmup
            .as_deref()
            .map(|text| duration_ns("--warmup", text))
            .transpose()?;
        Ok(Timed {
            directory: self.dir.clone(),
            schedule: Schedule::new(
                clients,
                kind,
                warmup_ns,
                seconds_ns("--seconds", self.seconds)?,
            )?,
            think_ns: duration_ns("--think", &self.think)?,
            seed: self.seed,
            no_fsync: self.no_fsync,
        })
    }

    /// Runs a workload and prints its figures: as JSON, or the head, a line on its rates, and the
    /// latencies.
    pub(super) fn present<R: Shown>(
        &self,
        timed: &Timed,
        run: impl FnOnce(&mut dyn FnMut(Progress)) -> Result<R, BenchError>,
    ) -> anyhow::Result<ExitCode> {
        let bar = show::Bar::new(R::NAME, &timed.schedule);
        let outcome = run(&mut |progress| bar.tick(progress));
        bar.clear();
        let report = match outcome {
            Ok(report) => report,
            Err(error) => return or_interrupted(error),
        };
        let head = report.head();
        if self.json {
            show::json(&report)?;
            return Ok(status(head.interrupted));
        }
        let first = format!(
            "{}: {}, {}, seed {}",
            report.title(),
            show::clients(head.clients, head.client_kind),
            show::times(head.measured_s, head.warmup_s, head.interrupted),
            head.seed
        );
        let first = show::unsafe_if(head.no_fsync, first);
        show::text(&[&first, &report.rates()], report.operations())?;
        Ok(status(head.interrupted))
    }
}

/// A report that can be shown.
pub(super) trait Shown: Serialize {
    /// The workload's name.
    const NAME: &'static str;

    /// What every report has.
    fn head(&self) -> &Head;

    /// The name, with its parameters if it has several sets.
    fn title(&self) -> String {
        Self::NAME.to_owned()
    }

    /// A line with the rates.
    fn rates(&self) -> String;

    /// Latencies.
    fn operations(&self) -> &[LatencyFigures];
}
