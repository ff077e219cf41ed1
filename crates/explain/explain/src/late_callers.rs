//! Callers that come one after another while the journal rests: a commit closes before all have come.
//!
//! The first fsync after a rest starts a commit. Who comes while it runs waits for it and for the next one. The sooner
//! the first caller starts it, the more come late, and a faster processor starts it sooner. In a closed loop without
//! rests two groups take turns instead, at any speed.

use serde::Serialize;

use luc_events::event_kinds::CommitKind;
use luc_events::tables::FsyncCall;

use crate::call_split::CallSplit;
use crate::call_time_parts::CallTimePart;
use crate::journal_history::JournalHistory;
use crate::latency_histogram::LatencyHistogram;
use crate::saturating_grow::SaturatingGrow as _;

/// Divisor of a commit's duration: the journal had rested if no commit ran for that time before.
const REST_DIVISOR: u64 = 10;

/// fsyncs that came after the journal had rested.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LateCallers {
    /// Commits that began after a rest and served an fsync.
    pub bursts: u64,
    /// fsyncs that these served.
    pub in_time: u64,
    /// fsyncs that came too late for these, after they had begun: they waited for one that was not theirs.
    pub late: u64,
    /// Median delay of these calls after that commit's begin.
    pub late_by_ns: u64,
    /// Time that they waited for it in all.
    pub waited_ns: u64,
    /// Maximum fall of the rate of all these calls on a faster processor, as a fraction. It assumes that only the
    /// first caller of each burst is in time.
    pub fall_at_most: f64,
}

impl LateCallers {
    /// Returns the share of the calls after a rest that came too late.
    pub(crate) fn late_share(&self) -> f64 {
        self.late as f64 / (self.in_time + self.late).max(1) as f64
    }
}

/// An fsync's place among the commits, as indexes into the history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SyncCommits {
    /// First commit that ended after the call began.
    pub(crate) first: usize,
    /// The commit that the call needed.
    pub(crate) own: usize,
    /// Number of fsyncs that the own commit served before.
    pub(crate) served: u32,
}

/// Running sums of [`LateCallers`].
#[derive(Debug, Default)]
pub(crate) struct LateCallerSums {
    bursts: u64,
    in_time: u64,
    waited_ns: u64,
    total_ns: u64,
    late_by: LatencyHistogram,
}

impl LateCallerSums {
    /// Counts an fsync that waited for its own commit.
    pub(crate) fn add(
        &mut self,
        row: &FsyncCall,
        SyncCommits { first, own, served }: SyncCommits,
        journal: &JournalHistory,
        split: &CallSplit,
    ) {
        let duration_ns = row.exit_ns.saturating_sub(row.enter_ns);
        if began_after_rest(journal, own) {
            self.bursts += u64::from(served == 0);
            self.in_time += 1;
            self.total_ns.grow(duration_ns);
        } else if first < own
            && began_after_rest(journal, first)
            && split.commits.iter().any(|&(index, _)| index == first)
        {
            let began_ns = journal.history()[first].row.start_ns;
            // Who was there before and misses it all the same wrote its data first.
            let Some(late_by_ns) = row.enter_ns.checked_sub(began_ns) else {
                return;
            };
            self.late_by.record(late_by_ns);
            self.waited_ns.grow(split.parts.get(CallTimePart::Predecessor));
            self.total_ns.grow(duration_ns);
        }
    }

    pub(crate) fn report(&self) -> LateCallers {
        let late_by = self.late_by.summary();
        let (late, all) = (late_by.count, self.in_time + late_by.count);
        let wait_ns = self.waited_ns as f64 / late.max(1) as f64;
        let more_ns = all.saturating_sub(self.bursts + late) as f64 * wait_ns;
        let total_ns = self.total_ns as f64;
        LateCallers {
            bursts: self.bursts,
            in_time: self.in_time,
            late,
            late_by_ns: late_by.p50_ns,
            waited_ns: self.waited_ns,
            fall_at_most: more_ns / (total_ns + more_ns).max(1.0),
        }
    }
}

/// Returns whether the commit at `index` is a full one that began after a rest of the journal. Of the first remembered
/// one that is unknown.
fn began_after_rest(journal: &JournalHistory, index: usize) -> bool {
    let history = journal.history();
    let (Some(before), Some(commit)) =
        (index.checked_sub(1).and_then(|index| history.get(index)), history.get(index))
    else {
        return false;
    };
    let rest_ns = commit.row.start_ns.saturating_sub(before.row.end_ns);
    commit.row.kind == CommitKind::Full
        && rest_ns > 0
        && rest_ns >= commit.duration_ns() / REST_DIVISOR
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three of four are in time, and the fourth waits as long again.
    #[test]
    fn the_fall_is_that_of_a_first_caller_alone() {
        const COMMIT_NS: u64 = 10_000_000;
        let mut sums = LateCallerSums {
            bursts: 1,
            in_time: 3,
            waited_ns: COMMIT_NS,
            total_ns: 5 * COMMIT_NS,
            ..LateCallerSums::default()
        };
        sums.late_by.record(50_000);
        let found = sums.report();
        assert_eq!((found.bursts, found.in_time, found.late), (1, 3, 1));
        assert!((found.late_share() - 0.25).abs() < 1e-9);
        // Seven commits' time instead of five.
        assert!((found.fall_at_most - 2.0 / 7.0).abs() < 1e-9, "{found:?}");

        let nobody = LateCallerSums::default().report();
        assert_eq!(nobody, LateCallers::default());
        assert!(nobody.late_share().abs() < 1e-9);
    }
}
