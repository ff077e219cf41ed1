//! The devices and settings that a plan needs from this machine.

use luc_borrow::BorrowRequest;

use crate::Sweep;
use crate::plan::SweepTarget;

impl<'a> Sweep<'a> {
    /// Lists everything that the sweep borrows.
    pub(super) fn borrow_request(&self) -> BorrowRequest<'a> {
        let &Self { plan, out, luc, sysfs, .. } = self;
        BorrowRequest {
            out,
            luc,
            sysfs,
            devices: plan.target.iter().filter_map(SweepTarget::device_request).collect(),
            makes_disks: plan.target.iter().any(SweepTarget::is_emulated),
            directories: plan.target.iter().filter_map(|target| target.directory.clone()).collect(),
            schedulers: &plan.scheduler,
            frequency: plan.lends_processors().then_some(&plan.frequency_options),
            throttles: plan.throttles(),
            poll_idle: plan.poll_idle,
            energy: &plan.energy,
        }
    }
}
