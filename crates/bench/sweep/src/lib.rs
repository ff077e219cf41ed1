//! Sweeps: a plan's workloads at every point of its axes, repeated until the figures are sure.
//!
//! - `plan` reads a plan and checks it, `sweep_points` crosses its axes (`axis`), `repeat_schedule` says which repeat
//!   is next.
//! - `run_repeat` makes a repeat on this machine, `guests` makes repeats in virtual time. `results_journal` keeps each,
//!   so that a sweep that was killed at any moment goes on.
//! - `borrow` lists the devices and settings that a sweep needs; `luc_borrow` gives them back, whatever ends the sweep.
//! - `counters` reads the machine's counters during a repeat. `gateable` asks whether workloads can be gated.
//! - `report` has medians, intervals and ratios, `figure_correlations` the counters that the figure is correlated with;
//!   `page` draws both, `parquet` has all repeats as tables.
//!
//! # In virtual time
//!
//! A plan with a section `[virtual]` runs its points in guests (`plan/virtual_time.rs` says what it may have).
//!
//! 1. `guests/batches` deals the points out: a batch has one speed and one round, in that round's order.
//! 2. `guests/script` writes what a guest does, `point.sh` does it, `guests/runner` boots it.
//! 3. `guests/parse_results` makes repeats of what the guest left, with the counters of `luc.ko`, the disk and the
//!    workload.
//!
//! A sweep has one instruction time; a point's speed stretches everything else. A batch is whole or is made again, so
//! a killed sweep ends with the same figures. It needs neither root nor a cleanup process: a guest dies with its
//! thread. `prove/plans/thesis.toml` is an example. The QEMU that ran a repeat is in its environment, and a sweep
//! does not go on with another one.

mod axis;
mod best_selection;
mod borrow;
mod builtin_workload;
mod counters;
mod error;
mod figure_correlations;
mod gateable;
mod guest_needs;
mod guests;
mod page;
mod parquet;
mod plan;
mod repeat_environment;
mod repeat_schedule;
mod report;
mod results_journal;
mod run_repeat;
mod sweep_points;
#[cfg(test)]
mod test_plan;
mod time_scale;
mod workload_options;

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use luc_host::interrupt_flag;

pub use axis::SweepAxis;
pub use best_selection::ComparedPoints;
pub use builtin_workload::BuiltinWorkload;
pub use counters::CounterValues;
pub use error::SweepError;
pub use figure_correlations::{ComponentCorrelation, CounterCorrelation, FigureCorrelations};
pub use guest_needs::{GuestNeeds, guest_needs};
pub use luc_borrow::{
    BorrowError, DeviceDescription, IoScheduler, RestoredResources, clean_up, name_of,
    restore_left, saved, shown_size,
};
pub use page::page;
pub use plan::{
    BatchingRule, CopyOutRule, PlanDisk, PlanDuration, PlanSize, PlanWorkload, StopRule, SweepPlan,
    SweepPolicy, SweepTarget, TargetDisk, VirtualTime,
};
pub use plan::{MAX_GUEST_DISK_BYTES, distribution_has, kernel_has, least_bytes};
pub use repeat_environment::RepeatEnvironment;
pub use report::{PointEnergy, PointRatio, PointReport, SweepReport};
pub use results_journal::{DiscardedRepeat, PointFailure, RepeatRecord};
pub use sweep_points::SweepPoint;
pub use workload_options::option_value;

use luc_borrow::{BorrowedProcessors, CleanupProcess, HeldDevices};
use repeat_schedule::RepeatSchedule;
use results_journal::{RecordedResults, ResultsJournal};

/// A plan, and where it is run.
#[derive(Debug, Clone, Copy)]
pub struct Sweep<'a> {
    pub plan: &'a SweepPlan,
    pub out: &'a Path,
    /// The program that makes disks and runs workloads.
    pub luc: &'a Path,
    /// The root of sysfs, `/sys` but in tests.
    pub sysfs: &'a Path,
    /// No repeat is begun after it; the same sweep with a later one goes on.
    pub deadline: Option<Instant>,
}

/// Progress callback: repeats made, repeats wanted as far as known, and the point of the last repeat.
pub type RepeatProgress<'a> = &'a mut dyn FnMut(usize, usize, &str);

/// Runs `plan` without a deadline.
///
/// # Errors
/// The errors of [`Sweep::run`].
pub fn run(
    plan: &SweepPlan,
    out: &Path,
    luc: &Path,
    sysfs: &Path,
    tick: RepeatProgress<'_>,
) -> Result<SweepReport, SweepError> {
    Sweep { plan, out, luc, sysfs, deadline: None }.run(tick)
}

impl Sweep<'_> {
    /// Makes the repeats that the folder still lacks, and reports all.
    ///
    /// # Errors
    /// [`SweepError`]: before anything is made where plan or machine do not allow it, or for the repeat that failed;
    /// repeats that were finished before stay in the folder.
    pub fn run(&self, tick: RepeatProgress<'_>) -> Result<SweepReport, SweepError> {
        let &Self { plan, out, .. } = self;
        plan.check_machine(self.sysfs)?;
        results_journal::check_owner(out)?;
        let points = sweep_points::points(plan);
        let mut held = HeldDevices::default();
        if plan.virtual_time.is_none() {
            held = luc_borrow::hold(&self.borrow_request())?;
            gateable::check(&points, self.luc)?;
        }
        let (mut journal, results) = ResultsJournal::open(out, plan)?;
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
        export(plan, &points, out, results, interrupt_flag::interrupted())
    }

    /// Makes the missing repeats on this machine, and keeps them in `journal`.
    fn run_here(
        &self,
        points: &[SweepPoint],
        journal: &mut ResultsJournal,
        results: &RecordedResults,
        held: HeldDevices,
        tick: RepeatProgress<'_>,
    ) -> Result<(), SweepError> {
        let plan = self.plan;
        let mut schedule = RepeatSchedule::new(plan, points, &results.records, &results.failures);
        tick(schedule.made(), schedule.wanted(), "");
        if schedule.next().is_none() {
            return Ok(luc_borrow::clear_left(&self.borrow_request())?);
        }
        let request = self.borrow_request();
        let mut cleanup = CleanupProcess::start(&request, journal.lock_copy()?, held)?;
        // Dropped before the cleanup process, which it uses.
        let mut power = BorrowedProcessors::start(&request, &mut cleanup)?;
        while let Some((number, round)) = schedule.next() {
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                break;
            }
            let point = &points[number];
            match run_repeat::repeat(plan, point, round, &cleanup, &mut power) {
                Ok(record) => {
                    journal.append(&record)?;
                    schedule.add(number, record.value);
                }
                // One impossible candidate does not end the sweep.
                Err(error) if plan.stop.best && error.is_of_one_point() => {
                    cleanup.clear_repeat()?;
                    journal.append_failure(&PointFailure {
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
    plan: &SweepPlan,
    points: &[SweepPoint],
    out: &Path,
    mut results: RecordedResults,
    interrupted: bool,
) -> Result<SweepReport, SweepError> {
    if plan.virtual_time.is_some() {
        // Guests end in any order.
        let at: HashMap<String, usize> = points.iter().map(SweepPoint::key).zip(0..).collect();
        let order = |record: &RepeatRecord| (record.round, at.get(&record.key).copied());
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
pub fn report_again(out: &Path) -> Result<SweepReport, SweepError> {
    let (plan, results) = results_journal::read(out)?;
    export(&plan, &sweep_points::points(&plan), out, results, false)
}
