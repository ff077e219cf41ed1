//! The kernel module in virtual time: workloads by processor speed, stock and with each policy.
//!
//! A group is a workload at a speed with all settings; one guest runs it, and its results are kept as
//! soon as it ends. A later run makes only what is missing or was made by another build.

mod cells;
mod guest;
mod page;
mod results;

use std::collections::VecDeque;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::progress::Progress;
use super::report::Page;
use super::{EvaluateError, Options, machine};
use crate::interrupt;
use cells::Group;
use guest::Laboratory;
use results::{Cell, Results};

/// How often the user's patience is asked after.
const POLL: Duration = Duration::from_millis(200);

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
    let laboratory = Arc::new(Laboratory::open(&options.luc, &work)?);
    let path = options.out.join("raw/kernel.json");
    let mut results = Results::open(&path, laboratory.release())?;
    let missing: VecDeque<Group> = Group::all()
        .into_iter()
        .filter(|group| options.wants(&group.name()))
        .filter(|group| !results.has(*group, &laboratory.build(*group)))
        .collect();
    measure(options, &laboratory, missing, &mut results)?;
    if results.is_empty() {
        // A page of nothing must not replace one of something.
        return Err(EvaluateError::NoTime);
    }
    let (there, current) = results.builds(|group| laboratory.build(group));
    let sentence = format!(
        "Made up to {} with Linux {} in QEMU; {there} of {} groups are there, {current} of them made by \
         this build of luc, luc.ko and lagdisk.ko.",
        machine::now()?,
        laboratory.release(),
        Group::all().len()
    );
    Ok((page::page(&results), sentence))
}

/// Runs `missing` in `--jobs` guests at a time until the budget is spent.
fn measure(
    options: &Options,
    laboratory: &Arc<Laboratory>,
    missing: VecDeque<Group>,
    results: &mut Results,
) -> Result<(), EvaluateError> {
    let deadline = options.budget.map(|budget| Instant::now() + budget);
    let mut progress = Progress::new("kernel", missing.len());
    let queue = Arc::new(Mutex::new(missing));
    let (sender, outcomes) = mpsc::channel();
    for _ in 0..options.jobs.max(1) {
        let (laboratory, queue, sender) = (laboratory.clone(), queue.clone(), sender.clone());
        // Not joined: a guest ends with its thread, and that with the process.
        thread::spawn(move || worker(&laboratory, &queue, deadline, &sender));
    }
    drop(sender);
    loop {
        match outcomes.recv_timeout(POLL) {
            Ok((group, cells)) => {
                results.add(group, laboratory.build(group), cells?)?;
                progress.step(&group.name());
            }
            Err(RecvTimeoutError::Timeout) if interrupt::interrupted() => {
                return Err(EvaluateError::Interrupted);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

type Made = (Group, Result<Vec<Cell>, EvaluateError>);

/// Takes groups until there are no more, time is up, or nobody listens.
fn worker(
    laboratory: &Laboratory,
    queue: &Mutex<VecDeque<Group>>,
    deadline: Option<Instant>,
    sender: &mpsc::Sender<Made>,
) {
    while deadline.is_none_or(|deadline| Instant::now() < deadline) {
        let next = queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front();
        let Some(group) = next else { return };
        if sender.send((group, laboratory.run(group))).is_err() {
            return;
        }
    }
}
