//! Counters of an engine's actions.

use std::collections::BTreeMap;

use luc_control::throttle::policy_input::{FreezeAction, FreezeReason};
use serde::{Deserialize, Serialize};

/// Counters of an engine's actions since its start.
#[derive(Clone, Debug, Default)]
pub struct EngineCounters {
    /// Number of freezes and thaws, by action and reason.
    pub orders: BTreeMap<(FreezeAction, FreezeReason), u64>,
    /// Number of cgroups that the guardian thawed.
    pub thawed_by_guardian: u64,
    /// Number of cgroups that were frozen as long as allowed.
    pub thawed_at_limit: u64,
    /// Number of guardians that had to be replaced.
    pub guardians_lost: u64,
    pub looks: u64,
    pub looking_ns: u64,
}

/// Number of freezes or thaws for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderCount {
    pub action: String,
    pub reason: String,
    pub count: u64,
}

impl EngineCounters {
    /// Numbers of freezes and thaws by reason, for people and programs.
    #[must_use]
    pub fn order_counts(&self) -> Vec<OrderCount> {
        let count =
            |(&(action, reason), &count): (&(FreezeAction, FreezeReason), &u64)| OrderCount {
                action: match action {
                    FreezeAction::Thaw => "thaw",
                    FreezeAction::Freeze => "freeze",
                }
                .to_owned(),
                reason: reason.name().to_owned(),
                count,
            };
        self.orders.iter().map(count).collect()
    }
}
