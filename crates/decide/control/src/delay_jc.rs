//! delayJC: holds a commit until requests stop coming (thesis section 4.6).
//!
//! After the first fsync request of a transaction the commit is held for a fixed delay. Every further request restarts
//! the timer. A bound on restarts keeps the first caller from starving.

/// Settings of the static policy.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayJc {
    /// Time for which the commit is held after the last request, ns.
    pub delay_ns: u64,
    /// Number of further requests that may restart the timer.
    pub max_restarts: u32,
}

impl Default for DelayJc {
    /// 1 ms, the thesis' value for Metarates, and at most 64 restarts.
    fn default() -> Self {
        Self { delay_ns: 1_000_000, max_restarts: 64 }
    }
}

impl DelayJc {
    /// Time at which a round closes whose timer was started or last restarted at `last_restart_ns`.
    pub fn deadline_ns(&self, last_restart_ns: u64) -> u64 {
        last_restart_ns.saturating_add(self.delay_ns)
    }

    /// Whether the request that follows `restarts` earlier restarts may restart the timer again.
    pub fn may_restart(&self, restarts: u32) -> bool {
        restarts < self.max_restarts
    }

    /// Longest time for which a caller can be held, ns.
    pub fn longest_hold_ns(&self) -> u64 {
        self.delay_ns.saturating_mul(u64::from(self.max_restarts) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replays requests through the timer. Returns the time at which the round closed, and the number of requests held.
    fn close(policy: DelayJc, requests_ns: &[u64]) -> (u64, usize) {
        let mut last = requests_ns[0];
        let mut restarts = 0;
        for (index, &at) in requests_ns.iter().enumerate().skip(1) {
            if at > policy.deadline_ns(last) {
                return (policy.deadline_ns(last), index);
            }
            if policy.may_restart(restarts) {
                restarts += 1;
                last = at;
            }
        }
        (policy.deadline_ns(last), requests_ns.len())
    }

    #[test]
    fn requests_within_the_delay_share_a_round() {
        let policy = DelayJc { delay_ns: 1_000, max_restarts: 64 };
        assert_eq!(close(policy, &[0, 900, 1_700, 5_000]), (2_700, 3));
    }

    #[test]
    fn bounded_restarts_bound_the_hold() {
        let policy = DelayJc { delay_ns: 1_000, max_restarts: 3 };
        let steady: Vec<u64> = (0..100).map(|i| i * 999).collect();
        let (closed_ns, held) = close(policy, &steady);
        assert!(closed_ns <= policy.longest_hold_ns());
        assert_eq!(held, 5);
    }
}
