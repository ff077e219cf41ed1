//! The event generator (`eventgen rate=R`): tokens that limits take.
//!
//! Filebench's comes in batches, ten tokens every ten periods, and keeps those of 5 s at most. Here they
//! are reckoned from the clock, so that no thread has to make them.

use std::sync::{Mutex, PoisonError};

use luc_workload::workers::{WorkloadClient, now_ns};

/// Tokens that come together.
const BATCH_TOKENS: u64 = 10;
/// Time for which unused tokens are kept, s.
const KEPT_S: u64 = 5;

/// A source of tokens that clients share.
#[derive(Debug)]
pub(super) struct EventGenerator {
    /// Tokens a second, above 0.
    per_second: u64,
    state: Mutex<RateState>,
}

#[derive(Debug, Clone, Copy)]
struct RateState {
    /// Time of the first request for a token, ns.
    began_ns: u64,
    /// Tokens that are gone since then: taken, or lost because they were not taken in time.
    gone: u64,
}

impl EventGenerator {
    /// Makes a source of `per_second` tokens, above 0.
    pub(super) fn new(per_second: u64) -> Self {
        Self { per_second, state: Mutex::new(RateState { began_ns: 0, gone: 0 }) }
    }

    /// Takes `count` tokens as they come; whether the run lasted long enough.
    pub(super) fn take(&self, client: &WorkloadClient<'_>, count: u64) -> bool {
        let mut missing = count;
        while missing > 0 {
            let now = now_ns();
            let (taken, next_ns) = self.take_available(now, missing);
            missing -= taken;
            if missing > 0 {
                if !client.running(now) {
                    return false;
                }
                client.think(next_ns.saturating_sub(now).max(1));
            }
        }
        true
    }

    /// Returns up to `wanted` tokens at `now_ns`, and when the next come, ns.
    fn take_available(&self, now_ns: u64, wanted: u64) -> (u64, u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.began_ns == 0 {
            state.began_ns = now_ns;
        }
        let passed = u128::from(now_ns.saturating_sub(state.began_ns));
        let period = u128::from(BATCH_TOKENS) * 1_000_000_000;
        let batches = (passed * u128::from(self.per_second) / period) as u64;
        let made = batches.saturating_mul(BATCH_TOKENS);
        let kept = self.per_second.saturating_mul(KEPT_S).max(BATCH_TOKENS);
        state.gone = state.gone.max(made.saturating_sub(kept));
        let taken = wanted.min(made - state.gone);
        state.gone += taken;
        let next = u128::from(batches + 1) * period / u128::from(self.per_second) + 1;
        (taken, state.began_ns.saturating_add(next as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn tokens_come_ten_at_a_time_at_their_rate() {
        let rate = EventGenerator::new(100);
        assert_eq!(rate.take_available(SECOND, 5), (0, SECOND + SECOND / 10 + 1));
        assert_eq!(rate.take_available(SECOND + SECOND / 10 - 1, 5).0, 0);
        assert_eq!(rate.take_available(SECOND + SECOND / 10, 7).0, 7);
        assert_eq!(rate.take_available(SECOND + SECOND / 10, 7).0, 3);
        assert_eq!(rate.take_available(2 * SECOND, 1000).0, 90);
    }

    #[test]
    fn unused_tokens_are_kept_for_five_seconds() {
        let rate = EventGenerator::new(10);
        rate.take_available(1, 1);
        assert_eq!(rate.take_available(100 * SECOND + 1, 1000).0, 50);
        assert_eq!(rate.take_available(100 * SECOND + 1, 1000).0, 0);
        assert_eq!(rate.take_available(101 * SECOND + 1, 1000).0, 10);
    }
}
