//! Reports threads without work.

use std::collections::{BTreeMap, BTreeSet};

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{EngagedTimes, SleepingThread, ThreadId, ThreadWait, WaitPurpose, ticks};
use serde::Serialize;

use super::fleet_requests::FleetRequests;
use crate::wait_causes::may_be_input;

/// Threads of one host that had nothing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IdleThreads {
    pub host: String,
    /// Total time that threads waited for work, ns.
    pub for_work_ns: u64,
    /// Total time that threads waited for others while a request was open, ns.
    pub for_answers_ns: u64,
    /// Number of threads that waited for work or for others.
    pub threads: u64,
    /// Number of threads that only waited for work.
    pub without_work: u64,
    /// Number of threads without work that slept from before the trace until after it.
    pub asleep: u64,
    /// Threads that repeatedly wake and find nothing to do, the most frequent first.
    pub ticking: Vec<TickingThread>,
}

/// Thread that repeatedly wakes for nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TickingThread {
    pub name: String,
    pub thread: u32,
    pub process: String,
    pub process_id: Option<u32>,
    /// Number of wake-ups without work.
    pub times: u64,
    /// Median time between two of these wake-ups, ns.
    pub period_ns: u64,
}

/// A wait for input, a lock or another thread, for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AwaitedRow {
    pub host: String,
    pub thread: u32,
    /// Begin of the wait, CLOCK_MONOTONIC of the host.
    pub off_ns: u64,
    pub woken_ns: Option<u64>,
    /// Purpose of the wait: `work`, `answer` or `not_known`.
    pub awaits: &'static str,
}

/// Name in `--json` of what a thread waits for.
pub(crate) fn word(awaits: WaitPurpose) -> &'static str {
    match awaits {
        WaitPurpose::Work => "work",
        WaitPurpose::Answer => "answer",
        WaitPurpose::NotKnown => "not_known",
    }
}

/// Sums over the waits of one host.
#[derive(Debug, Default)]
struct Sums {
    for_work_ns: u64,
    for_answers_ns: u64,
    threads: BTreeSet<ThreadId>,
    with_work: BTreeSet<ThreadId>,
    asleep: u64,
}

pub(super) fn report(found: &FleetRequests<'_>, engaged: &EngagedTimes) -> Vec<IdleThreads> {
    let joined = found.joined;
    let mut sums: BTreeMap<HostId, Sums> = BTreeMap::new();
    for wait in joined.rows.waits.iter() {
        let Some((awaits, woken_ns)) = engaged.awaits(&wait).zip(wait.woken_ns) else {
            continue;
        };
        let sums = sums.entry(wait.host).or_default();
        let thread = wait.thread_id();
        sums.threads.insert(thread);
        let sum_ns = match awaits {
            WaitPurpose::Work => &mut sums.for_work_ns,
            WaitPurpose::Answer => {
                sums.with_work.insert(thread);
                &mut sums.for_answers_ns
            }
            WaitPurpose::NotKnown => {
                sums.with_work.insert(thread);
                continue;
            }
        };
        *sum_ns = sum_ns.saturating_add(woken_ns.saturating_sub(wait.off_ns));
    }
    let is_for_others = |sleeper: &SleepingThread| {
        let waits = joined.host(sleeper.host).waits();
        waits.asleep(sleeper.thread.id, sleeper.at_ns).is_some_and(may_be_input)
    };
    for sleeper in &joined.rows.sleepers {
        let sums = sums.entry(sleeper.host).or_default();
        let before_ns = joined.host(sleeper.host).trace.start_ns;
        let is_all_along = sleeper.since_ns.is_some_and(|since_ns| since_ns < before_ns)
            && is_for_others(sleeper)
            && !found.histories.acts_after(sleeper.thread_id(), before_ns);
        if is_all_along && sums.threads.insert(sleeper.thread_id()) {
            sums.asleep += 1;
        }
    }
    let mut ticking: BTreeMap<HostId, Vec<TickingThread>> = BTreeMap::new();
    for one in ticks(&found.histories, engaged) {
        let (host, thread) = (joined.host(one.thread.host), one.thread.thread);
        let process_id = host.process_of(thread);
        ticking.entry(one.thread.host).or_default().push(TickingThread {
            name: host.thread_name(thread),
            thread: thread.id,
            process: host.any_process_name(process_id),
            process_id,
            times: one.times,
            period_ns: one.period_ns,
        });
    }
    let of_host = |(host, sums): (HostId, Sums)| IdleThreads {
        host: joined.name(host),
        for_work_ns: sums.for_work_ns,
        for_answers_ns: sums.for_answers_ns,
        threads: sums.threads.len() as u64,
        without_work: (sums.threads.len() - sums.with_work.len()) as u64,
        asleep: sums.asleep,
        ticking: ticking.remove(&host).unwrap_or_default(),
    };
    sums.into_iter().map(of_host).collect()
}

/// Lists each wait for input, a lock or another thread.
pub(super) fn rows(found: &FleetRequests<'_>, engaged: &EngagedTimes) -> Vec<AwaitedRow> {
    let joined = found.joined;
    let row = |wait: ThreadWait| {
        Some(AwaitedRow {
            host: joined.name(wait.host),
            thread: wait.thread.id,
            off_ns: wait.off_ns,
            woken_ns: wait.woken_ns,
            awaits: word(engaged.awaits(&wait)?),
        })
    };
    joined.rows.waits.iter().filter_map(row).collect()
}
