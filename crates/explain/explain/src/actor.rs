//! Who a report names, as victim or as culprit.

use luc_events::{Cgroup, Tgid};
use serde::Serialize;

/// A process in a cgroup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Actor {
    pub process: Tgid,
    /// Its name; empty if unknown.
    pub comm: String,
    /// Its cgroup; 0 if unknown.
    pub cgroup: Cgroup,
}
