//! Sweeps: a plan's workloads at every point of its axes, repeated until the figures are sure.
//!
//! `plan` reads and checks, `points` crosses the axes, `order` says what is next, `run` makes a repeat, `journal` keeps
//! it so that a sweep killed at any moment goes on, `keeper` clears up after one that was, `power` has the processors'
//! frequency and the energy, `counters` what the machine counted meanwhile, `device` says what may be
//! formatted and gives it back, `gateable` asks whether workloads can be gated, `report` says what came out,
//! `explain` what goes along with it, `parquet` has all of it as tables.

mod counters;
mod device;
mod environment;
mod error;
mod explain;
mod gateable;
mod journal;
mod keeper;
#[cfg(test)]
mod made_up;
mod options;
mod order;
mod parquet;
mod plan;
mod points;
mod power;
mod report;
mod run;

use std::path::Path;

pub use counters::Counters;
pub use environment::Environment;
pub use error::SweepError;
pub use explain::{ComponentReport, CounterReport, Explanation};
pub use journal::Record;
pub use keeper::keep_house;
pub use plan::{Plan, Scheduler};
pub use points::Point;
pub use report::{PointEnergy, PointReport, Ratio, Report};

use crate::interrupt;
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
    plan.check_machine(sysfs)?;
    device::check(plan, out, sysfs)?;
    gateable::check(plan, luc)?;
    let points = points::points(plan);
    let (mut journal, records) = Journal::open(out, plan)?;
    let mut schedule = Schedule::new(plan, &points, &records);
    tick(schedule.made(), schedule.wanted(), "");
    if schedule.next().is_some() {
        let mut house = keeper::Keeper::start(plan, out, luc, sysfs, &journal)?;
        let mut repeats = || {
            // Dropped before the keeper, which it uses.
            let mut power = power::Power::start(plan, out, sysfs, &mut house)?;
            while let Some((number, round)) = schedule.next() {
                let point = &points[number];
                let record = run::repeat(plan, point, round, &house, &mut power)?;
                journal.append(&record)?;
                schedule.add(number, record.value);
                tick(schedule.made(), schedule.wanted(), &point.key());
            }
            Ok(())
        };
        match repeats() {
            Err(SweepError::Interrupted) => {}
            outcome => outcome?,
        }
    } else {
        keeper::clear_left(plan, out, sysfs)?;
    }
    let report = report::report(
        plan,
        &points,
        &journal.read_back()?,
        power::about(out),
        interrupt::interrupted(),
    );
    report.export(out)?;
    Ok(report)
}

/// The report of what the folder `out` has so far, from its files alone: the sweep may be going on. Its other files are
/// made again.
///
/// # Errors
/// [`SweepError`]: it is no folder of a sweep, or cannot be read or written.
pub fn report_again(out: &Path) -> Result<Report, SweepError> {
    let (plan, records) = journal::read(out)?;
    let points = points::points(&plan);
    let report = report::report(&plan, &points, &records, power::about(out), false);
    report.export(out)?;
    Ok(report)
}
