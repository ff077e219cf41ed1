//! Judges for each wait whether the thread had nothing to do.

use std::collections::{BTreeMap, BTreeSet};

use luc_twin_truth::{Direction, Folder, Kind, Truth, WorkKind};
use serde::Serialize;

use crate::answer::Answer;
use crate::hosts::Clock;

/// Counts of waits by judgement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Waits {
    right: u64,
    /// Waits that are called idle, although the thread had something to do.
    had_work: u64,
    /// Waits that are called waits for an answer, although the thread had nothing to do.
    had_none: u64,
    unknown: u64,
    /// Planted threads that wake for nothing.
    tickers: u64,
    /// Planted threads of these that are named.
    tickers_named: u64,
}

/// Judges the waits of the twin's threads. A worker that leaves the answer to another thread is not judged. The truth
/// does not contain the time of that.
pub(super) fn count(folder: &Folder, answer: &Answer, clocks: Option<&[Clock]>) -> Waits {
    let mut waits = Waits::default();
    let mut threads: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    let mut left_out: BTreeSet<u32> = BTreeSet::new();
    for (place, process) in folder.processes.iter().enumerate() {
        let clock = clocks.map(|clocks| clocks[place]);
        let time_ns = |at_ns| clock.map_or(at_ns, |clock| clock.time_ns(at_ns));
        for (thread, times) in with_work(process) {
            let times = times.iter().map(|&(from, to)| (time_ns(from), time_ns(to)));
            threads.entry(thread).or_default().extend(times);
        }
        left_out.extend(helped(process));
    }
    for row in &answer.rows.waits {
        let Some(times) = threads.get(&row.thread).filter(|_| !left_out.contains(&row.thread))
        else {
            continue;
        };
        let has_work =
            times.iter().any(|&(from_ns, to_ns)| from_ns <= row.off_ns && row.off_ns < to_ns);
        match (has_work, row.awaits.as_str()) {
            (_, "not_known") => waits.unknown += 1,
            (true, "answer") | (false, "work") => waits.right += 1,
            (true, _) => waits.had_work += 1,
            (false, _) => waits.had_none += 1,
        }
    }
    let ticking: BTreeSet<u32> =
        answer.idle.iter().flat_map(|host| host.ticking.iter().map(|one| one.thread)).collect();
    for (_, planted) in folder.planted().filter(|(_, row)| row.kind == Kind::Tick) {
        waits.tickers += 1;
        waits.tickers_named += u64::from(ticking.contains(&planted.thread));
    }
    waits
}

/// Returns the times in which each communicating thread had something to do: a question to answer, or one that it had
/// asked.
fn with_work(process: &Truth) -> BTreeMap<u32, Vec<(u64, u64)>> {
    let mut threads: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    // By the request and whether this process asks: who began it, and when.
    let mut open: BTreeMap<(u64, bool), (u32, u64)> = BTreeMap::new();
    let mut messages: Vec<_> = process.messages().collect();
    messages.sort_by_key(|message| message.at_ns);
    for message in messages {
        threads.entry(message.thread).or_default();
        let is_sent = message.direction == Direction::Sent;
        let is_question = message.kind.is_question();
        let asks = is_sent == is_question;
        if is_question {
            open.insert((message.request, asks), (message.thread, message.at_ns));
            continue;
        }
        let Some((thread, from_ns)) = open.remove(&(message.request, asks)) else {
            continue;
        };
        // A thread that has read a question and leaves it to a worker has nothing more to do with it.
        if asks || thread == message.thread {
            threads.entry(thread).or_default().push((from_ns, message.at_ns));
        }
        if asks && thread != message.thread {
            let reader = threads.entry(message.thread).or_default();
            reader.push((from_ns, message.at_ns));
        }
    }
    // A worker that answers itself has something to do from when it takes a request from the queue.
    let answers: BTreeMap<u64, (u32, u64)> = process
        .messages()
        .filter(|one| one.direction == Direction::Sent && !one.kind.is_question())
        .map(|one| (one.request, (one.thread, one.at_ns)))
        .collect();
    for work in process.work().filter(|work| work.kind == WorkKind::Queue) {
        if let Some(&(thread, to_ns)) = answers.get(&work.request)
            && thread == work.thread
        {
            threads.entry(thread).or_default().push((work.to_ns, to_ns));
        }
    }
    threads
}

/// Returns workers whose answers another thread sends.
fn helped(process: &Truth) -> BTreeSet<u32> {
    let senders: BTreeSet<u32> = process
        .messages()
        .filter(|one| one.direction == Direction::Sent && !one.kind.is_question())
        .map(|one| one.thread)
        .collect();
    let workers = process.work().filter(|work| work.kind == WorkKind::Queue);
    let workers = workers.map(|work| work.thread);
    workers.filter(|thread| !senders.contains(thread)).collect()
}
