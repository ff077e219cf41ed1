//! A look at one disk: what its policy is shown, and what is done of what it says.

use luc_control::throttle::sample::{Action, Class, Order, Reason, Sample};
use luc_probe::contention::Notify;

use super::{Engine, LONGEST_NS, sharing};
use crate::ThrottleError;

/// Tasks that read the same file are treated as one for this long after that was seen, ns.
const SHARED_NS: u64 = 60_000_000_000;

impl Engine {
    /// Looks at one disk and does what its policy says. Returns when to look again at the latest, ns.
    pub(super) fn look_at(&mut self, index: usize, now: u64) -> Result<u64, ThrottleError> {
        let controller = &mut self.controllers[index];
        let disk = self.observer.disk(&controller.disk);
        let is_idle = disk.requests == controller.requests && disk.in_flight == 0;
        let wants_frozen =
            || self.frozen.any() && self.tasks.values().any(|task| task.is_frozen_for(index));
        if is_idle && now < controller.look_again_ns && !wants_frozen() {
            return Ok(now + LONGEST_NS);
        }
        controller.requests = disk.requests;
        // Reading what a hundred idle tasks did would be most of a look's cost.
        if now >= controller.look_at_all_ns {
            controller.look_at_all_ns = now + LONGEST_NS;
            for (id, task) in &self.tasks {
                if controller.users.contains(id)
                    || !self.observer.has_used(task.slot, &controller.disk)
                {
                    continue;
                }
                controller.users.insert(*id);
                if task.class == Class::Batch {
                    self.observer.notify(task.slot, Notify::default());
                }
            }
        }
        let mut samples = Vec::with_capacity(controller.users.len());
        let mut looked_into = Vec::new();
        for id in &controller.users {
            let Some(task) = self.tasks.get_mut(id) else {
                continue;
            };
            let mut sample = task.sample();
            self.observer.fill(&mut sample, task.slot, &controller.disk);
            task.note_submit(sample.last_submit_ns);
            if task.may_wait_without_request(&sample, now) {
                sample.outstanding = 1;
            }
            if task.learn_files(sample.bytes, now) {
                looked_into.push(*id);
            }
            sample.remaining_bytes = task.remaining_bytes(sample.bytes);
            samples.push(sample);
        }
        for pair in sharing::pairs(&self.tasks, &looked_into) {
            let until_ns = now + SHARED_NS;
            controller.policy.couple(pair, Reason::SameData, until_ns);
        }
        let decision = controller.policy.decide(&Sample { now_ns: now, disk, tasks: &samples });
        controller.look_again_ns = decision.look_again_ns;
        for order in decision.orders {
            self.obey(index, order, now)?;
        }
        Ok(decision.look_again_ns)
    }

    /// A task is frozen while the policy of any disk wants it to be.
    fn obey(&mut self, controller: usize, order: Order, now: u64) -> Result<(), ThrottleError> {
        let Some(task) = self.tasks.get_mut(&order.task) else {
            return Ok(());
        };
        if task.class != Class::Batch {
            return Ok(());
        }
        let key = (order.action, order.reason);
        *self.counters.orders.entry(key).or_default() += 1;
        task.reason = Some(order.reason);
        match order.action {
            Action::Thaw => task.release(controller, now, &self.record),
            Action::Freeze => {
                let deadline_ns = now + self.options.max_frozen_ns;
                task.freeze(controller, now, deadline_ns, &self.record)
            }
        }
    }
}
