//! What one request's time went into.

use luc_events::Cause;
use luc_fleet_requests::{Exchange, Part, PartKind, Paths};
use serde::Serialize;

use crate::clocks::Home;
use crate::counters::EventCount;
use crate::joined::Joined;

/// A part of a request's time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathPart {
    /// When it began, ns after the request.
    pub after_ns: u64,
    /// How long it was, ns.
    pub time_ns: u64,
    pub what: &'static str,
    pub host: String,
    /// Whose: the thread's name.
    pub name: String,
    /// Whose: the thread's id.
    pub thread: u32,
    /// Its process' name; `None`: not known.
    pub process: Option<String>,
    pub process_id: Option<u32>,
    /// Of a wait that nobody of the traces is known to have ended: its cause, as the table `wait` names it.
    pub cause: Option<&'static str>,
    /// Of a message: who sent it, and where.
    pub from: Option<String>,
    /// Whether it is a message between two hosts.
    pub is_between_hosts: bool,
    /// By how much its two ends may be off, as the clocks of hosts are known to that only; `None`: not bounded.
    pub error_ns: Option<u64>,
    /// Of time on a processor: waits of less than 1 ms of the thread, of which the trace has only sums, that may be in
    /// it; their sum, ns.
    pub brief_waits_ns: Option<u64>,
    /// Of time on a processor: what the thread counted meanwhile, if its trace has counters (`luc record --counters`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<EventCount>,
}

/// The path of a request, from its begin to its answer; empty without an answer.
pub(super) fn report(
    joined: &Joined,
    home: &Home<'_>,
    paths: &Paths<'_>,
    exchange: &Exchange,
) -> Vec<PathPart> {
    let Some(answer) = exchange.answer else {
        return Vec::new();
    };
    let path = paths.critical(&exchange.asked, &answer.last, |event| home.place(event));
    let begin_ns = exchange.asked.at_ns;
    let part = |part: &Part| report_part(joined, begin_ns, part);
    path.parts.iter().map(part).collect()
}

fn report_part(joined: &Joined, begin_ns: u64, part: &Part) -> PathPart {
    let host = joined.host(part.thread.host);
    let thread = part.thread.thread;
    let own_ns = part.own_ns.filter(|_| part.kind == PartKind::Running);
    let brief_waits_ns =
        own_ns.and_then(|[begin_ns, end_ns]| host.waits().brief_ns(thread.id, begin_ns, end_ns));
    let cause = part
        .wait_off_ns
        .filter(|_| part.kind == PartKind::Blocked)
        .and_then(|off_ns| joined.cause(part.thread, off_ns));
    let (from, is_between_hosts, error_ns) = match part.kind {
        PartKind::Network { from, error_ns, .. } => {
            let sender = joined.host(from.host);
            let text = format!("{} on {}", sender.thread_name(from.thread), sender.name);
            (Some(text), from.host != part.thread.host, error_ns)
        }
        _ => (None, false, Some(0)),
    };
    let process_id = host.process_of(thread);
    let at_ns = part.own_ns.map_or(u64::MAX, |[_, end_ns]| end_ns);
    PathPart {
        after_ns: part.begin_ns.saturating_sub(begin_ns),
        time_ns: part.end_ns - part.begin_ns,
        what: match part.kind {
            PartKind::Running if brief_waits_ns.is_some() => "on a processor or in brief waits",
            PartKind::Running => "on a processor",
            PartKind::Runnable { .. } => "waits for a processor",
            PartKind::Blocked => "waits",
            PartKind::Network { .. } => "message",
            PartKind::Contradictory => "rows contradict each other",
        },
        host: host.name.clone(),
        name: host.thread_name(thread),
        thread: thread.id,
        process: process_id.map(|id| host.process_name(id, at_ns)),
        process_id,
        cause: cause.map(Cause::name),
        from,
        is_between_hosts,
        error_ns,
        brief_waits_ns,
        counted: own_ns.map_or_else(Vec::new, |[begin_ns, end_ns]| {
            host.counted().between(thread.id, begin_ns, end_ns)
        }),
    }
}
