//! Reports what one request's time went into, part by part.

use std::collections::HashMap;

use luc_events::WaitCause;
use luc_fleet_clocks::HostId;
use luc_fleet_requests::ThreadId;
use luc_waits::{FoundRoots, RootKind, RootPart, TimeSpan};
use serde::Serialize;

use super::fleet_requests::FleetRequests;
use super::root_words::{is_message, words};
use crate::counters::EventCount;
use crate::host_clocks::{HomeClock, error_ns};
use crate::wait_graph::host_of;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathPart {
    /// Begin of the part, ns after the request's begin.
    pub after_ns: u64,
    pub time_ns: u64,
    /// Kind of the root, as in findings.
    pub kind: &'static str,
    /// The same in words.
    pub what: &'static str,
    /// Host whose time it is.
    pub host: String,
    /// Service of the thread, or the address of a server that no trace has; empty: unknown.
    pub service: String,
    /// Name of the thread at the end of the chain of waits; empty: unknown.
    pub name: String,
    /// Id of the thread; `None`: unknown.
    pub thread: Option<u32>,
    /// Name of the thread's process; `None`: unknown.
    pub process: Option<String>,
    pub process_id: Option<u32>,
    /// Cause of the thread's wait, as the table `wait` names it.
    pub cause: Option<&'static str>,
    /// Thread and host that waited for this thread; `None`: the request itself waits.
    pub waiter: Option<String>,
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

/// Reports the parts of a request's time in order; none without an answer.
pub(super) fn report(found: &FleetRequests<'_>, home: &HomeClock<'_>, node: u32) -> Vec<PathPart> {
    let (Some(roots), Some(span)) = (found.graph.roots_of(node), found.graph.time_of(node)) else {
        return Vec::new();
    };
    let mut reporter = PathReporter { found, home, errors_ns: HashMap::new() };
    let mut after_ns = 0_u64;
    let part = |part: &RootPart| {
        let reported = reporter.part(&roots, part, span, after_ns);
        after_ns = after_ns.saturating_add(part.span.length_ns());
        reported
    };
    roots.parts.iter().map(part).collect()
}

/// Reports the parts of one request.
struct PathReporter<'f> {
    found: &'f FleetRequests<'f>,
    home: &'f HomeClock<'f>,
    /// Error of each host's clock at the time of the request.
    errors_ns: HashMap<HostId, Option<u64>>,
}

impl PathReporter<'_> {
    fn part(
        &mut self,
        roots: &FoundRoots,
        part: &RootPart,
        request: TimeSpan,
        after_ns: u64,
    ) -> PathPart {
        let joined = self.found.joined;
        let graph = &self.found.graph;
        let thread = part.thread.map(|thread| graph.thread(thread));
        let label = |thread: ThreadId| {
            let host = joined.host(thread.host);
            format!("{} {} on {}", host.thread_name(thread.thread), thread.thread.id, host.name)
        };
        let host = joined.host(thread.map_or(host_of(part.clock), |thread| thread.host));
        let process_id = thread.and_then(|thread| host.process_of(thread.thread));
        let own_ns = [part.span.from_ns(), part.span.to_ns()];
        let runs = part
            .thread
            .filter(|thread| part.root.kind == RootKind::Computes && thread.trace == part.clock);
        let runs = runs.map(|thread| graph.thread(thread).thread.id);
        let sender = part.other.filter(|_| is_message(part.root.kind));
        let sender = sender.map(|sender| graph.thread(sender));
        let between = sender.zip(thread).filter(|(sender, thread)| sender.host != thread.host);
        let waiter = roots.chain(part).last().and_then(|link| link.waiter);
        let [service, _] = graph.names_of(&part.root);
        PathPart {
            after_ns,
            time_ns: part.span.length_ns(),
            kind: part.root.kind.name(),
            what: words(part.root.kind),
            host: host.name.clone(),
            service: luc_units::plain(service),
            name: thread.map_or_else(String::new, |thread| host.thread_name(thread.thread)),
            thread: thread.map(|thread| thread.thread.id),
            process: process_id.map(|id| host.process_name(id, own_ns[1])),
            process_id,
            cause: part.cause.map(WaitCause::name),
            waiter: waiter.map(|waiter| label(graph.thread(waiter))),
            from: sender.map(label),
            is_between_hosts: between.is_some(),
            error_ns: match between {
                None => Some(0),
                Some((sender, thread)) => {
                    let errors_ns = [sender.host, thread.host];
                    let errors_ns = errors_ns.map(|host| self.error_ns(host, request));
                    errors_ns[0].zip(errors_ns[1]).map(|(a, b)| a.saturating_add(b))
                }
            },
            brief_waits_ns: runs.and_then(|id| host.waits().brief_ns(id, own_ns[0], own_ns[1])),
            counted: runs
                .map_or_else(Vec::new, |id| host.counted().between(id, own_ns[0], own_ns[1])),
        }
    }

    /// Returns the error of a host's times on the clock of the request.
    fn error_ns(&mut self, host: HostId, request: TimeSpan) -> Option<u64> {
        let home = self.home;
        *self.errors_ns.entry(host).or_insert_with(|| {
            let at_ns = home.away_ns(host, request.from_ns()).unwrap_or(request.from_ns());
            error_ns(&home.place_ns(host, at_ns)?)
        })
    }
}
