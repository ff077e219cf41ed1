//! Sweeps: a plan's workloads at every point of its axes, repeated until the figures are sure.
//!
//! - `plan` reads a plan and checks it, `points` crosses its axes (`axis`), `order` says which repeat is next.
//! - `run` makes a repeat on this machine, `guests` makes repeats in virtual time. `journal` keeps each, so that a
//!   sweep that was killed at any moment goes on.
//! - `borrow` lists the devices and settings that a sweep needs; `luc_borrow` gives them back, whatever ends the sweep.
//! - `counters` reads the machine's counters during a repeat. `gateable` asks whether workloads can be gated.
//! - `report` has medians, intervals and ratios, `explain` the counters that the figure is correlated with; `page`
//!   draws both, `parquet` has all repeats as tables.
//!
//! # In virtual time
//!
//! A plan with a section `[virtual]` runs its points in guests (`plan/virtual_time.rs` says what it may have).
//!
//! 1. `guests/batches` deals the points out: a batch has one speed and one round, in that round's order.
//! 2. `guests/script` writes what a guest does, `point.sh` does it, `guests/runner` boots it.
//! 3. `guests/reading` makes repeats of what the guest left, with the counters of `luc.ko`, the disk and the
//!    workload.
//!
//! A sweep has one instruction time; a point's speed stretches everything else. A batch is whole or is made again, so
//! a killed sweep ends with the same figures. It needs neither root nor a cleanup process: a guest dies with its
//! thread. `prove/plans/thesis.toml` is an example. The QEMU that ran a repeat is in its environment, and a sweep
//! does not go on with another one.

mod axis;
mod bench;
mod best;
mod borrow;
mod counters;
mod environment;
mod error;
mod explain;
mod gateable;
mod guest_needs;
mod guests;
mod journal;
#[cfg(test)]
mod made_up;
mod options;
mod order;
mod page;
mod parquet;
mod plan;
mod points;
mod report;
mod run;
mod time_scale;

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use luc_host::interrupt;

pub use axis::Axis;
pub use bench::Bench;
pub use best::Group;
pub use counters::Counters;
pub use environment::Environment;
pub use error::SweepError;
pub use explain::{ComponentReport, CounterReport, Explanation};
pub use guest_needs::{GuestNeeds, guest_needs};
pub use journal::{Discarded, Failure, Record};
pub use luc_borrow::{
    BorrowError, DeviceAbout, Restored, Scheduler, clean_up, name_of, restore_left, saved,
    shown_size,
};
pub use options::option_value;
pub use page::page;
pub use plan::{
    Batching, CopyOut, Disk, OwnDisk, Plan, Policy, Size, Span, Stop, Target, VirtualTime, Workload,
};
pub use plan::{MAX_GUEST_DISK_BYTES, distribution_has, kernel_has, least_bytes};
pub use points::Point;
pub use report::{PointEnergy, PointReport, Ratio, Report};

use journal::{Journal, Results};
use luc_borrow::{CleanupProcess, HeldDevices, Power};
use order::Schedule;

/// A plan, and where it is run.
#[derive(Debug, Clone, Copy)]
pub struct Sweep<'a> {
    pub plan: &'a Plan,
    pub out: &'a Path,
    /// The program that makes disks and runs workloads.
    pub luc: &'a Path,
    /// The root of sysfs, `/sys` but in tests.
    pub sysfs: &'a Path,
    /// No repeat is begun after it; the same sweep with a later one goes on.
    pub deadline: Option<Instant>,
}

/// Progress callback: repeats made, repeats wanted as far as known, and the point of the last repeat.
pub type Tick<'a> = &'a mut dyn FnMut(usize, usize, &str);

/// Runs `plan` without a deadline.
///
/// # Errors
/// The errors of [`Sweep::run`].
pub fn run(
    plan: &Plan,
    out: &Path,
    luc: &Path,
    sysfs: &Path,
    tick: Tick<'_>,
) -> Result<Report, SweepError> {
    Sweep { plan, out, luc, sysfs, deadline: None }.run(tick)
}

impl Sweep<'_> {
    /// Makes the repeats that the folder still lacks, and reports all.
    ///
    /// # Errors
    /// [`SweepError`]: before anything is made where plan or machine do not allow it, or for the repeat that failed;
    /// repeats that were finished before stay in the folder.
    pub fn run(&self, tick: Tick<'_>) -> Result<Report, SweepError> {
        let &Self { plan, out, .. } = self;
        plan.check_machine(self.sysfs)?;
        journal::check_owner(out)?;
        let points = points::points(plan);
        let mut held = HeldDevices::default();
        if plan.virtual_time.is_none() {
            held = luc_borrow::hold(&self.borrow_request())?;
            gateable::check(&points, self.luc)?;
        }
        let (mut journal, results) = Journal::open(out, plan)?;
        let outcome = if plan.virtual_time.is_some() {
            guests::run(self, &points, &mut journal, results, tick)
        } else {
            self.run_here(&points, &mut journal, &results, held, tick)
        };
        match outcome {
            Err(SweepError::Interrupted) => {}
            outcome => outcome?,
        }
        let results = journal.read_back()?;
        export(plan, &points, out, results, interrupt::interrupted())
    }

    /// Makes the missing repeats on this machine, and keeps them in `journal`.
    fn run_here(
        &self,
        points: &[Point],
        journal: &mut Journal,
        results: &Results,
        held: HeldDevices,
        tick: Tick<'_>,
    ) -> Result<(), SweepError> {
        let plan = self.plan;
        let mut schedule = Schedule::new(plan, points, &results.records, &results.failures);
        tick(schedule.made(), schedule.wanted(), "");
        if schedule.next().is_none() {
            return Ok(luc_borrow::clear_left(&self.borrow_request())?);
        }
        let request = self.borrow_request();
        let mut cleanup = CleanupProcess::start(&request, journal.lock_copy()?, held)?;
        // Dropped before the cleanup process, which it uses.
        let mut power = Power::start(&request, &mut cleanup)?;
        while let Some((number, round)) = schedule.next() {
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                break;
            }
            let point = &points[number];
            match run::repeat(plan, point, round, &cleanup, &mut power) {
                Ok(record) => {
                    journal.append(&record)?;
                    schedule.add(number, record.value);
                }
                // One impossible candidate does not end the sweep.
                Err(error) if plan.stop.best && error.is_of_one_point() => {
                    cleanup.clear_repeat()?;
                    journal.append_failure(&Failure {
                        key: point.key(),
                        round,
                        failed: error.to_string(),
                    })?;
                    schedule.fail(number);
                }
                Err(error) => return Err(error),
            }
            tick(schedule.made(), schedule.wanted(), &point.key());
        }
        Ok(())
    }
}

/// Makes the report of `results` and writes its files to the folder `out`.
fn export(
    plan: &Plan,
    points: &[Point],
    out: &Path,
    mut results: Results,
    interrupted: bool,
) -> Result<Report, SweepError> {
    if plan.virtual_time.is_some() {
        // Guests end in any order.
        let at: HashMap<String, usize> = points.iter().map(Point::key).zip(0..).collect();
        let order = |record: &Record| (record.round, at.get(&record.key).copied());
        results.records.sort_by_key(order);
    }
    let report = report::report(plan, points, results, luc_borrow::energy_about(out), interrupted);
    report.export(out)?;
    parquet::export(&report, out)?;
    Ok(report)
}

/// Reports the results in the folder `out` so far, and writes its other files again. The sweep may still be running.
///
/// # Errors
/// [`SweepError`]: it is no folder of a sweep, or cannot be read or written.
pub fn report_again(out: &Path) -> Result<Report, SweepError> {
    let (plan, results) = journal::read(out)?;
    export(&plan, &points::points(&plan), out, results, false)
}
