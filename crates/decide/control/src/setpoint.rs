//! Return times of callers after a commit, and the number of callers worth waiting for.
//!
//! Let `a_k` be the time from a commit's end to the k-th caller's arrival for the next one. Callers that already wait
//! have `a = 0`. A commit that waits for `k` callers serves `k` per `T_commit + a_k`. So the best set point is the
//! `k` that maximizes `k / (T_commit + a_k)`. The paper leaves a gap here: its static set point is half the number of
//! threads.

use crate::MAX_PARTICIPANTS;

/// Divisor of a return time that gives its step towards a new sample, whatever the sample's distance. So the return
/// time settles on the median. A rare straggler that is a whole flush late moves it no more than one that is a little
/// late.
const STEP_PART: u32 = 8;
/// Smallest step towards a new sample, ns.
const MIN_STEP_NS: u32 = 5_000;
/// Time after a commit at which an absent caller is no longer waited for, ns.
const FORGOTTEN_NS: u32 = 1_000_000_000;

/// Median return times in order of return. All zeros is the initial state: no caller is known.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ReturnProfile {
    returns_ns: [u32; MAX_PARTICIPANTS],
    known: u32,
}

impl Default for ReturnProfile {
    fn default() -> Self {
        Self { returns_ns: [0; MAX_PARTICIPANTS], known: 0 }
    }
}

/// A set point with its prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SetPoint {
    /// Number of callers to wait for.
    pub callers: u32,
    /// Expected return of the last of them, ns after the end of a commit.
    pub return_ns: u64,
    /// Callers served per second if the prediction holds.
    pub predicted_per_s: f64,
}

impl ReturnProfile {
    /// Number of callers that have been seen to return.
    pub fn known(&self) -> u32 {
        self.known.min(MAX_PARTICIPANTS as u32)
    }

    /// Smoothed time until the `callers`-th caller is back, ns; `None` if fewer were ever seen.
    pub fn return_ns(&self, callers: u32) -> Option<u64> {
        let index = callers.checked_sub(1)? as usize;
        (callers <= self.known()).then(|| u64::from(self.returns_ns[index]))
    }

    /// Takes the arrivals between two ends of commits, each in ns after the first end, in order. `span_ns` is the time
    /// between the two ends. A known caller that did not arrive in it is later than that.
    pub fn observe(&mut self, arrivals_ns: &[u32], span_ns: u64) {
        let arrivals_ns = &arrivals_ns[..arrivals_ns.len().min(MAX_PARTICIPANTS)];
        let known = self.known() as usize;
        for (index, &sample) in arrivals_ns.iter().enumerate() {
            let value = &mut self.returns_ns[index];
            *value = if index < known { smoothed(*value, sample) } else { sample };
        }
        let missing = u32::try_from(span_ns.saturating_mul(2)).unwrap_or(u32::MAX);
        for value in self.returns_ns.iter_mut().take(known).skip(arrivals_ns.len()) {
            *value = value.saturating_add(missing.saturating_sub(*value) / STEP_PART);
        }
        let mut known = known.max(arrivals_ns.len());
        while known > arrivals_ns.len() && self.returns_ns[known - 1] > FORGOTTEN_NS {
            known -= 1;
        }
        self.known = known as u32;
    }

    /// Set point that serves the most callers per time, for a commit of `commit_ns`.
    pub fn best(&self, commit_ns: u64) -> Option<SetPoint> {
        let known = self.known();
        let mut best: Option<SetPoint> = None;
        let mut reached_ns = 0;
        for callers in 1..=known {
            // Each rank is smoothed by itself, so neighbours may be out of order.
            reached_ns = reached_ns.max(u64::from(self.returns_ns[callers as usize - 1]));
            let next_ns = self.return_ns(callers + 1).unwrap_or(u64::MAX);
            let leaves_behind = next_ns <= reached_ns.saturating_add(flush_ns(commit_ns));
            let flush_ns = if leaves_behind { flush_ns(commit_ns) } else { 0 };
            let cycle_ns = commit_ns.saturating_add(reached_ns).saturating_add(flush_ns).max(1);
            let predicted_per_s = f64::from(callers) * 1e9 / cycle_ns as f64;
            if best.is_none_or(|best| predicted_per_s >= best.predicted_per_s) {
                best = Some(SetPoint { callers, return_ns: reached_ns, predicted_per_s });
            }
        }
        best
    }
}

/// Cost of leaving a caller behind that is close. Its changes are in the commit that it has missed. So its own call
/// finds them committed and flushes the device once more, for itself alone, while all others wait. A commit flushes
/// twice, so that is about half of its time.
fn flush_ns(commit_ns: u64) -> u64 {
    commit_ns / 2
}

/// Time after its last arrival for which a round is worth holding for late callers, ns.
///
/// Let a round have `gathered` callers `since_end_ns` after the end of the last commit. If it leaves the `missing`
/// behind, it serves `gathered / (T_commit + t + T_flush)`. The flush is the cost of leaving them (see
/// [`ReturnProfile::best`]). If they come within `x`, it serves `(gathered + missing) / (T_commit + t + x)`. So holding
/// pays for `x < (T_commit + t) missing / gathered + T_flush (gathered + missing) / gathered`.
pub fn worth_holding_ns(commit_ns: u64, since_end_ns: u64, gathered: u32, missing: u32) -> u64 {
    if missing == 0 {
        return 0;
    }
    let (gathered, missing) = (u64::from(gathered.max(1)), u64::from(missing));
    let served = commit_ns.saturating_add(since_end_ns).saturating_mul(missing);
    let flushed = flush_ns(commit_ns).saturating_mul(gathered + missing);
    served.saturating_add(flushed) / gathered
}

fn smoothed(value: u32, sample: u32) -> u32 {
    let step = (value / STEP_PART).max(MIN_STEP_NS).min(value.abs_diff(sample));
    if sample > value { value + step } else { value - step }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn everybody_is_worth_waiting_for_when_all_return_at_once() {
        let mut profile = ReturnProfile::default();
        let arrivals: Vec<u32> = (0..16).map(|i| 10_000 * (i + 1)).collect();
        profile.observe(&arrivals, 13_000_000);
        assert_eq!(profile.best(12_800_000).unwrap().callers, 16);
    }

    #[test]
    fn stragglers_are_not_waited_for() {
        let mut profile = ReturnProfile::default();
        let mut arrivals: Vec<u32> = (0..12).map(|i| 10_000 * (i + 1)).collect();
        arrivals.extend([40_000_000, 70_000_000]);
        profile.observe(&arrivals, 80_000_000);
        let best = profile.best(12_800_000).unwrap();
        assert_eq!((best.callers, best.return_ns), (12, 120_000));
    }

    #[test]
    fn a_fast_commit_waits_for_nobody() {
        let mut profile = ReturnProfile::default();
        let arrivals: Vec<u32> = (0..16).map(|i| 600_000 * (i + 1)).collect();
        profile.observe(&arrivals, 10_000_000);
        assert!(profile.best(100_000).unwrap().predicted_per_s < 1.0 / 500e-6);
    }

    #[test]
    fn a_group_is_not_split_for_the_last_of_it() {
        let mut profile = ReturnProfile::default();
        let mut arrivals: Vec<u32> = (0..31).map(|i| 10_000 * (i + 1)).collect();
        arrivals.push(1_000_000);
        profile.observe(&arrivals, 14_000_000);
        assert_eq!(profile.best(12_800_000).unwrap().callers, 32);
    }

    #[test]
    fn those_who_left_stop_counting() {
        let mut profile = ReturnProfile::default();
        profile.observe(&[10_000; 16], 13_000_000);
        for _ in 0..40 {
            profile.observe(&[10_000; 8], 13_000_000);
        }
        assert_eq!(profile.best(12_800_000).unwrap().callers, 8);
    }

    #[test]
    fn a_round_is_held_for_its_late_ones_within_reason() {
        let commit_ns = 12_800_000;
        assert_eq!(worth_holding_ns(commit_ns, 500_000, 16, 0), 0);
        let for_three_of_64 = worth_holding_ns(commit_ns, 500_000, 61, 3);
        assert!((6_400_000..8_000_000).contains(&for_three_of_64), "{for_three_of_64}");
        let for_half = worth_holding_ns(commit_ns, 500_000, 2, 2);
        assert!(for_half > commit_ns, "{for_half}");
    }

    proptest! {
        #[test]
        fn the_best_set_point_beats_every_other(
            mut arrivals in proptest::collection::vec(0u32..50_000_000, 1..100),
            commit_ns in 1u64..20_000_000,
        ) {
            arrivals.sort_unstable();
            let mut profile = ReturnProfile::default();
            profile.observe(&arrivals, 60_000_000);
            let best = profile.best(commit_ns).unwrap();
            for (index, &a) in arrivals.iter().enumerate() {
                let worst_ns = commit_ns + u64::from(a) + flush_ns(commit_ns);
                let rate = (index + 1) as f64 * 1e9 / worst_ns as f64;
                prop_assert!(rate <= best.predicted_per_s * (1.0 + 1e-9));
            }
            prop_assert_eq!(profile.return_ns(best.callers), Some(best.return_ns));
        }

        #[test]
        fn any_feed_keeps_the_profile_sound(
            feeds in proptest::collection::vec(
                (proptest::collection::vec(any::<u32>(), 0..600), any::<u64>()), 1..10),
            damaged in any::<u32>(),
        ) {
            let mut profile = ReturnProfile { known: damaged, ..Default::default() };
            for (arrivals, span) in feeds {
                profile.observe(&arrivals, span);
                if let Some(best) = profile.best(span) {
                    prop_assert!(best.callers >= 1 && best.callers <= profile.known());
                }
            }
        }
    }
}
