//! Thaws frozen tasks for which somebody waits.

use luc_control::throttle::sample::{Action, Reason};

use super::Engine;
use crate::ThrottleError;
use crate::inversion::{COUPLED_NS, Candidate, Inversion, Notice};

impl Engine {
    /// Whom somebody waited for since this was last asked, oldest first.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        self.inversions.take_notices()
    }

    /// Thaws the frozen tasks for which somebody waits.
    pub(super) fn heed_inversions(&mut self, now: u64) -> Result<(), ThrottleError> {
        if !self.frozen.any() || !self.inversions.is_due(&self.observer, now) {
            return Ok(());
        }
        let changes = self.frozen.changes();
        let candidates = || -> Vec<Candidate<'_>> {
            let tasks = self.tasks.values();
            tasks.map(|task| task.candidate(now)).collect()
        };
        let found = self.inversions.look(&self.hierarchy, &self.observer, candidates, changes, now);
        for inversion in found {
            self.resolve(&inversion, now)?;
        }
        Ok(())
    }

    fn resolve(&mut self, inversion: &Inversion, now: u64) -> Result<(), ThrottleError> {
        for controller in &mut self.controllers {
            // Also where it is not frozen yet: another disk's policy would do so.
            controller.policy.thaw_for(inversion.holder, now);
            if let Some(waiter) = inversion.waiter.filter(|_| inversion.is_usual) {
                let until_ns = now + COUPLED_NS;
                let pair = (inversion.holder, waiter);
                controller.policy.couple(pair, Reason::Inversion, until_ns);
            }
        }
        let Some(task) = self.tasks.get_mut(&inversion.holder) else {
            return Ok(());
        };
        // Somebody before may have waited for the same.
        if !task.is_frozen() {
            return Ok(());
        }
        task.thaw(now, &self.record)?;
        let key = (Action::Thaw, Reason::Inversion);
        *self.counters.orders.entry(key).or_default() += 1;
        self.inversions.note(task.cgroup().path(), inversion, now);
        Ok(())
    }

    /// When to look for inversions again at the latest, ns.
    pub(super) fn inversions_look_ns(&self, now: u64) -> u64 {
        if self.frozen.any() { self.inversions.look_ns().max(now) } else { u64::MAX }
    }
}
