//! Real-time priority for threads that let callers of a round go, if the system grants it.
//!
//! A commit takes callers in for about 0.15 ms, and each later one costs another flush. Each answer wakes a caller.
//! With ordinary priority, about every second caller takes the processor from the answering thread. The journal's
//! thread and others do so, too. The lowest real-time priority prevents this (`SCHED_FIFO`). It takes root,
//! `CAP_SYS_NICE` or a limit of real-time priorities above 0 (`RLIMIT_RTPRIO`).

use std::mem;

/// Real-time priority of a thread, until this is dropped.
#[derive(Debug)]
pub(crate) struct RealTimePriority(Option<libc::sched_attr>);

impl RealTimePriority {
    /// Raises the calling thread, which has to drop this. If that is refused, nothing changes. A thread is left alone
    /// if its user gave it real-time priority or the idle policy (`SCHED_IDLE`).
    pub(crate) fn begin() -> Self {
        let was = attributes().filter(|was| {
            let policy = was.sched_policy as i32;
            matches!(policy, libc::SCHED_OTHER | libc::SCHED_BATCH)
        });
        let lowest = libc::sched_param { sched_priority: 1 };
        // SAFETY: the kernel reads the parameter.
        let raise = || unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const lowest) };
        Self(was.filter(|_| raise() == 0))
    }

    /// Raises the calling thread until its end.
    pub(crate) fn begin_for_good() {
        mem::forget(Self::begin());
    }
}

impl Drop for RealTimePriority {
    fn drop(&mut self) {
        if let Some(was) = &self.0 {
            // SAFETY: the kernel reads the attributes.
            unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const *was, 0) };
        }
    }
}

fn attributes() -> Option<libc::sched_attr> {
    // SAFETY: all zeros is a valid value.
    let mut attributes: libc::sched_attr = unsafe { mem::zeroed() };
    let size = size_of_val(&attributes);
    // SAFETY: the kernel writes at most this many bytes.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    (result == 0).then_some(attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Policy, nice value and real-time priority of the calling thread.
    fn priority() -> (i32, i32, u32) {
        let now = attributes().unwrap();
        (now.sched_policy as i32, now.sched_nice, now.sched_priority)
    }

    /// Whether this process may have real-time priority.
    fn may() -> bool {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Rtprio);
        let sets = rustix::thread::capabilities(None).unwrap();
        sets.effective.contains(rustix::thread::CapabilitySet::SYS_NICE) || limit.current != Some(0)
    }

    /// Runs a check in a thread of its own, as priorities are of threads.
    fn alone(check: impl FnOnce() + Send + 'static) {
        std::thread::spawn(check).join().unwrap();
    }

    #[test]
    fn a_thread_is_raised_and_then_as_before() {
        alone(|| {
            let batch = libc::sched_param { sched_priority: 0 };
            // SAFETY: the kernel reads the parameter, and a number.
            unsafe {
                libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const batch);
                libc::setpriority(libc::PRIO_PROCESS, 0, 5);
            }
            let before = priority();
            assert_eq!(before, (libc::SCHED_BATCH, 5, 0));
            let raised = RealTimePriority::begin();
            if may() {
                assert_eq!(priority(), (libc::SCHED_FIFO, 0, 1));
            }
            drop(raised);
            assert_eq!(priority(), before);
        });
    }

    #[test]
    fn a_thread_that_runs_when_no_other_does_stays_as_it_is() {
        alone(|| {
            let idle = libc::sched_param { sched_priority: 0 };
            // SAFETY: the kernel reads the parameter.
            unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const idle) };
            RealTimePriority::begin_for_good();
            assert_eq!(priority().0, libc::SCHED_IDLE);
        });
    }
}
