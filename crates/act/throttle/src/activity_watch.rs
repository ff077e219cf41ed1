//! Shows people the activity on the disks: that of the daemon's tasks, or of all cgroups if no daemon runs.
//!
//! [`ActivityWatch`] takes sums at intervals, from the daemon's status or from an observer of its own. Two of them give
//! a [`SystemActivity`]. Watching freezes nothing.

mod activity_sums;
mod cgroup_observer;
mod displayed_activity;
mod displayed_activity_state;
#[cfg(test)]
mod tests;

use crate::ThrottleError;
use crate::daemon::{ThrottleStatus, status_path};
use crate::kernel_clocks::now_ns;

use activity_sums::ActivitySums;
use cgroup_observer::CgroupObserver;
pub use displayed_activity::{ActivityState, DiskActivity, DisplayedTask, SystemActivity};
use displayed_activity_state::DisplayedActivityState;

/// Interval between checks for a daemon and for new cgroups, ns.
const RESCAN_INTERVAL_NS: u64 = 1_000_000_000;

#[derive(Debug)]
enum Source {
    Daemon,
    Plain(Box<CgroupObserver>),
}

/// Takes sums of disk activity at intervals and makes them activity for display.
#[derive(Debug)]
pub struct ActivityWatch {
    source: Source,
    rescan_ns: u64,
    displayed: DisplayedActivityState,
}

impl ActivityWatch {
    /// Watches the daemon, or all cgroups if none runs.
    pub fn open() -> Result<Self, ThrottleError> {
        let mut watch = Self {
            source: if status()?.is_some() {
                Source::Daemon
            } else {
                Source::Plain(Box::new(CgroupObserver::open()?))
            },
            rescan_ns: 0,
            displayed: DisplayedActivityState::default(),
        };
        watch.step()?;
        // The first result covers the time from here on.
        watch.displayed.seen();
        Ok(watch)
    }

    /// Takes sums. Must be called about every 100 ms.
    pub fn step(&mut self) -> Result<(), ThrottleError> {
        let now = now_ns();
        let is_due = now >= self.rescan_ns;
        if is_due {
            self.rescan_ns = now + RESCAN_INTERVAL_NS;
        }
        let sums = match &mut self.source {
            Source::Daemon => match status()? {
                Some(status) => ActivitySums::of(&status),
                None => return self.turn_to(Source::Plain(Box::new(CgroupObserver::open()?))),
            },
            Source::Plain(_) if is_due && status()?.is_some() => {
                return self.turn_to(Source::Daemon);
            }
            Source::Plain(plain) => {
                if is_due {
                    plain.rescan();
                }
                plain.sums()
            }
        };
        self.displayed.step(sums);
        Ok(())
    }

    fn turn_to(&mut self, source: Source) -> Result<(), ThrottleError> {
        self.source = source;
        self.rescan_ns = 0;
        self.displayed = DisplayedActivityState::default();
        Ok(())
    }

    /// Activity since the last call.
    pub fn seen(&mut self) -> SystemActivity {
        self.displayed.seen()
    }
}

fn status() -> Result<Option<ThrottleStatus>, ThrottleError> {
    if !rustix::process::geteuid().is_root() {
        return Err(ThrottleError::Privileges);
    }
    ThrottleStatus::read().map_err(ThrottleError::cgroup("read", &status_path()))
}
