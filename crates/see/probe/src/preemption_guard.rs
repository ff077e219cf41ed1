//! Protection of the recorder from preemption while it reads the programs' maps.
//!
//! A thread changes or reads a map by a system call. Meanwhile the kernel runs no program of a perf event on that
//! processor. If the watched threads preempted the recorder there, it would miss all of their calls until it
//! continues.

use std::mem::MaybeUninit;
use std::sync::OnceLock;

use crate::tracepoints::calls_are_perf_events;

/// The calling thread's scheduling, which is restored on drop.
#[derive(Debug)]
pub(crate) struct PreemptionGuard(Option<(i32, libc::sched_param)>);

impl PreemptionGuard {
    /// Gives the calling thread the lowest real-time priority, where programs are perf events and it may.
    pub(crate) fn begin() -> Self {
        static NEEDED: OnceLock<bool> = OnceLock::new();
        if !*NEEDED.get_or_init(calls_are_perf_events) {
            return Self(None);
        }
        let mut before = MaybeUninit::<libc::sched_param>::zeroed();
        let first = libc::sched_param { sched_priority: 1 };
        // SAFETY: 0 is the calling thread; the kernel writes the parameters, which are a number, or leaves the zero.
        let (policy, before) = unsafe {
            let policy = libc::sched_getscheduler(0);
            libc::sched_getparam(0, before.as_mut_ptr());
            (policy, before.assume_init())
        };
        let is_ordinary = policy == libc::SCHED_OTHER || policy == libc::SCHED_BATCH;
        // SAFETY: the parameters are there for the length of the call.
        let is_done = is_ordinary
            && unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const first) } == 0;
        Self(is_done.then_some((policy, before)))
    }
}

impl Drop for PreemptionGuard {
    fn drop(&mut self) {
        if let Some((policy, parameters)) = &self.0 {
            // SAFETY: as above. Back to less than it has, everybody may go.
            unsafe { libc::sched_setscheduler(0, *policy, &raw const *parameters) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_is_as_before() {
        // SAFETY: no arguments but the calling thread.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let before = policy();
        drop(PreemptionGuard::begin());
        assert_eq!(policy(), before);
    }
}
