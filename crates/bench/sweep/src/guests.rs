//! A sweep in virtual time: runs its points in guests, several guests at a time.
//!
//! A guest runs points of one speed and one round, in the order of that round. `batches` deals them out, `script`
//! writes the guest's script, `runner` boots the guest, and `parse_results` parses its results.
//!
//! Batches follow from the plan alone. A sweep that was killed repeats its unfinished batches and ends with the same
//! figures. If only the best is wanted, the rounds up to each look at the figures form a stage.

mod batches;
mod parse_results;
mod runner;
mod script;

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use luc_host::available_memory::available_bytes;
use luc_host::interrupt_flag;

use super::error::SweepError;
use super::plan::SweepPlan;
use super::repeat_schedule::RepeatSchedule;
use super::results_journal::{RecordedResults, RepeatRecord, ResultsJournal};
use super::sweep_points::SweepPoint;
use crate::{RepeatProgress, Sweep};
use batches::{GuestBatch, RepeatStage};
pub(super) use parse_results::FLOWOPS;
use runner::GuestRunner;

const POLL_INTERVAL: Duration = Duration::from_millis(100);

type Made = Result<RecordedResults, SweepError>;

/// Runs the missing batches and keeps their results in `journal`.
pub(super) fn run(
    sweep: &Sweep<'_>,
    points: &[SweepPoint],
    journal: &mut ResultsJournal,
    mut results: RecordedResults,
    tick: RepeatProgress<'_>,
) -> Result<(), SweepError> {
    let &Sweep { plan, out, luc, deadline, .. } = sweep;
    let Some(virtual_time) = &plan.virtual_time else {
        return Ok(());
    };
    let is_time_up = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let mut opened = None;
    tick(results.records.len(), count_wanted(plan, points, &results), "");
    while let Some(stage) = RepeatStage::next(plan, points, &results) {
        let missing = list_missing(batches::partition(plan, points, &stage), &results);
        if missing.is_empty() || is_time_up() {
            break;
        }
        let runner = match opened.take() {
            Some(runner) => runner,
            None => {
                let runner = GuestRunner::open(plan, virtual_time, luc, &out.join("modules"))?;
                check_qemu(&results, runner.qemus(points))?;
                Arc::new(runner)
            }
        };
        opened = Some(Arc::clone(&runner));
        let jobs = limit_jobs(virtual_time.jobs, runner.memory_bytes());
        let mut keep = |made: RecordedResults| {
            for record in made.records {
                let is_same =
                    |known: &RepeatRecord| known.round == record.round && known.key == record.key;
                if results.records.iter().any(is_same) {
                    continue;
                }
                journal.append(&record)?;
                let key = record.key.clone();
                results.records.push(record);
                tick(results.records.len(), count_wanted(plan, points, &results), &key);
            }
            for failure in made.failures {
                if !results.failures.iter().any(|known| known.key == failure.key) {
                    journal.append_failure(&failure)?;
                    results.failures.push(failure);
                }
            }
            Ok(())
        };
        run_side_by_side(runner, missing, jobs, deadline, &mut keep)?;
    }
    Ok(())
}

/// Refuses to go on with repeats of another QEMU than those of `now`: their figures are not comparable.
fn check_qemu(results: &RecordedResults, now: BTreeSet<String>) -> Result<(), SweepError> {
    let mut qemus = results.records.iter().filter_map(|record| record.environment.qemu.as_ref());
    match qemus.find(|qemu| !now.contains(*qemu)) {
        Some(before) => Err(SweepError::OtherQemu {
            before: before.clone(),
            now: now.into_iter().collect::<Vec<_>>().join("; "),
        }),
        None => Ok(()),
    }
}

/// Returns the batches that are not whole: a guest that was killed is run again as a whole.
fn list_missing(batches: Vec<GuestBatch>, results: &RecordedResults) -> VecDeque<GuestBatch> {
    let there: HashSet<(&str, usize)> =
        results.records.iter().map(|record| (record.key.as_str(), record.round)).collect();
    let has_failed = |key: &str| results.failures.iter().any(|failure| failure.key == key);
    let is_missing = |batch: &GuestBatch| {
        let mut keys = batch.points.iter().map(SweepPoint::key);
        keys.any(|key| !there.contains(&(key.as_str(), batch.round)) && !has_failed(&key))
    };
    batches.into_iter().filter(is_missing).collect()
}

/// Counts repeats made and, as far as is known, still to be made.
fn count_wanted(plan: &SweepPlan, points: &[SweepPoint], results: &RecordedResults) -> usize {
    if plan.stop.best {
        return RepeatSchedule::new(plan, points, &results.records, &results.failures).wanted();
    }
    let repeats = |point: &SweepPoint| plan.repeats_of(&point.workload).unwrap_or_default();
    points.iter().map(repeats).sum()
}

/// Limits the number of guests to this machine's memory. Only the duration of the sweep depends on it.
fn limit_jobs(jobs: usize, memory_bytes: u64) -> usize {
    let fit = available_bytes().map_or(jobs as u64, |there| there / memory_bytes.max(1));
    jobs.min(fit as usize).max(1)
}

/// Runs batches in parallel guests, and passes the results of each to `keep`.
fn run_side_by_side(
    runner: Arc<GuestRunner>,
    batches: VecDeque<GuestBatch>,
    jobs: usize,
    deadline: Option<Instant>,
    keep: &mut dyn FnMut(RecordedResults) -> Result<(), SweepError>,
) -> Result<(), SweepError> {
    let queue = Arc::new(Mutex::new(batches));
    let (sender, made) = mpsc::channel();
    for _ in 0..jobs {
        let (runner, queue, sender) = (runner.clone(), queue.clone(), sender.clone());
        // Not joined: a guest ends with its thread, and the thread with the process.
        thread::spawn(move || worker(&runner, &queue, deadline, &sender));
    }
    drop(sender);
    let outcome = loop {
        match made.recv_timeout(POLL_INTERVAL) {
            // A signal to the whole group has ended QEMU as well.
            _ if interrupt_flag::interrupted() => break Err(SweepError::Interrupted),
            Ok(made) => {
                if let Err(error) = made.and_then(&mut *keep) {
                    break Err(error);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break Ok(()),
        }
    };
    // Workers finish their batch and take no further one.
    queue.lock().unwrap_or_else(PoisonError::into_inner).clear();
    outcome
}

/// Takes batches until there are no more, time is up, or nobody listens.
fn worker(
    runner: &GuestRunner,
    queue: &Mutex<VecDeque<GuestBatch>>,
    deadline: Option<Instant>,
    sender: &mpsc::Sender<Made>,
) {
    while deadline.is_none_or(|deadline| Instant::now() < deadline) {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(batch) = next else { return };
        if sender.send(runner.run(&batch)).is_err() {
            return;
        }
    }
}
