//! Callers that come one after another while the journal rests: a commit closes before all have come.
//!
//! The first fsync after a rest starts a commit. Who comes while it runs waits for it and for the next one. The sooner
//! the first caller starts it, the more come late, and a faster processor starts it sooner. In a closed loop without
//! rests two groups take turns instead, at any speed.

use serde::Serialize;

use luc_events::codes::CommitKind;
use luc_events::tables::Sync;

use crate::histogram::Histogram;
use crate::journal::Journal;
use crate::parts::Part;
use crate::split::Split;

/// The journal rested if no commit ran for this part of a commit's own duration before it, as a divisor.
const REST: u64 = 10;

/// fsyncs that came after the journal had rested.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Commits that began after a rest and served an fsync.
    pub bursts: u64,
    /// fsyncs that these served.
    pub in_time: u64,
    /// fsyncs that came too late for these, after they had begun: they waited for one that was not theirs.
    pub late: u64,
    /// How long after that commit's begin they came, the median.
    pub late_by_ns: u64,
    /// How long they waited for it in all.
    pub waited_ns: u64,
    /// By which part the rate of all these calls would fall, at most, if the processor were faster: if the first caller
    /// of each burst only were in time.
    pub fall_at_most: f64,
}

impl Spread {
    /// Which part of the calls after a rest came too late.
    pub(crate) fn late_share(&self) -> f64 {
        self.late as f64 / (self.in_time + self.late).max(1) as f64
    }
}

/// Running sums of [`Spread`].
#[derive(Debug, Default)]
pub(crate) struct SpreadSums {
    bursts: u64,
    in_time: u64,
    waited_ns: u64,
    total_ns: u64,
    late_by: Histogram,
}

impl SpreadSums {
    /// Counts one fsync, which came when the commit at `first` was the next one to end and needed that at `own`.
    /// `served` is how many the own one served before.
    pub(crate) fn add(
        &mut self,
        row: &Sync,
        (first, own): (usize, usize),
        served: u32,
        journal: &Journal,
        split: &Split,
    ) {
        let duration_ns = row.exit_ns.saturating_sub(row.enter_ns);
        if began_after_rest(journal, own) {
            self.bursts += u64::from(served == 0);
            self.in_time += 1;
            self.total_ns = self.total_ns.saturating_add(duration_ns);
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
            self.waited_ns = (self.waited_ns).saturating_add(split.parts.get(Part::Predecessor));
            self.total_ns = self.total_ns.saturating_add(duration_ns);
        }
    }

    pub(crate) fn report(&self) -> Spread {
        let late_by = self.late_by.summary();
        let (late, all) = (late_by.count, self.in_time + late_by.count);
        let wait_ns = self.waited_ns as f64 / late.max(1) as f64;
        let more_ns = all.saturating_sub(self.bursts + late) as f64 * wait_ns;
        let total_ns = self.total_ns as f64;
        Spread {
            bursts: self.bursts,
            in_time: self.in_time,
            late,
            late_by_ns: late_by.p50_ns,
            waited_ns: self.waited_ns,
            fall_at_most: more_ns / (total_ns + more_ns).max(1.0),
        }
    }
}

/// Whether the commit at `index` is a full one before which the journal had rested. Of the first one that is
/// remembered that is not known.
fn began_after_rest(journal: &Journal, index: usize) -> bool {
    let history = journal.history();
    let (Some(before), Some(commit)) =
        (index.checked_sub(1).and_then(|index| history.get(index)), history.get(index))
    else {
        return false;
    };
    let rest_ns = commit.row.start_ns.saturating_sub(before.row.end_ns);
    commit.row.kind == CommitKind::Full && rest_ns > 0 && rest_ns >= commit.duration_ns() / REST
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three of four are in time, and the fourth waits as long again.
    #[test]
    fn the_fall_is_that_of_a_first_caller_alone() {
        const COMMIT_NS: u64 = 10_000_000;
        let mut sums = SpreadSums {
            bursts: 1,
            in_time: 3,
            waited_ns: COMMIT_NS,
            total_ns: 5 * COMMIT_NS,
            ..SpreadSums::default()
        };
        sums.late_by.record(50_000);
        let found = sums.report();
        assert_eq!((found.bursts, found.in_time, found.late), (1, 3, 1));
        assert!((found.late_share() - 0.25).abs() < 1e-9);
        // Seven commits' time instead of five.
        assert!((found.fall_at_most - 2.0 / 7.0).abs() < 1e-9, "{found:?}");

        let nobody = SpreadSums::default().report();
        assert_eq!(nobody, Spread::default());
        assert!(nobody.late_share().abs() < 1e-9);
    }
}
