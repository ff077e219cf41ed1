//! Sweeps: a plan's workloads at every point of its axes, repeated until the figures are sure.
//!
//! `plan` reads and checks, `points` crosses the axes, `order` says what is next, `run` makes a repeat, `journal` keeps
//! it so that a sweep killed at any moment goes on, `keeper` clears up after one that was, `report` says what came out.

mod environment;
mod error;
mod journal;
mod keeper;
mod options;
mod order;
mod plan;
mod points;
mod report;
mod run;

use std::path::Path;

pub use environment::Environment;
pub use error::SweepError;
pub use journal::Record;
pub use keeper::keep_house;
pub use plan::Plan;
pub use points::Point;
pub use report::{PointReport, Ratio, Report};

use crate::interrupt;
use journal::Journal;
use order::Schedule;

/// Runs what `plan` still lacks in the folder `out`, and reports all of it. `luc` is the program that makes disks and
/// runs workloads; `tick` is told repeats made, repeats wanted as far as is known, and what was last made.
///
/// # Errors
/// [`SweepError`]: before anything is made where plan or machine do not allow it, or for the repeat that failed; what
/// was finished before stays in `out`.
pub fn run(
    plan: &Plan,
    out: &Path,
    luc: &Path,
    tick: &mut dyn FnMut(usize, usize, &str),
) -> Result<Report, SweepError> {
    plan.check_machine()?;
    let points = points::points(plan);
    let (mut journal, records) = Journal::open(out, plan)?;
    let mut schedule = Schedule::new(plan, &points, &records);
    tick(schedule.made(), schedule.wanted(), "");
    if schedule.next().is_some() {
        let house = keeper::Keeper::start(plan, out, luc, &journal)?;
        while let Some((number, round)) = schedule.next() {
            if interrupt::interrupted() {
                break;
            }
            let point = &points[number];
            let record = match run::repeat(plan, point, round, &house) {
                Err(SweepError::Interrupted) => break,
                other => other?,
            };
            journal.append(&record)?;
            schedule.add(number, record.value);
            tick(schedule.made(), schedule.wanted(), &point.key());
        }
    }
    let report = report::report(
        plan,
        &points,
        &journal.read_back()?,
        interrupt::interrupted(),
    );
    report.export(out)?;
    Ok(report)
}
