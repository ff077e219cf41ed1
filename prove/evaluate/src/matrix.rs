//! The energy slides' selection matrix: four servers on seven file systems and their options, on an emulated hard
//! disk in guests in virtual time.
//!
//! A group is a server with a seed on some of the file systems; one guest runs it, and its results are kept as soon
//! as it ends. A later run makes only what is missing or was made by another build.

mod cells;
mod conclusions;
mod figures;
mod guest;
mod page;

use std::sync::Arc;

use super::guests::{self, Results};
use super::report::Page;
use super::{EvaluateError, Options, machine};
use cells::Group;
use guest::{Cell, GuestRunner};

/// Runs what is missing, as far as the budget goes, and makes the page of all that is there. Also
/// the sentence on what it was made with.
pub(super) fn run(options: &Options) -> Result<(Page, String), EvaluateError> {
    let all = Group::all();
    if let Some(only) = &options.only
        && !all.iter().any(|group| options.wants(&group.name()))
    {
        return Err(EvaluateError::NoCell(only.clone()));
    }
    let runner = Arc::new(GuestRunner::open(&options.luc)?);
    let path = options.out.join("raw/matrix.json");
    let mut results: Results<Cell> = Results::open("matrix", &path, runner.release())?;
    let missing = all
        .iter()
        .filter(|group| options.wants(&group.name()))
        .filter(|group| !results.has(&group.name(), &runner.build(group)))
        .copied()
        .collect();
    let maker = runner.clone();
    guests::run_all(
        "matrix",
        options,
        missing,
        Group::name,
        move |group| maker.run(group),
        |group, cells| results.add(group.name(), runner.build(group), cells),
    )?;
    if results.is_empty() {
        // A page of nothing must not replace one of something.
        return Err(EvaluateError::NoTime);
    }
    let count = |wanted: &dyn Fn(&&Group) -> bool| all.iter().filter(wanted).count();
    let sentence = format!(
        "Made up to {} with Linux {} in QEMU; {} of {} groups are there, {} of them made by this build of luc.",
        machine::now()?,
        runner.release(),
        count(&|group| results.is_there(&group.name())),
        all.len(),
        count(&|group| results.has(&group.name(), &runner.build(group)))
    );
    Ok((page::page(&results), sentence))
}
