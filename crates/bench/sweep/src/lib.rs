//! Sweeps: a plan's workloads at every point of its axes, repeated until the figures are sure.
//!
//! - `plan` reads a plan and checks it, `points` crosses its axes (`axis`), `order` says which repeat is next.
//! - `run` makes a repeat on this machine, `guests` makes repeats in virtual time. `journal` keeps each, so that a sweep
//!   that was killed at any moment goes on; `cleanup` clears up after that one.
//! - `power` sets the processors and measures energy, `counters` reads what the machine counts during a repeat.
//! - `device` says which block devices may be formatted, and gives them back. `gateable` asks whether workloads can be
//!   gated.
//! - `report` has medians, intervals and ratios, `explain` the counters that the figure is correlated with; `page` draws
//!   both, `parquet` has all repeats as tables.
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

#[macro_use]
extern crate luc_units;

mod axis;
mod best;
mod cleanup;
mod counters;
mod device;
mod environment;
mod error;
mod explain;
mod gateable;
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
mod power;
mod report;
mod run;
mod time_scale;

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use luc_host::interrupt;
use luc_power::frequency;

pub use axis::Axis;
pub use best::Group;
pub use cleanup::{Restored, clean_up, name_of, restore_left};
pub use counters::Counters;
pub use device::DeviceAbout;
pub use device::shown_size;
pub use environment::Environment;
pub use error::SweepError;
pub use explain::{ComponentReport, CounterReport, Explanation};
pub use guests::{Needs as GuestNeeds, needs as guest_needs};
pub use journal::{Discarded, Failure, Record};
pub use options::option_value;
pub use page::page;
pub use plan::{
    Batching, Bench, CopyOut, Disk, OwnDisk, Plan, Policy, Scheduler, Size, Span, Stop, Target,
    VirtualTime, Workload,
};
pub use plan::{LARGEST_GUEST_DISK_BYTES, distribution_has, kernel_has, least_bytes};
pub use points::Point;
pub use report::{PointEnergy, PointReport, Ratio, Report};

use journal::{Journal, Results};
use order::Schedule;

/// A plan, and where it is run.
#[derive(Debug, Clone, Copy)]
pub struct Sweep<'a> {
    pub plan: &'a Plan,
    /// The folder of the results.
    pub out: &'a Path,
    /// The program that makes disks and runs workloads.
    pub luc: &'a Path,
    /// The root of sysfs, `/sys` but in tests.
    pub sysfs: &'a Path,
    /// No repeat is begun after it; the same sweep with a later one goes on.
    pub deadline: Option<Instant>,
}

/// Told repeats made, repeats wanted as far as is known, and the point of the one last made.
pub type Tick<'a> = &'a mut dyn FnMut(usize, usize, &str);

/// Runs `plan` without a deadline.
///
/// # Errors
/// As those of [`Sweep::run`].
pub fn run(
    plan: &Plan,
    out: &Path,
    luc: &Path,
    sysfs: &Path,
    tick: Tick<'_>,
) -> Result<Report, SweepError> {
    let sweep = Sweep { plan, out, luc, sysfs, deadline: None };
    sweep.run(tick)
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
        let mut held = device::Held::default();
        if plan.virtual_time.is_none() {
            held = device::hold(plan, out, self.sysfs)?;
            gateable::check(&points, self.luc)?;
        }
        let (mut journal, results) = Journal::open(out, plan)?;
        let outcome = if plan.virtual_time.is_some() {
            guests::run(self, &points, (&mut journal, results), tick)
        } else {
            self.run_here(&points, (&mut journal, &results), held, tick)
        };
        match outcome {
            Err(SweepError::Interrupted) => {}
            outcome => outcome?,
        }
        let results = journal.read_back()?;
        export(plan, &points, out, results, interrupt::interrupted())
    }

    /// Makes what is missing of `results` on this machine, and keeps it in `journal`.
    fn run_here(
        &self,
        points: &[Point],
        (journal, results): (&mut Journal, &Results),
        held: device::Held,
        tick: Tick<'_>,
    ) -> Result<(), SweepError> {
        let plan = self.plan;
        let mut schedule = Schedule::new(plan, points, &results.records, &results.failures);
        tick(schedule.made(), schedule.wanted(), "");
        if schedule.next().is_none() {
            return cleanup::clear_left(plan, self.out, self.sysfs);
        }
        let mut cleanup = cleanup::CleanupProcess::start(self, journal, held)?;
        // Dropped before the cleanup process, which it uses.
        let mut power = power::Power::start(self, &mut cleanup)?;
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
                // Of many candidates one may be impossible here: the others are not.
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
    let report = report::report(plan, points, results, power::about(out), interrupted);
    report.export(out)?;
    parquet::export(&report, out)?;
    Ok(report)
}

/// The report of what the folder `out` has so far, from its files alone: the sweep may be going on. Its other files are
/// made again.
///
/// # Errors
/// [`SweepError`]: it is no folder of a sweep, or cannot be read or written.
pub fn report_again(out: &Path) -> Result<Report, SweepError> {
    let (plan, results) = journal::read(out)?;
    export(&plan, &points::points(&plan), out, results, false)
}

/// What root would restore by `text`, written again, if it takes it for a sweep's: of devices, of processors, or a note.
/// For fuzzing.
#[doc(hidden)]
#[must_use]
pub fn saved(kind: u8, text: &str) -> Option<String> {
    match kind % 3 {
        0 => device::saved(text),
        1 => frequency::saved(text),
        _ => cleanup::saved(text),
    }
}
