//! Thaws frozen tasks that others wait for.

use luc_control::throttle::policy_input::{FreezeAction, FreezeReason};

use super::ThrottleEngine;
use crate::ThrottleError;
use crate::priority_inversion::{COUPLED_NS, Inversion, InversionNotice};

impl ThrottleEngine {
    /// Takes the notices about thaws since the last call, oldest first.
    pub fn take_notices(&mut self) -> Vec<InversionNotice> {
        self.inversions.take_notices()
    }

    /// Thaws the frozen tasks that others wait for.
    pub(super) fn heed_inversions(&mut self, now: u64) -> Result<(), ThrottleError> {
        if !self.frozen.any() || !self.inversions.is_due(&self.observer, now) {
            return Ok(());
        }
        let changes = self.frozen.changes();
        let candidates = || self.tasks.values().map(|task| task.candidate(now)).collect();
        let found = self.inversions.look(&self.hierarchy, &self.observer, candidates, changes, now);
        for inversion in found {
            self.resolve(&inversion, now)?;
        }
        Ok(())
    }

    fn resolve(&mut self, inversion: &Inversion, now: u64) -> Result<(), ThrottleError> {
        for controller in &mut self.controllers {
            // Also if it is not frozen yet: another disk's policy may be about to freeze it.
            controller.policy.thaw_for(inversion.holder, now);
            if let Some(waiter) = inversion.waiter.filter(|_| inversion.should_couple) {
                let pair = (inversion.holder, waiter);
                controller.policy.couple(pair, FreezeReason::Inversion, now + COUPLED_NS);
            }
        }
        // An earlier inversion may have thawed the same holder.
        let Some(task) = self.tasks.get_mut(&inversion.holder).filter(|task| task.is_frozen())
        else {
            return Ok(());
        };
        task.thaw(now, &self.record)?;
        let key = (FreezeAction::Thaw, FreezeReason::Inversion);
        *self.counters.orders.entry(key).or_default() += 1;
        self.inversions.note_thaw(task.cgroup().path(), inversion, now);
        Ok(())
    }

    /// Latest time of the next search for inversions, ns.
    pub(super) fn inversions_look_ns(&self, now: u64) -> u64 {
        if self.frozen.any() { self.inversions.look_ns().max(now) } else { u64::MAX }
    }
}
