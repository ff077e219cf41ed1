//! The limit of a cell: N callers over what one round of theirs must do.
//!
//! A round must write the data of N callers, make one commit or flush, and let N callers compute on
//! this machine's processors. Nothing of it overlaps where all callers are in step: they compute when
//! the commit has ended and before the next one starts.

use luc_stats::median;

use super::super::harness::figure;
use super::super::rounds::{Run, Runs, calls_per_s};
use super::{Cell, Load};

/// What one round must do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Round {
    callers: f64,
    /// Until the data of all is on the disk, ms.
    pub(super) data_ms: f64,
    /// The commit, or the flushes, ms.
    pub(super) commit_ms: f64,
    /// N calls on the processors that there are, ms.
    pub(super) processor_ms: f64,
}

impl Round {
    /// From what was measured of a cell; `None` if something was not.
    pub(super) fn of(cell: &Cell, runs: &Runs, processors: usize) -> Option<Self> {
        let part = |name: &'static str| {
            let of = move |run: &Run| figure(&run.bench[name], "median_us").ok();
            median(&runs.figures(cell.name, "commit", of)).map(|us| us / 1e3)
        };
        // The gate's own work counts neither as necessary nor as free: the cheaper of both is taken.
        let call_ms = ["stock", "gate"]
            .into_iter()
            .filter_map(|setting| median(&runs.figures(cell.name, setting, processor_ms)))
            .min_by(f64::total_cmp)?;
        Some(Self {
            callers: cell.callers as f64,
            data_ms: part("wait_writeback")?,
            commit_ms: part("fsync")? * flushes(cell.load),
            processor_ms: call_ms * cell.callers as f64 / processors.min(cell.callers) as f64,
        })
    }

    /// All of it, ms.
    pub(super) fn all_ms(&self) -> f64 {
        self.data_ms + self.commit_ms + self.processor_ms
    }

    /// Calls per second if rounds follow each other without a pause.
    pub(super) fn calls_per_s(&self) -> f64 {
        self.callers / self.all_ms() * 1e3
    }

    /// How long a round takes at this rate, ms.
    pub(super) fn at_rate_ms(&self, calls_per_s: f64) -> f64 {
        self.callers / calls_per_s * 1e3
    }
}

/// Callers that need a flush only and are released together take two flush times: the first one's
/// request starts a flush alone, and the others' share the next.
fn flushes(load: Load) -> f64 {
    match load {
        Load::Overwrite => 2.0,
        Load::Preallocated | Load::SmallPreallocated | Load::Append | Load::Replace => 1.0,
    }
}

/// Processor time of a call of the clients, ms.
fn processor_ms(run: &Run) -> Option<f64> {
    let busy = figure(&run.bench, "processors_busy").ok()?;
    Some(busy / calls_per_s(run)? * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_a_round() {
        let round = Round {
            callers: 16.0,
            data_ms: 2.0,
            commit_ms: 12.0,
            processor_ms: 2.0,
        };
        assert!((round.all_ms() - 16.0).abs() < 1e-9);
        assert!((round.calls_per_s() - 1000.0).abs() < 1e-9);
        assert!((round.at_rate_ms(800.0) - 20.0).abs() < 1e-9);
    }
}
