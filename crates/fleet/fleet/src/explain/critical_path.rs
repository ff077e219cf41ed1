//! Reports the critical path of one request.

use luc_events::WaitCause;
use luc_fleet_requests::{CriticalPathPart, CriticalPaths, Exchange, PathPartKind};
use serde::Serialize;

use crate::counters::EventCount;
use crate::host_clocks::HomeClock;
use crate::joined_traces::JoinedTraces;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathPart {
    /// Begin of the part, ns after the request's begin.
    pub after_ns: u64,
    pub time_ns: u64,
    pub what: &'static str,
    pub host: String,
    /// Name of the thread.
    pub name: String,
    /// Id of the thread.
    pub thread: u32,
    /// Name of the thread's process; `None`: unknown.
    pub process: Option<String>,
    pub process_id: Option<u32>,
    /// Cause of a wait, as the table `wait` names it. Set if no recorded thread is known to have ended the wait.
    pub cause: Option<&'static str>,
    /// Sender of a message: thread and host.
    pub from: Option<String>,
    /// Whether the part is a message between two hosts.
    pub is_between_hosts: bool,
    /// Error of the part's begin and end due to clocks; `None`: unbounded.
    pub error_ns: Option<u64>,
    /// Sum of brief waits (below 1 ms) that may lie within time on a processor, ns. The trace has only sums of them.
    pub brief_waits_ns: Option<u64>,
    /// Events that the thread counted in time on a processor. Needs counters in the trace (`luc record --counters`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<EventCount>,
}

/// Reports the path of a request, from its begin to its answer; empty without an answer.
pub(super) fn report(
    joined: &JoinedTraces,
    home: &HomeClock<'_>,
    paths: &CriticalPaths<'_>,
    exchange: &Exchange,
) -> Vec<PathPart> {
    let Some(answer) = exchange.answer else {
        return Vec::new();
    };
    let path = paths.critical(&exchange.asked, &answer.last, |event| home.place(event));
    let begin_ns = exchange.asked.at_ns;
    let part = |part: &CriticalPathPart| report_part(joined, begin_ns, part);
    path.parts.iter().map(part).collect()
}

fn report_part(joined: &JoinedTraces, begin_ns: u64, part: &CriticalPathPart) -> PathPart {
    let host = joined.host(part.thread.host);
    let thread = part.thread.thread;
    let own_ns = part.own_ns.filter(|_| part.kind == PathPartKind::Running);
    let brief_waits_ns =
        own_ns.and_then(|[begin_ns, end_ns]| host.waits().brief_ns(thread.id, begin_ns, end_ns));
    let (from, is_between_hosts, error_ns) = match part.kind {
        PathPartKind::Network { from, error_ns, .. } => {
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
            PathPartKind::Running if brief_waits_ns.is_some() => "on a processor or in brief waits",
            PathPartKind::Running => "on a processor",
            PathPartKind::Runnable { .. } => "waits for a processor",
            PathPartKind::Blocked => "waits",
            PathPartKind::Network { .. } => "message",
            PathPartKind::Contradictory => "rows contradict each other",
        },
        host: host.name.clone(),
        name: host.thread_name(thread),
        thread: thread.id,
        process: process_id.map(|id| host.process_name(id, at_ns)),
        process_id,
        cause: joined.part_cause(part).map(WaitCause::name),
        from,
        is_between_hosts,
        error_ns,
        brief_waits_ns,
        counted: own_ns.map_or_else(Vec::new, |[begin_ns, end_ns]| {
            host.counted().between(thread.id, begin_ns, end_ns)
        }),
    }
}
