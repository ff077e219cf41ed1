//! Shows people the activity on the disks: that of the daemon's tasks, or of all cgroups if no daemon runs.
//!
//! [`Watch`] takes sums at intervals, from the daemon's status or from an observer of its own. Two of them give a
//! [`Seen`]. Watching freezes nothing.

mod account;
mod plain;
mod seen;
mod sums;
#[cfg(test)]
mod tests;

use crate::ThrottleError;
use crate::clock::now_ns;
use crate::daemon::{Status, status_path};

use account::Account;
use plain::Plain;
pub use seen::{DiskSeen, Seen, State, TaskSeen};
use sums::Sums;

/// Interval between checks for a daemon and for new cgroups, ns.
const RESCAN_INTERVAL_NS: u64 = 1_000_000_000;

#[derive(Debug)]
enum Source {
    Daemon,
    Plain(Box<Plain>),
}

#[derive(Debug)]
pub struct Watch {
    source: Source,
    rescan_ns: u64,
    account: Account,
}

impl Watch {
    /// Watches the daemon, or all cgroups if none runs.
    pub fn open() -> Result<Self, ThrottleError> {
        let mut watch = Self {
            source: if status()?.is_some() {
                Source::Daemon
            } else {
                Source::Plain(Box::new(Plain::open()?))
            },
            rescan_ns: 0,
            account: Account::default(),
        };
        watch.step()?;
        // The first result covers the time from here on.
        watch.account.seen();
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
                Some(status) => Sums::of(&status),
                None => return self.turn_to(Source::Plain(Box::new(Plain::open()?))),
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
        self.account.step(sums);
        Ok(())
    }

    fn turn_to(&mut self, source: Source) -> Result<(), ThrottleError> {
        self.source = source;
        self.rescan_ns = 0;
        self.account = Account::default();
        Ok(())
    }

    /// Activity since the last call.
    pub fn seen(&mut self) -> Seen {
        self.account.seen()
    }
}

fn status() -> Result<Option<Status>, ThrottleError> {
    if !rustix::process::geteuid().is_root() {
        return Err(ThrottleError::Privileges);
    }
    Status::read().map_err(ThrottleError::cgroup("read", &status_path()))
}
