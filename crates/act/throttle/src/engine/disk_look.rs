//! A look at one disk: makes the sample for its policy, and carries out the orders.

use luc_control::throttle::policy_input::{
    FreezeAction, FreezeOrder, FreezeReason, TaskClass, ThrottleSample,
};
use luc_probe::disk_contention::NotifyOn;

use super::disk_controller::ControllerId;
use super::{MAX_LOOK_INTERVAL_NS, ThrottleEngine, shared_files};
use crate::ThrottleError;

/// Time for which tasks that read the same file are treated as one, ns.
const SAME_DATA_COUPLING_NS: u64 = 60_000_000_000;

impl ThrottleEngine {
    /// Looks at one disk and carries out the orders of its policy. Returns the latest time of the next look, ns.
    pub(super) fn look_at(&mut self, id: ControllerId, now: u64) -> Result<u64, ThrottleError> {
        // 1. Nothing to do for an idle disk before the policy's next look.
        let controller = &mut self.controllers[id.0];
        let disk = self.observer.disk(&controller.disk);
        let is_idle = disk.requests == controller.requests && disk.in_flight == 0;
        let wants_frozen =
            || self.frozen.any() && self.tasks.values().any(|task| task.is_frozen_for(id));
        if is_idle && now < controller.look_again_ns && !wants_frozen() {
            return Ok(now + MAX_LOOK_INTERVAL_NS);
        }
        controller.requests = disk.requests;
        // 2. New users of the disk. Reading the activity of a hundred idle tasks would be most of a look's cost.
        if now >= controller.look_at_all_ns {
            controller.look_at_all_ns = now + MAX_LOOK_INTERVAL_NS;
            for (task_id, task) in &self.tasks {
                let has_used = || self.observer.has_used(task.slot, &controller.disk);
                if !controller.users.contains(task_id) && has_used() {
                    controller.users.insert(*task_id);
                    if task.class == TaskClass::Batch {
                        self.observer.notify(task.slot, NotifyOn::default());
                    }
                }
            }
        }
        // 3. Samples of all users.
        let mut samples = Vec::with_capacity(controller.users.len());
        let mut looked_into = Vec::new();
        for task_id in &controller.users {
            let Some(task) = self.tasks.get_mut(task_id) else {
                continue;
            };
            let mut sample = task.sample();
            self.observer.fill(&mut sample, task.slot, &controller.disk);
            task.note_submit(sample.last_submit_ns);
            if task.may_wait_without_request(&sample, now) {
                sample.outstanding = 1;
            }
            if task.learn_files(sample.bytes, now) {
                looked_into.push(*task_id);
            }
            sample.remaining_bytes = task.remaining_bytes(sample.bytes);
            samples.push(sample);
        }
        for pair in shared_files::find_pairs(&self.tasks, &looked_into) {
            controller.policy.couple(pair, FreezeReason::SameData, now + SAME_DATA_COUPLING_NS);
        }
        // 4. The policy's decision.
        let decision =
            controller.policy.decide(&ThrottleSample { now_ns: now, disk, tasks: &samples });
        controller.look_again_ns = decision.look_again_ns;
        for order in decision.orders {
            self.obey(id, order, now)?;
        }
        Ok(decision.look_again_ns)
    }

    /// Carries out an order. A task is frozen while the policy of any disk wants it frozen.
    fn obey(
        &mut self,
        controller: ControllerId,
        order: FreezeOrder,
        now: u64,
    ) -> Result<(), ThrottleError> {
        let task = self.tasks.get_mut(&order.task);
        let Some(task) = task.filter(|task| task.class == TaskClass::Batch) else {
            return Ok(());
        };
        let key = (order.action, order.reason);
        *self.counters.orders.entry(key).or_default() += 1;
        task.reason = Some(order.reason);
        match order.action {
            FreezeAction::Thaw => task.release(controller, now, &self.record),
            FreezeAction::Freeze => {
                let deadline_ns = now + self.options.max_frozen_ns;
                task.freeze(controller, now, deadline_ns, &self.record)
            }
        }
    }
}
