//! A thread's last wait for a device.
//!
//! A request is seen when it has a place in its disk's queue. Some schedulers (BFQ) keep places back from tasks that
//! have had many. The thread then waits for a place for longer than the request takes; it is not thinking.

use luc_events::tables::OffCpuWait;
use luc_events::{WaitCause, event_kinds::WaitState};

/// Maximum time on a processor inside a wait for a device: a thread that is woken for a place may find it taken.
const MAX_PAUSE_NS: u64 = 200_000;

/// Consecutive waits for a device, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeviceWait {
    from_ns: u64,
    to_ns: u64,
}

impl DeviceWait {
    /// Takes in a wait of the thread.
    pub(crate) fn add(&mut self, row: &OffCpuWait) {
        if row.cause != WaitCause::Device || row.state != WaitState::Uninterruptible {
            return;
        }
        if row.off_ns > self.to_ns.saturating_add(MAX_PAUSE_NS) {
            self.from_ns = row.off_ns;
        }
        self.to_ns = row.woken_ns;
    }

    /// Returns the part of the wait that lies between two times.
    pub(crate) fn within(&self, from_ns: u64, to_ns: u64) -> u64 {
        (self.to_ns.min(to_ns)).saturating_sub(self.from_ns.max(from_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(off_ns: u64, woken_ns: u64) -> OffCpuWait {
        OffCpuWait {
            off_ns,
            woken_ns,
            on_ns: woken_ns,
            cause: WaitCause::Device,
            state: WaitState::Uninterruptible,
            ..OffCpuWait::default()
        }
    }

    #[test]
    fn waits_right_after_each_other_are_one() {
        let mut found = DeviceWait::default();
        found.add(&wait(10_000_000, 15_000_000));
        found.add(&wait(15_020_000, 20_000_000));
        assert_eq!(found.within(12_000_000, 30_000_000), 8_000_000);
        assert_eq!(found.within(0, 11_000_000), 1_000_000);
        assert_eq!(found.within(21_000_000, 22_000_000), 0);
        found.add(&wait(23_000_000, 24_000_000));
        assert_eq!(found.within(0, 30_000_000), 1_000_000);
    }

    #[test]
    fn other_waits_do_not_count() {
        let mut found = DeviceWait::default();
        let sleep = OffCpuWait {
            cause: WaitCause::Sleep,
            state: WaitState::Interruptible,
            ..wait(10_000_000, 15_000_000)
        };
        found.add(&sleep);
        assert_eq!(found.within(0, 30_000_000), 0);
    }
}
