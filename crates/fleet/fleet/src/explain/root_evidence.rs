//! Evidence about the time of one root: threads, causes, who waited and who took part.

use std::collections::{BTreeMap, BTreeSet};

use luc_events::WaitCause;
use luc_fleet_requests::{EndId, ThreadId};
use luc_waits::{FoundRoots, GraphThread, LinkReason, RootKind, RootPart, WaitLink, thread_class};

use super::fleet_requests::FleetRequests;
use super::root_words::is_message;
use crate::wait_graph::host_of;

/// Threads of one name of a process, by one of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WaiterName {
    /// Name of the threads without the numbers of a pool.
    pub(super) name: String,
    pub(super) cause: Option<&'static str>,
}

/// Evidence about one root's time in many requests.
#[derive(Debug, Default)]
pub(super) struct RootEvidence {
    /// Time by the thread at the end of the chain.
    pub(super) threads: BTreeMap<ThreadId, u64>,
    pub(super) causes: BTreeMap<&'static str, u64>,
    /// Time by threads of the same process that waited meanwhile.
    pub(super) waiters: BTreeMap<WaiterName, u64>,
    /// Time by who sent the message, or let a stopped thread go on.
    pub(super) others: BTreeMap<ThreadId, u64>,
    /// Ends whose messages were on their way.
    pub(super) ends: BTreeSet<EndId>,
    /// Time in which others waited for processors that the threads had.
    pub(super) kept_others_ns: u64,
    /// Bytes that disks moved meanwhile, by the owner of the data.
    pub(super) moved: BTreeMap<ThreadId, u64>,
}

impl RootEvidence {
    /// Takes in a part of a request's time.
    pub(super) fn add(&mut self, found: &FleetRequests<'_>, roots: &FoundRoots, part: &RootPart) {
        let ns = part.span.length_ns();
        let more = |sum_ns: &mut u64| *sum_ns = sum_ns.saturating_add(ns);
        let Some(charged) = part.queue.or(part.thread) else {
            return;
        };
        let who = found.graph.thread(charged);
        more(self.threads.entry(who).or_default());
        if let Some(cause) = part.cause.filter(|_| part.queue.is_none()) {
            more(self.causes.entry(cause.name()).or_default());
        }
        if part.root.kind == RootKind::Processor {
            more(&mut self.kept_others_ns);
        }
        if let Some(waiter) = waiter(found, roots, part, charged) {
            more(self.waiters.entry(waiter).or_default());
        }
        let takes_part = is_message(part.root.kind) || part.root.kind == RootKind::Stopped;
        if let Some(other) = part.other.filter(|_| takes_part) {
            more(self.others.entry(found.graph.thread(other)).or_default());
        }
        let connection = part.end.map(|end| u64::from(end.0));
        let end = connection.map(|connection| EndId { host: who.host, connection });
        self.ends.extend(end.filter(|_| is_message(part.root.kind)));
        if part.root.kind == RootKind::Device {
            self.add_moved(found, part, who);
        }
    }

    /// Adds the bytes that disks moved while a thread waited for them.
    fn add_moved(&mut self, found: &FleetRequests<'_>, part: &RootPart, who: ThreadId) {
        if host_of(part.clock) != who.host {
            return;
        }
        let host = found.joined.host(who.host);
        let (begin_ns, end_ns) = (part.span.from_ns(), part.span.to_ns());
        for (owner, bytes) in host.disks().moved(who.thread.id, begin_ns, end_ns) {
            let thread = host.tasks().thread(owner.thread, begin_ns);
            let sum = self.moved.entry(ThreadId { host: who.host, thread }).or_default();
            *sum = sum.saturating_add(bytes);
        }
    }
}

/// Finds the threads of the charged thread's process that waited for it, by the chain since the last server.
fn waiter(
    found: &FleetRequests<'_>,
    roots: &FoundRoots,
    part: &RootPart,
    charged: GraphThread,
) -> Option<WaiterName> {
    let chain = roots.chain(part);
    let is_inside = |link: &&WaitLink| {
        let waits = matches!(link.reason, LinkReason::Woke | LinkReason::Holds);
        waits && link.waiter.is_some_and(|waiter| is_same_process(found, waiter, link.other))
    };
    let of_server =
        |link: &WaitLink| matches!(link.reason, LinkReason::Answered | LinkReason::Delivered);
    let first = chain.iter().rposition(of_server).map_or(0, |at| at + 1);
    let link = chain.get(first..)?.iter().find(is_inside)?;
    let waiter = link.waiter.filter(|&waiter| is_same_process(found, waiter, charged))?;
    let waiter = found.graph.thread(waiter);
    let name = found.joined.host(waiter.host).thread_name(waiter.thread);
    Some(WaiterName {
        name: thread_class(&name).to_owned(),
        cause: link.cause.map(WaitCause::name),
    })
}

fn is_same_process(found: &FleetRequests<'_>, one: GraphThread, other: GraphThread) -> bool {
    let process = |thread| {
        let ThreadId { host, thread } = found.graph.thread(thread);
        found.joined.host(host).process_of(thread)
    };
    one.trace == other.trace && process(one).is_some() && process(one) == process(other)
}

/// Returns the key with the most time.
pub(super) fn find_most<T: Clone>(times_ns: &BTreeMap<T, u64>) -> Option<T> {
    times_ns.iter().max_by_key(|(_, ns)| **ns).map(|(what, _)| what.clone())
}
