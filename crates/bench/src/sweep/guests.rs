//! A sweep in virtual time: its points in guests, several guests at a time.
//!
//! A guest runs points of one speed and one round, in the order of that round: `lots` deals them out, `script` is what
//! the guest does, `laboratory` boots it, `reading` understands what it left. What a lot is follows from the plan alone,
//! so a sweep that was killed makes the lots that are not whole and ends with the same figures.

mod laboratory;
mod lots;
mod reading;
mod script;
mod speed;

use std::collections::{HashSet, VecDeque};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::error::SweepError;
use super::journal::{Journal, Record};
use super::plan::Plan;
use super::points::Point;
use crate::interrupt;
use laboratory::Laboratory;
use lots::Lot;
pub(super) use speed::Speed;

/// How often an interruption is looked for.
const POLL: Duration = Duration::from_millis(100);

type Made = Result<Vec<Record>, SweepError>;

/// Makes what is missing of `records` and keeps it in `journal`. `tick` is told repeats made and wanted, and what was
/// last made.
pub(super) fn run(
    plan: &Plan,
    points: &[Point],
    out: &Path,
    luc: &Path,
    (journal, records): (&mut Journal, &[Record]),
    tick: &mut dyn FnMut(usize, usize, &str),
) -> Result<(), SweepError> {
    let Some(virtual_time) = &plan.virtual_time else {
        return Ok(());
    };
    let wanted = points.len() * virtual_time.repeats;
    let mut there: HashSet<(String, usize)> = records
        .iter()
        .map(|record| (record.key.clone(), record.round))
        .collect();
    tick(there.len(), wanted, "");
    let is_missing = |lot: &Lot| {
        let mut points = lot.points.iter();
        points.any(|point| !there.contains(&(point.key(), lot.round)))
    };
    let missing: VecDeque<Lot> = lots::deal(plan, points)
        .into_iter()
        .filter(is_missing)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let laboratory = Arc::new(Laboratory::open(plan, luc, &out.join("modules"))?);
    let queue = Arc::new(Mutex::new(missing));
    let (sender, made) = mpsc::channel();
    for _ in 0..virtual_time.jobs.max(1) {
        let (laboratory, queue, sender) = (laboratory.clone(), queue.clone(), sender.clone());
        // Not joined: a guest ends with its thread, and that with the process.
        let deadline = virtual_time.deadline;
        thread::spawn(move || worker(&laboratory, &queue, deadline, &sender));
    }
    drop(sender);
    let outcome = loop {
        match made.recv_timeout(POLL) {
            // A signal to the whole group has ended QEMU as well.
            _ if interrupt::interrupted() => break Err(SweepError::Interrupted),
            Ok(Err(error)) => break Err(error),
            Ok(Ok(records)) => {
                for record in records {
                    if there.insert((record.key.clone(), record.round)) {
                        journal.append(&record)?;
                        tick(there.len(), wanted, &record.key);
                    }
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break Ok(()),
        }
    };
    // A worker that is still at work takes no more.
    queue.lock().unwrap_or_else(PoisonError::into_inner).clear();
    outcome
}

/// Takes lots until there are no more, time is up, or nobody listens.
fn worker(
    laboratory: &Laboratory,
    queue: &Mutex<VecDeque<Lot>>,
    deadline: Option<Instant>,
    sender: &mpsc::Sender<Made>,
) {
    while deadline.is_none_or(|deadline| Instant::now() < deadline) {
        let next = queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front();
        let Some(lot) = next else { return };
        if sender.send(laboratory.run(&lot)).is_err() {
            return;
        }
    }
}
