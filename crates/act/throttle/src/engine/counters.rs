//! What an engine has done, counted.

use std::collections::BTreeMap;

use luc_control::throttle::sample::{Action, Reason};
use serde::{Deserialize, Serialize};

/// What an engine has done since it was started.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Freezes and thaws by what was done and why.
    pub orders: BTreeMap<(Action, Reason), u64>,
    /// Cgroups that the guardian thawed.
    pub thawed_by_guardian: u64,
    /// Cgroups that were frozen for as long as is allowed.
    pub thawed_at_limit: u64,
    /// Guardians that had to be replaced.
    pub guardians_lost: u64,
    /// Looks at the disks.
    pub looks: u64,
    /// Time spent in them, ns.
    pub looking_ns: u64,
}

/// How often something was done, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderCount {
    pub action: String,
    pub reason: String,
    pub count: u64,
}

impl Counters {
    /// Freezes and thaws by reason, for people and programs.
    #[must_use]
    pub fn order_counts(&self) -> Vec<OrderCount> {
        let count = |(&(action, reason), &count): (&(Action, Reason), &u64)| OrderCount {
            action: match action {
                Action::Thaw => "thaw",
                Action::Freeze => "freeze",
            }
            .to_owned(),
            reason: reason.name().to_owned(),
            count,
        };
        self.orders.iter().map(count).collect()
    }
}
