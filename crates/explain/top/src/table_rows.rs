//! Rows of the view's tables.

use luc_events::{Cgroup, Dev, Pid, Tgid};
use luc_explain::Actor;
use serde::Serialize;

use super::part_groups::PartGroupTimes;

/// One file system in one interval.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FileSystemRow {
    pub dev: Dev,
    /// Mount point; empty if unknown.
    pub mount_point: String,
    /// Type, such as `ext4`; empty if unknown.
    pub kind: String,
    /// Full and fast commits per second; `None` where they cannot be seen because there is no jbd2 journal.
    pub commits_per_s: Option<f64>,
    /// Calls of fsync and the like per second.
    pub syncs_per_s: f64,
    /// fsyncs that waited for their own commit, per commit that served any; `None` without one.
    pub syncs_per_commit: Option<f64>,
    /// Mean duration of a commit, in nanoseconds; `None` without one.
    pub commit_ns: Option<u64>,
    /// Mean duration of an fsync, in nanoseconds; `None` without one.
    pub sync_ns: Option<u64>,
    pub sync_p99_ns: Option<u64>,
    /// Share of the fsyncs' time that an earlier commit took.
    pub earlier: Option<f64>,
    /// Share of the time in which its disk was busy; `None` if unknown.
    pub busy: Option<f64>,
    /// Parts of the fsyncs' time.
    pub sync_time: PartGroupTimes,
    /// Parts of the other calls' time.
    pub call_time: PartGroupTimes,
    /// Longest waits in commits: victim, culprit, nanoseconds per second.
    pub blame: Vec<(CulpritProcess, CulpritProcess, f64)>,
    /// Findings of the last seconds.
    pub found: Option<ShownFinding>,
}

impl FileSystemRow {
    /// Returns whether it is mounted or something happened on it.
    pub(super) fn is_worth_a_line(&self) -> bool {
        let quiet = self.syncs_per_s == 0.0 && self.commits_per_s.unwrap_or(0.0) == 0.0;
        !(self.mount_point.is_empty() && quiet)
    }
}

/// A process or a thread in one interval.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ActorRow {
    pub process: Tgid,
    /// The thread, if the row is about one.
    pub thread: Option<Pid>,
    pub cgroup: Cgroup,
    /// Name; empty if unknown.
    pub comm: String,
    /// Calls of fsync and the like per second; `None` for threads.
    pub syncs_per_s: Option<f64>,
    /// Time lost in file-system calls, all threads together, in nanoseconds per second.
    pub lost_ns_per_s: f64,
    /// Parts of that time.
    pub time: PartGroupTimes,
    /// Time that others waited for its work in commits, in nanoseconds per second; `None` for threads.
    pub caused_ns_per_s: Option<f64>,
    /// Actors whose work it waited for, in nanoseconds per second, longest first.
    pub waits_for: Vec<(CulpritProcess, f64)>,
    /// Actors that waited for its work, in the same way.
    pub makes_wait: Vec<(CulpritProcess, f64)>,
    /// Findings of the last seconds about it.
    pub found: Option<ShownFinding>,
}

/// Process that a wait is charged to, or that waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CulpritProcess {
    pub process: Tgid,
    /// Name; empty if unknown.
    pub comm: String,
}

impl CulpritProcess {
    /// Takes a process' name without the control characters that would steer a terminal.
    pub(super) fn of(actor: &Actor) -> Self {
        Self { process: actor.process, comm: luc_units::plain(&actor.comm) }
    }
}

impl std::fmt::Display for CulpritProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.comm.as_str() {
            "" => write!(f, "process {}", self.process),
            comm => write!(f, "{comm} ({})", self.process),
        }
    }
}

/// A finding with its remedy.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ShownFinding {
    /// The finding, in one sentence.
    pub sentence: String,
    /// Its share of the time in calls.
    pub share: f64,
    /// The remedy, in one sentence; `None` if none is known.
    pub remedy: Option<String>,
    /// Predicted gain, as a fraction.
    pub predicted_gain: Option<f64>,
    /// Explanation of the gain, or of its absence.
    pub basis: &'static str,
}
