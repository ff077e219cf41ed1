//! From what is decided to orders: who runs, who is frozen, and why.

use super::super::sample::{Action, Order, Reason, TaskId};
use super::{Auto, Task};

impl Auto {
    /// Whether a task is to run, and why (or why not).
    fn verdict(&self, task: &Task, now_ns: u64) -> (bool, Reason) {
        if !task.is_ours() {
            (true, Reason::NothingGained)
        } else if now_ns < task.exempt_until_ns {
            (true, Reason::Starvation)
        } else if now_ns < task.runs_on_until_ns {
            (true, Reason::Call)
        } else if self.holds_until_ns(now_ns) > now_ns && task.wants {
            (false, Reason::Protect)
        } else if let Some(alone) = self.trials.alone() {
            (task.id() == alone || !task.wants, Reason::Trial)
        } else if let Some(reason) = self.token.admits(task.id()) {
            (true, self.why_admitted(task, reason))
        } else {
            (!task.wants, Reason::Turn)
        }
    }

    /// Why a task of the running set runs.
    fn why_admitted(&self, task: &Task, reason: Reason) -> Reason {
        if task.is_frozen && task.reason == Reason::Protect {
            Reason::Protect
        } else if self.trials.is_on() || task.reason == Reason::Trial {
            Reason::Trial
        } else if self.size.is_none() && !self.contention.is_contended() {
            Reason::NotContended
        } else if self.size.is_none() {
            Reason::NothingGained
        } else {
            reason
        }
    }

    /// Orders that make it so, thaws first.
    pub(super) fn orders(&mut self, now_ns: u64) -> Vec<Order> {
        let mut orders = Vec::new();
        let verdicts: Vec<(TaskId, bool, Reason)> = self
            .table
            .iter()
            .map(|task| {
                let (runs, reason) = self.verdict(task, now_ns);
                (task.id(), runs, reason)
            })
            .collect();
        for (id, runs, reason) in verdicts {
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
