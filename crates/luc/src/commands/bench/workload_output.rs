//! Output of the workloads: a progress bar, a table, JSON.

use std::io::{IsTerminal as _, stderr};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use luc_workload::latency::LatencyFigures;
use luc_workload::workers::{Arrivals, ClientKind, RunProgress, RunSchedule};

/// Minimum length of a run that has a progress bar.
const MIN_SHOWN_NS: u64 = 2_000_000_000;

/// A progress bar on a terminal's stderr; nothing otherwise. It draws only when ticked, without a
/// thread of its own, so that clients can be forked.
pub(super) struct WorkloadProgressBar(ProgressBar);

/// The first line of a report, which says when nothing was kept.
pub(super) fn unsafe_if(no_fsync: bool, head: String) -> String {
    if no_fsync { format!("{head}; UNSAFE: without fsync") } else { head }
}

impl WorkloadProgressBar {
    /// A bar for a run of `schedule`; hidden if that is short.
    pub(super) fn new(name: &'static str, schedule: &RunSchedule) -> Self {
        let total_ns = schedule.warmup_ns + schedule.measured_ns;
        if total_ns <= MIN_SHOWN_NS {
            return Self(ProgressBar::hidden());
        }
        let template = format!("{name} [{{bar:40}}] {{elapsed}} of {:.0}s", total_ns as f64 / 1e9);
        Self::visible(total_ns / 1_000_000, &template)
    }

    /// No bar, where nobody knows how long it takes.
    pub(super) fn none() -> Self {
        Self(ProgressBar::hidden())
    }

    /// A bar that counts rounds.
    pub(super) fn rounds(name: &'static str, rounds: usize) -> Self {
        Self::visible(rounds as u64, &format!("{name} [{{bar:40}}] {{pos}}/{{len}}, {{eta}} left"))
    }

    fn visible(length: u64, template: &str) -> Self {
        if !stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let target = ProgressDrawTarget::stderr_with_hz(5);
        let bar = ProgressBar::with_draw_target(Some(length), target);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        Self(bar)
    }

    pub(super) fn tick(&self, progress: RunProgress) {
        self.0.set_position(progress.elapsed_ns / 1_000_000);
    }

    pub(super) fn tick_round(&self, done: usize) {
        if self.0.elapsed().as_nanos() > u128::from(MIN_SHOWN_NS) {
            self.0.set_position(done as u64);
        }
    }

    pub(super) fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// `16 threads` or `1 process`.
pub(super) fn clients(count: usize, kind: ClientKind) -> String {
    let (one, many) = match kind {
        ClientKind::Thread => ("thread", "threads"),
        ClientKind::Process => ("process", "processes"),
    };
    format!("{count} {}", if count == 1 { one } else { many })
}

/// `; clients arrive uniform:40us`, or nothing where all begin at once.
pub(super) fn arrivals(arrivals: Option<&Arrivals>) -> String {
    arrivals.map_or(String::new(), |arrivals| format!("; clients arrive {arrivals}"))
}

/// The times of a run.
pub(super) fn times(measured_s: f64, warmup_s: f64, interrupted: bool) -> String {
    let early = if interrupted { " (interrupted)" } else { "" };
    format!("{measured_s:.1} s measured{early} after {warmup_s:.1} s of warm-up left out")
}

/// Lines, then the latencies as a table.
pub(super) fn text(lines: &[&str], operations: &[LatencyFigures]) {
    for line in lines {
        println!("{line}");
    }
    println!(
        "\n{:<16}{:>9}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}",
        "latency, us", "count", "mean", "p50", "p90", "p99", "p99.9", "max"
    );
    for row in operations {
        println!(
            "{:<16}{:>9}{:>12.1}{:>12.1}{:>12.1}{:>12.1}{:>12.1}{:>12.1}",
            row.operation,
            row.count,
            row.mean_us,
            row.p50_us,
            row.p90_us,
            row.p99_us,
            row.p999_us,
            row.max_us
        );
    }
}
