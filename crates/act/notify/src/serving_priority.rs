//! Priority of the threads that serve a program, by its rate of calls.
//!
//! A program that waits for its disk makes few calls. One that makes calls without end is served with the lowest
//! priority, so that it takes no processor from others: serving it counts as its supervisor's time, whatever its own
//! share is.

use rustix::thread::CapabilitySet;

use crate::realtime_priority::RealTimePriority;

/// Maximum number of calls in a window that are served with the thread's own priority.
const MAX_CALLS: u32 = 3000;
const WINDOW_NS: u64 = 100_000_000;

/// Divisor of that maximum: a program that makes fewer calls in a window gets the thread's own priority back.
const CALM_DIVISOR: u32 = 8;

/// Nice value of the lowest priority of ordinary threads.
const LOWEST_NICE: i32 = 19;

/// Priority of the calling thread.
#[derive(Debug)]
pub(crate) struct ServingPriority {
    /// Whether the thread has real-time priority where it may.
    is_raised: bool,
    raised: Option<RealTimePriority>,
    /// Nice value of the thread; `None` if it could not be restored.
    own: Option<i32>,
    is_lowered: bool,
    began_ns: u64,
    served: u32,
}

impl ServingPriority {
    pub(crate) fn new(is_raised: bool, now_ns: u64) -> Self {
        let may = rustix::thread::capabilities(None)
            .is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_NICE));
        // SAFETY: plain numbers: the calling thread.
        let own = may.then(|| unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) });
        Self {
            is_raised,
            raised: is_raised.then(RealTimePriority::begin),
            own,
            is_lowered: false,
            began_ns: now_ns,
            served: 0,
        }
    }

    /// Notes that a call was served at `now_ns`.
    pub(crate) fn has_served(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.began_ns) >= WINDOW_NS {
            // Not before it has slowed down by itself: served last, it comes less often as well.
            let is_calm = self.served < MAX_CALLS / CALM_DIVISOR;
            (self.began_ns, self.served) = (now_ns, 0);
            if self.is_lowered && is_calm {
                self.is_lowered = false;
                self.set(self.own);
                self.raised = self.is_raised.then(RealTimePriority::begin);
            }
        }
        self.served += 1;
        if self.served > MAX_CALLS && !self.is_lowered {
            self.is_lowered = true;
            self.raised = None;
            self.set(self.own.map(|_| LOWEST_NICE));
        }
    }

    fn set(&self, nice: Option<i32>) {
        if let Some(nice) = nice {
            // SAFETY: plain numbers: the calling thread.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nice() -> i32 {
        // SAFETY: plain numbers: the calling thread.
        unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
    }

    #[test]
    fn who_calls_without_end_is_served_last() {
        let check = || {
            let own = nice();
            let mut pace = ServingPriority::new(true, 0);
            for _ in 0..MAX_CALLS {
                pace.has_served(1);
            }
            assert!(pace.raised.is_some() && !pace.is_lowered);
            pace.has_served(2);
            assert!(pace.raised.is_none() && pace.is_lowered);
            if pace.own.is_some() {
                assert_eq!(nice(), LOWEST_NICE);
            }
            pace.has_served(WINDOW_NS);
            assert!(pace.is_lowered, "it has gone on until now");
            pace.has_served(2 * WINDOW_NS);
            assert!(pace.raised.is_some() && !pace.is_lowered);
            drop(pace);
            assert_eq!(nice(), own);
        };
        // Priorities are of threads.
        std::thread::spawn(check).join().unwrap();
    }
}
