//! Sweeps: a plan's workloads at every point of its axes, repeated until the figures are sure.
//!
//! `plan` reads and checks, `points` crosses the axes, `order` says what is next, `run` makes a repeat, `journal` keeps
//! it so that a sweep killed at any moment goes on, `keeper` clears up after one that was, `power` has the processors' frequency and the energy, `report` says
//! what came out.

mod best;
mod environment;
mod error;
mod journal;
mod keeper;
mod options;
mod order;
mod plan;
mod points;
mod power;
mod report;
mod run;

use std::path::Path;
use std::time::Instant;

pub use best::Group;
pub use environment::Environment;
pub use error::SweepError;
pub use journal::{Failure, Record};
pub use keeper::keep_house;
pub(crate) use options::option_value;
pub use plan::{Bench, Disk, Plan, Policy, Stop, Target, Workload};
pub(crate) use plan::{kernel_has, meant};
pub use points::Point;
pub(crate) use report::Short;
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
    run_until(plan, out, luc, sysfs, None, tick)
}

/// As [`run`], but begins no repeat after `deadline`; the same again with a later one goes on.
///
/// # Errors
/// As those of [`run`].
pub fn run_until(
    plan: &Plan,
    out: &Path,
    luc: &Path,
    sysfs: &Path,
    deadline: Option<Instant>,
    tick: &mut dyn FnMut(usize, usize, &str),
) -> Result<Report, SweepError> {
    plan.check_machine(sysfs)?;
    let points = points::points(plan);
    let (mut journal, results) = Journal::open(out, plan)?;
    let mut schedule = Schedule::new(plan, &points, &results.records, &results.failures);
    tick(schedule.made(), schedule.wanted(), "");
    if schedule.next().is_some() {
        let mut house = keeper::Keeper::start(plan, out, luc, sysfs, &journal)?;
        let mut repeats = || {
            // Dropped before the keeper, which it uses.
            let mut power = power::Power::start(plan, out, sysfs, &mut house)?;
            while let Some((number, round)) = schedule.next() {
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    break;
                }
                let point = &points[number];
                match run::repeat(plan, point, round, &house, &mut power) {
                    Ok(record) => {
                        journal.append(&record)?;
                        schedule.add(number, record.value);
                    }
                    // Of many candidates one may be impossible here: the others are not.
                    Err(error) if plan.stop.best && error.is_of_one_point() => {
                        house.clear_repeat()?;
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
        keeper::clear_left(plan, out, sysfs)?;
    }
    let report = report::report(
        plan,
        &points,
        journal.read_back()?,
        power::about(out),
        interrupt::interrupted(),
    );
    report.export(out)?;
    Ok(report)
}
