//! State of the throttle's daemon and the tasks that it has frozen, in few words.

use std::cmp::Reverse;
use std::fmt;

use luc_throttle::daemon::{TaskStatus, ThrottleStatus};
use luc_units::number_formats::FormattedTime;
use luc_units::plain;
use serde::Serialize;

/// The daemon of `luc throttle` and the tasks that it has frozen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThrottleState {
    pub daemon: u32,
    /// Frozen tasks, longest first.
    pub frozen: Vec<FrozenTask>,
    /// Number of freezes since the daemon began.
    pub freezes: u64,
}

/// A task that is frozen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FrozenTask {
    /// Its cgroup, below the root.
    pub cgroup: String,
    pub why: String,
    /// Time that it has been frozen, in nanoseconds.
    pub frozen_ns: u64,
}

impl ThrottleState {
    /// Reads the daemon's status file; `None` if no daemon runs or the file cannot be read.
    pub(crate) fn read() -> Option<Self> {
        Some(Self::of(&ThrottleStatus::read().ok()??))
    }

    pub(super) fn of(status: &ThrottleStatus) -> Self {
        let frozen = |task: &TaskStatus| {
            let since_ns = task.frozen_since_ns?;
            Some(FrozenTask {
                cgroup: plain(&task.cgroup.to_string_lossy()),
                why: plain(&task.why),
                frozen_ns: status.at_ns.saturating_sub(since_ns),
            })
        };
        let mut frozen: Vec<FrozenTask> = status.tasks.iter().filter_map(frozen).collect();
        frozen.sort_by_key(|task| Reverse(task.frozen_ns));
        Self {
            daemon: status.process,
            frozen,
            freezes: status.tasks.iter().map(|task| task.freezes).sum(),
        }
    }
}

/// Names the task that has been frozen longest, and counts the others.
impl fmt::Display for ThrottleState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((task, more)) = self.frozen.split_first() else {
            return write!(f, "nobody is frozen");
        };
        let name = task.cgroup.rsplit('/').next().unwrap_or_default();
        let time = FormattedTime::from(task.frozen_ns);
        write!(f, "{name} is frozen for {time} ({})", task.why)?;
        if !more.is_empty() {
            write!(f, ", and {} more", more.len())?;
        }
        Ok(())
    }
}
