//! The kernel module in virtual time: workloads by processor speed, stock and with each policy.
//!
//! A group is a workload at a speed with all settings; one guest runs it, and its results are kept as
//! soon as it ends. A later run makes only what is missing or was made by another build.

mod cells;
mod guest;
mod page;
mod results;

use std::collections::VecDeque;
use std::sync::Arc;

use super::report::Page;
use super::{EvaluateError, Options, guests, machine};
use cells::Group;
use guest::GuestRunner;
use results::Results;

/// Runs what is missing, as far as the budget goes, and makes the page of all that is there. Also
/// the sentence on what it was made with.
pub(super) fn run(options: &Options) -> Result<(Page, String), EvaluateError> {
    if let Some(only) = &options.only
        && !Group::all()
            .iter()
            .any(|group| options.wants(&group.name()))
    {
        return Err(EvaluateError::NoCell(only.clone()));
    }
    let work = options.myself.with_file_name("kernel-modules");
    let runner = Arc::new(GuestRunner::open(&options.luc, &work)?);
    let path = options.out.join("raw/kernel.json");
    let mut results = Results::open(&path, runner.release())?;
    let missing: VecDeque<Group> = Group::all()
        .into_iter()
        .filter(|group| options.wants(&group.name()))
        .filter(|group| !results.has(*group, &runner.build(*group)))
        .collect();
    let maker = runner.clone();
    guests::run_all(
        "kernel",
        options,
        missing,
        |group| group.name(),
        move |group| maker.run(*group),
        |group, cells| results.add(*group, runner.build(*group), cells),
    )?;
    if results.is_empty() {
        // A page of nothing must not replace one of something.
        return Err(EvaluateError::NoTime);
    }
    let (there, current) = results.builds(|group| runner.build(group));
    let sentence = format!(
        "Made up to {} with Linux {} in QEMU; {there} of {} groups are there, {current} of them made by \
         this build of luc, luc.ko and lagdisk.ko.",
        machine::now()?,
        runner.release(),
        Group::all().len()
    );
    Ok((page::page(&results), sentence))
}
