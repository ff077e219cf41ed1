//! Turns decisions into orders: which tasks run, which are frozen, and why.

use super::super::sample::{Action, Order, Reason, TaskId};
use super::{Auto, Task};

impl Auto {
    /// Decides whether a task may run, and why.
    fn judge(&self, task: &Task, now_ns: u64) -> (bool, Reason) {
        if !task.is_ours() {
            (true, Reason::NothingGained)
        } else if now_ns < task.exempt_until_ns {
            (true, Reason::Starvation)
        } else if now_ns < task.grace_until_ns {
            (true, Reason::Call)
        } else if self.holds_until_ns(now_ns) > now_ns && task.wants {
            (false, Reason::Protect)
        } else if let Some(alone) = self.trials.alone() {
            (task.id() == alone || !task.wants, Reason::Trial)
        } else if let Some(reason) = self.token.admission_of(task.id()) {
            (true, self.explain_admission(task, reason))
        } else {
            (!task.wants, Reason::Turn)
        }
    }

    /// Explains why a task of the running set runs.
    fn explain_admission(&self, task: &Task, reason: Reason) -> Reason {
        if task.is_frozen && task.reason == Reason::Protect {
            Reason::Protect
        } else if self.trials.is_on() || task.reason == Reason::Trial {
            Reason::Trial
        } else if self.max_running.is_none() && !self.contention.is_contended() {
            Reason::NotContended
        } else if self.max_running.is_none() {
            Reason::NothingGained
        } else {
            reason
        }
    }

    /// Gives the orders that the decisions need, thaws first.
    pub(super) fn give_orders(&mut self, now_ns: u64) -> Vec<Order> {
        let mut orders = Vec::new();
        let judgements: Vec<(TaskId, (bool, Reason))> =
            self.table.iter().map(|task| (task.id(), self.judge(task, now_ns))).collect();
        for (id, (runs, reason)) in judgements {
            let Some(task) = self.table.get_mut(id).filter(|task| task.is_frozen == runs) else {
                continue;
            };
            task.order(!runs, reason, now_ns);
            let action = if runs { Action::Thaw } else { Action::Freeze };
            orders.push(Order { task: id, action, reason });
        }
        orders.sort_by_key(|order| order.action);
        orders
    }
}
