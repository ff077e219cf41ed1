//! Sweeps: a plan's workloads at every point of its axes, repeated until the figures are sure.
//!
//! `plan` reads and checks, `points` crosses the axes, `order` says what is next, `run` makes a repeat, `journal` keeps
//! it so that a sweep killed at any moment goes on, `cleanup` clears up after one that was, `power` has the processors'
//! frequency and the energy, `counters` what the machine counted meanwhile, `device` says what may be
//! formatted and gives it back, `gateable` asks whether workloads can be gated, `report` says what came out,
//! `explain` what goes along with it, `parquet` has all of it as tables. [`selection`] says which of several candidates is
//! best and how sure that is, [`advise`] what follows for a workload on a device.

pub mod advise;
mod axis;
mod best;
mod cleanup;
mod counters;
mod device;
mod digits;
mod environment;
mod error;
mod explain;
mod gateable;
mod guests;
mod hint;
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
pub mod selection;
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
pub(crate) use device::shown_size;
pub use environment::Environment;
pub use error::SweepError;
pub use explain::{ComponentReport, CounterReport, Explanation};
pub use guests::{Needs as GuestNeeds, needs as guest_needs};
pub use journal::{Discarded, Failure, Record};
pub(crate) use options::option_value;
pub use page::page;
pub use plan::{
    Batching, Bench, CopyOut, Disk, OwnDisk, Plan, Policy, Scheduler, Size, Span, Stop, Target,
    VirtualTime, Workload,
};
pub(crate) use plan::{LARGEST_GUEST_DISK, distribution_has, kernel_has, least_size};
pub use points::Point;
pub use report::{PointEnergy, PointReport, Ratio, Report};

use journal::Journal;
use order::Schedule;

/// Runs what `plan` still lacks in the folder `out`, and reports all of it. `luc` is the program that makes disks and
/// runs workloads; `sysfs` is the root of sysfs, `/sys` but in tests; `tick` is told repeats made, repeats wanted as far
/// as is known, and what was last made.
///
/// # Errors
/// [`SweepError`]: before anything is made where plan or machine do not allow it, or for the repeat that failed; what
/// was finished before stays in `out`.
pub fn run(
    plan: &Plan,
    out: &Path,
    luc: &Path,
    sysfs: &Path,
    tick: &mut dyn FnMut(usize, usize, &str),
) -> Result<Report, SweepError> {
    run_until(plan, out, luc, sysfs, None, tick)
}

/// As [`run()`], but begins no repeat after `deadline`; the same again with a later one goes on.
///
/// # Errors
/// As those of [`run()`].
pub fn run_until(
    plan: &Plan,
    out: &Path,
    luc: &Path,
    sysfs: &Path,
    deadline: Option<Instant>,
    tick: &mut dyn FnMut(usize, usize, &str),
) -> Result<Report, SweepError> {
    plan.check_machine(sysfs)?;
    journal::check_owner(out)?;
    let points = points::points(plan);
    let mut held = device::Held::default();
    if plan.virtual_time.is_none() {
        held = device::hold(plan, out, sysfs)?;
        gateable::check(&points, luc)?;
    }
    let (mut journal, results) = Journal::open(out, plan)?;
    if plan.virtual_time.is_some() {
        let kept = (&mut journal, results);
        match guests::run(plan, &points, out, luc, kept, deadline, tick) {
            Err(SweepError::Interrupted) => {}
            outcome => outcome?,
        }
        return finish(plan, &points, out, &mut journal);
    }
    let mut schedule = Schedule::new(plan, &points, &results.records, &results.failures);
    tick(schedule.made(), schedule.wanted(), "");
    if schedule.next().is_some() {
        let mut cleanup = cleanup::CleanupProcess::start(plan, out, luc, sysfs, &journal, held)?;
        let mut repeats = || {
            // Dropped before the cleanup process, which it uses.
            let mut power = power::Power::start(plan, out, sysfs, &mut cleanup)?;
            while let Some((number, round)) = schedule.next() {
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
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
        };
        match repeats() {
            Err(SweepError::Interrupted) => {}
            outcome => outcome?,
        }
    } else {
        cleanup::clear_left(plan, out, sysfs)?;
    }
    finish(plan, &points, out, &mut journal)
}

/// The report of all that is in the journal.
fn finish(
    plan: &Plan,
    points: &[Point],
    out: &Path,
    journal: &mut Journal,
) -> Result<Report, SweepError> {
    let results = journal.read_back()?;
    export(plan, points, out, results, interrupt::interrupted())
}

/// Makes the report of `results` and writes its files to the folder `out`.
fn export(
    plan: &Plan,
    points: &[Point],
    out: &Path,
    mut results: journal::Results,
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
