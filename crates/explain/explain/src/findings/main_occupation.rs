//! Main occupation of recorded processes, for traces in which little time is lost that a finding can name.

use super::actors::in_words;
use crate::actor::Actor;
use crate::report::{TimeAccount, TraceReport};

/// Minimum part of the trace's length, in tenths, for which a process does one thing.
const MIN_TENTHS: u64 = 3;

/// Returns words for what takes most of a recorded process' time. Of a whole machine nobody asks that.
pub(super) fn main_occupation(report: &TraceReport) -> Option<String> {
    let trace = &report.trace;
    if trace.filters.is_empty() && trace.command.is_empty() {
        return None;
    }
    let length_ns = trace.end_ns.saturating_sub(trace.start_ns);
    let all = || report.accounts.processes.iter().flat_map(occupations);
    let most = |is_meant: fn(&Occupation<'_>) -> bool| {
        all().filter(is_meant).max_by_key(|occupation| occupation.ns)
    };
    let is_long = |occupation: &Occupation<'_>| occupation.ns / MIN_TENTHS >= length_ns / 10;
    // Who waits for a child or a client says less than these.
    let waits_for_others = most(|occupation| occupation.cause == "futex").filter(is_long);
    let does = most(|occupation| !matches!(occupation.cause, "futex" | "poll")).filter(is_long);
    let found = [waits_for_others, does].into_iter().flatten().map(|found| found.sentence());
    let found: Vec<String> = found.collect();
    if found.is_empty() {
        return Some(most(|_| true).filter(is_long)?.sentence());
    }
    Some(found.join("; "))
}

/// A thing that a process does, by the cause of its waits; "computes" without one.
struct Occupation<'a> {
    account: &'a TimeAccount,
    cause: &'static str,
    ns: u64,
}

impl Occupation<'_> {
    fn sentence(&self) -> String {
        let actor = Actor {
            process: self.account.process.unwrap_or_default(),
            comm: self.account.comm.clone(),
            cgroup: self.account.cgroup,
        };
        let percent = self.ns.saturating_mul(100) / self.account.wall_ns.max(1);
        format!("{} {} for {percent} % of its time", in_words(&actor), words(self.cause))
    }
}

fn occupations(account: &TimeAccount) -> impl Iterator<Item = Occupation<'_>> {
    let computed_ns = account.user_ns.saturating_add(account.system_ns);
    let waits = account.blocked.iter().chain(&account.idle).map(|(&cause, &ns)| (cause, ns));
    let all = std::iter::once(("computes", computed_ns)).chain(waits);
    all.map(move |(cause, ns)| Occupation { account, cause, ns })
}

fn words(cause: &'static str) -> String {
    match cause {
        "computes" => "computes".to_owned(),
        "sleep" => "sleeps, for times that it sets itself,".to_owned(),
        "poll" => "waits for events, such as messages, signals or the end of a child,".to_owned(),
        "pipe_socket" => "waits for what comes through a pipe or a socket".to_owned(),
        "futex" => "waits for other threads (a lock, a condition, or new work)".to_owned(),
        "async_io" => "waits for completions that are not of its disk requests".to_owned(),
        cause => format!("waits in the kernel ({cause})"),
    }
}
