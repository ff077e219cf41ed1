//! Turns decisions into orders: which tasks run, which are frozen, and why.

use super::super::policy_input::{FreezeAction, FreezeOrder, FreezeReason, TaskId};
use super::{AutoThrottle, PolicyTask};

impl AutoThrottle {
    /// Decides whether a task may run, and why.
    fn judge(&self, task: &PolicyTask, now_ns: u64) -> (bool, FreezeReason) {
        if !task.is_ours() {
            (true, FreezeReason::NothingGained)
        } else if now_ns < task.exempt_until_ns {
            (true, FreezeReason::Starvation)
        } else if now_ns < task.grace_until_ns {
            (true, FreezeReason::Call)
        } else if self.holds_until_ns(now_ns) > now_ns && task.wants {
            (false, FreezeReason::Protect)
        } else if let Some(alone) = self.trials.alone() {
            (task.id() == alone || !task.wants, FreezeReason::Trial)
        } else if let Some(reason) = self.token.admission_of(task.id()) {
            (true, self.explain_admission(task, reason))
        } else {
            (!task.wants, FreezeReason::Turn)
        }
    }

    /// Explains why a task of the running set runs.
    fn explain_admission(&self, task: &PolicyTask, reason: FreezeReason) -> FreezeReason {
        if task.is_frozen && task.reason == FreezeReason::Protect {
            FreezeReason::Protect
        } else if self.trials.is_on() || task.reason == FreezeReason::Trial {
            FreezeReason::Trial
        } else if self.max_running.is_none() && !self.contention.is_contended() {
            FreezeReason::NotContended
        } else if self.max_running.is_none() {
            FreezeReason::NothingGained
        } else {
            reason
        }
    }

    /// Gives the orders that the decisions need, thaws first.
    pub(super) fn give_orders(&mut self, now_ns: u64) -> Vec<FreezeOrder> {
        let mut orders = Vec::new();
        let judgements: Vec<(TaskId, (bool, FreezeReason))> =
            self.table.iter().map(|task| (task.id(), self.judge(task, now_ns))).collect();
        for (id, (runs, reason)) in judgements {
            let Some(task) = self.table.get_mut(id).filter(|task| task.is_frozen == runs) else {
                continue;
            };
            task.order(!runs, reason, now_ns);
            let action = if runs { FreezeAction::Thaw } else { FreezeAction::Freeze };
            orders.push(FreezeOrder { task: id, action, reason });
        }
        orders.sort_by_key(|order| order.action);
        orders
    }
}
