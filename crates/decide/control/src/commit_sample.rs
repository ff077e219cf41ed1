//! A sample of commits over which a rate is measured.

use crate::auto_gate::GatePhase;
use crate::commit_end::CommitEnd;

/// Number of ends of commits that a sample leaves out after a switch, while callers regroup.
const SETTLE_EPOCHS: u32 = 2;
/// Smallest number of ends of commits in a sample.
const MIN_EPOCHS: u32 = 8;
/// Largest number of leading ends whose callers called before others were held. The last of them return two commits
/// later. A return counts as an end if the last end was a quarter of its call ago.
const MAX_EARLIER_ENDS: u32 = 8;
/// Smallest number of ends in a check of an engaged gate, which costs what the gate gains. Also for samples in which
/// everything is seen exactly.
const SHORT_EPOCHS: u32 = 4;
/// Shortest sample, ns. Each participant must also be served half as often as the sample has epochs.
const MIN_NS: u64 = 10_000_000;
/// Duration after which a sample ends with what it has, ns.
const LONGEST_NS: u64 = 1_000_000_000;

/// State of the present sample. All zeros is its beginning.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CommitSample {
    epochs: u32,
    /// Number of leading ends whose callers called before others were held.
    from_before: u32,
    start_ns: u64,
    completions: u64,
    own_completions: u64,
    newcomers: u64,
    all_latencies_ns: u64,
    /// Sum of the latencies of calls that were not held and whose commits have ended, ns, and their number.
    latencies_ns: u64,
    latencies: u32,
    last: End,
    /// Longest time from one end of a commit to the next, ns, and the number of calls served in it.
    longest_ns: u64,
    longest_served: u64,
}

/// End of a commit, and the number of calls served by then.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct End {
    end_ns: u64,
    completions: u64,
}

/// Results of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SampleResult {
    /// Calls served per second, of all callers.
    pub(crate) rate: f64,
    /// Part of these calls whose callers belong to the controller.
    pub(crate) own_share: f64,
    /// Mean latency of its callers' calls that were not held, s; 0 if there was none.
    pub(crate) latency_s: f64,
    /// Mean time from one end of a commit to the next, s.
    pub(crate) interval_s: f64,
    /// Part of its callers' calls that were their callers' first.
    pub(crate) newcomers_share: f64,
    /// Mean number of calls under way, as a part of the largest number; 0 if unknown.
    pub(crate) closed: f64,
}

impl SampleResult {
    /// Mean number of calls under way (Little's law), if each took as long as those of the controller's callers.
    pub(crate) fn calls_at_once(&self) -> f64 {
        self.rate * self.latency_s
    }
}

impl CommitSample {
    /// Adds the epoch to the sample. Returns the results once the sample is complete.
    pub(crate) fn observe(
        &mut self,
        epoch: &CommitEnd<'_>,
        phase: GatePhase,
    ) -> Option<SampleResult> {
        if matches!(phase, GatePhase::TryGated | GatePhase::Engaged) && self.is_from_before(epoch) {
            return None;
        }
        self.epochs = self.epochs.saturating_add(1);
        if self.epochs <= SETTLE_EPOCHS {
            self.start_ns = epoch.end_ns;
            self.completions = epoch.completions;
            self.own_completions = epoch.own_completions;
            self.newcomers = epoch.newcomers;
            self.all_latencies_ns = epoch.latencies_ns;
            self.note_end(epoch);
            return None;
        }
        let interval_ns = epoch.end_ns.saturating_sub(self.last.end_ns);
        if interval_ns > self.longest_ns {
            self.longest_ns = interval_ns;
            self.longest_served = epoch.completions.saturating_sub(self.last.completions);
        }
        self.note_end(epoch);
        if epoch.released == 0 {
            self.latencies_ns = self.latencies_ns.saturating_add(epoch.commit_ns);
            self.latencies = self.latencies.saturating_add(1);
        }
        let elapsed_ns = epoch.end_ns.saturating_sub(self.start_ns);
        let served = epoch.completions.saturating_sub(self.completions);
        let epochs =
            if phase == GatePhase::Check || epoch.exact { SHORT_EPOCHS } else { MIN_EPOCHS };
        let enough = self.epochs >= SETTLE_EPOCHS + epochs
            && elapsed_ns >= MIN_NS
            && served >= u64::from(epochs) / 2 * u64::from(epoch.participants);
        let overdue = elapsed_ns >= LONGEST_NS && self.epochs >= SETTLE_EPOCHS + 3;
        let own = epoch.own_completions.saturating_sub(self.own_completions);
        let newcomers = epoch.newcomers.saturating_sub(self.newcomers);
        // Little's law: the time of all calls, per time.
        let latencies_ns = epoch.latencies_ns.saturating_sub(self.all_latencies_ns);
        let most_ns = elapsed_ns as f64 * f64::from(epoch.most_at_once);
        (enough || overdue).then(|| SampleResult {
            rate: served as f64 * 1e9 / elapsed_ns.max(1) as f64,
            own_share: own as f64 / served.max(1) as f64,
            latency_s: self.latencies_ns as f64 / 1e9 / f64::from(self.latencies.max(1)),
            interval_s: elapsed_ns as f64 / 1e9 / f64::from(self.epochs - SETTLE_EPOCHS),
            newcomers_share: newcomers as f64 / own.max(1) as f64,
            closed: if most_ns > 0.0 { latencies_ns as f64 / most_ns } else { 0.0 },
        })
    }

    /// Whether this is not the end of a round yet: callers return that called before others were held. The held callers
    /// wait meanwhile, so they would seem slow.
    fn is_from_before(&mut self, epoch: &CommitEnd<'_>) -> bool {
        let is_from_before = self.epochs == 0
            && epoch.released == 0
            && !epoch.exact
            && self.from_before < MAX_EARLIER_ENDS;
        self.from_before += u32::from(is_from_before);
        is_from_before
    }

    /// Rate per second so far, and its number of commits, once two are measured. `None` where everything is seen
    /// exactly, since that sample is short enough.
    pub(crate) fn so_far(&self, epoch: &CommitEnd<'_>) -> Option<(f64, u32)> {
        let elapsed_ns = epoch.end_ns.saturating_sub(self.start_ns);
        let served = epoch.completions.saturating_sub(self.completions);
        let is_measured = self.has_settled(1) && elapsed_ns >= MIN_NS && !epoch.exact;
        is_measured.then(|| {
            let rate = served as f64 * 1e9 / elapsed_ns as f64;
            (rate, self.epochs - SETTLE_EPOCHS)
        })
    }

    /// Rate per second without the longest commit, once two are measured.
    pub(crate) fn rate_but_for_longest(&self) -> Option<f64> {
        let elapsed_ns = self.last.end_ns.saturating_sub(self.start_ns);
        let served = self.last.completions.saturating_sub(self.completions);
        let rest_ns = elapsed_ns.saturating_sub(self.longest_ns);
        let rest = served.saturating_sub(self.longest_served);
        (self.has_settled(1) && rest_ns > 0).then(|| rest as f64 * 1e9 / rest_ns as f64)
    }

    fn note_end(&mut self, epoch: &CommitEnd<'_>) {
        self.last = End { end_ns: epoch.end_ns, completions: epoch.completions };
    }

    /// Whether callers have regrouped after the switch, and `more` commits have ended since.
    pub(crate) fn has_settled(&self, more: u32) -> bool {
        self.epochs > SETTLE_EPOCHS + more
    }

    /// Starts the next sample of the same kind, without settling.
    pub(crate) fn go_on(&mut self) {
        *self = Self { epochs: SETTLE_EPOCHS - 1, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// End of the `number`th commit of 10 ms each, which four callers share.
    fn end(number: u64, released: u32, exact: bool) -> CommitEnd<'static> {
        CommitEnd {
            end_ns: number * 10_000_000,
            completions: number * 4,
            own_completions: number * 3,
            newcomers: 4,
            participants: 4,
            commit_ns: 10_000_000,
            released,
            exact,
            ..CommitEnd::default()
        }
    }

    /// Number of commits of ungated callers until the sample is complete.
    fn epochs_until_complete(exact: bool, phase: GatePhase) -> u64 {
        let mut sample = CommitSample::default();
        let mut number = 0;
        loop {
            number += 1;
            if let Some(measured) = sample.observe(&end(number, 0, exact), phase) {
                assert!((measured.rate - 400.0).abs() < 1e-6, "{measured:?}");
                assert!((measured.own_share - 0.75).abs() < 1e-6, "{measured:?}");
                return number;
            }
        }
    }

    #[test]
    fn what_is_seen_exactly_takes_no_longer_than_a_check() {
        assert_eq!(
            epochs_until_complete(true, GatePhase::Learn),
            epochs_until_complete(false, GatePhase::Check)
        );
        assert!(
            epochs_until_complete(true, GatePhase::Learn)
                < epochs_until_complete(false, GatePhase::Learn)
        );
    }

    #[test]
    fn a_gated_sample_begins_with_the_first_round() {
        let complete = |from_before: u64| {
            let mut sample = CommitSample::default();
            (1..)
                .find(|&number| {
                    let released = if number <= from_before { 0 } else { 4 };
                    let measured =
                        sample.observe(&end(number, released, false), GatePhase::TryGated);
                    measured.is_some()
                })
                .unwrap()
        };
        for from_before in 1..=u64::from(MAX_EARLIER_ENDS) {
            assert_eq!(complete(from_before), from_before + complete(0));
        }
    }

    // Callers that cannot be held form no rounds.
    #[test]
    fn a_gated_sample_without_rounds_ends_all_the_same() {
        assert_eq!(
            epochs_until_complete(false, GatePhase::TryGated),
            u64::from(MAX_EARLIER_ENDS) + epochs_until_complete(false, GatePhase::Learn)
        );
    }
}
