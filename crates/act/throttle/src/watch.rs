//! What goes on at the disks, for people who watch: the daemon's doings, or those of all cgroups where none runs.
//!
//! [`Watch`] takes sums now and then, of the daemon's status or of an observer of its own, and makes a
//! [`Seen`] of two of them. Nobody is frozen by watching.

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

/// How often it is looked whether a daemon runs, and which cgroups there are, ns.
const RESCAN_EVERY_NS: u64 = 1_000_000_000;

/// Where the sums are from.
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
    ///
    /// # Errors
    ///
    /// [`ThrottleError::Privileges`], [`ThrottleError::NoCgroup2`], [`ThrottleError::Probe`].
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
        // The first look is about the time from here on.
        watch.account.seen();
        Ok(watch)
    }

    /// Looks at the sums; to be called every 100 ms or so.
    ///
    /// # Errors
    ///
    /// As [`Watch::open`].
    pub fn step(&mut self) -> Result<(), ThrottleError> {
        let now = now_ns();
        let is_due = now >= self.rescan_ns;
        if is_due {
            self.rescan_ns = now + RESCAN_EVERY_NS;
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

    /// What went on since the last call.
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
