//! The process that a report names as victim or culprit.

use luc_events::{Cgroup, Tgid};
use serde::Serialize;

/// A process in a cgroup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Actor {
    pub process: Tgid,
    /// Name; empty if unknown.
    pub comm: String,
    /// The cgroup; 0 if unknown.
    pub cgroup: Cgroup,
}
