//! Makes the graph of waits of the rows of all hosts.
//!
//! `graph_threads` collects the threads of a host while its trace is read. `packet_times` finds the times of messages
//! before the packets go. [`FleetWaitGraph`] has the rest: waits, messages and calls as `luc_waits` wants them.

mod graph_calls;
mod graph_clocks;
mod graph_messages;
mod graph_threads;
mod packet_times;

use std::ops::Range;

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{HostWaits, MatchedMessages, Requests, ThreadId, ThreadIdentity};
use luc_waits::{
    CallIndex, FoundRoots, GraphThread, GraphWait, TimeSpan, TraceIndex, TraceRows, WaitEnd,
    WaitGraph, WaitLabels, WaitRoot,
};

use crate::error::FleetError;
use crate::joined_traces::JoinedTraces;
use graph_calls::NodeCalls;
use graph_clocks::GraphClocks;
use graph_messages::HostMessages;
pub(crate) use graph_threads::GraphThreads;
pub(crate) use packet_times::packet_times;

/// The graph of waits of all hosts, asked by requests and threads of the fleet.
#[derive(Debug)]
pub(crate) struct FleetWaitGraph<'a> {
    joined: &'a JoinedTraces,
    graph: WaitGraph<'a>,
    calls: NodeCalls,
}

impl<'a> FleetWaitGraph<'a> {
    /// Builds the graph.
    ///
    /// # Errors
    /// [`FleetError::WaitGraph`].
    pub(crate) fn new(
        joined: &'a JoinedTraces,
        messages: &MatchedMessages,
        requests: &Requests,
    ) -> Result<Self, FleetError> {
        let mut labels = WaitLabels::default();
        let ranges = rows_of_hosts(joined);
        let calls = {
            let hosts: Vec<HostMessages<'_>> =
                ranges.iter().map(|rows| HostMessages::new(joined, rows.clone())).collect();
            NodeCalls::new(joined, requests, &hosts, &mut labels)
        };
        let facts: Vec<_> =
            joined.hosts.iter().map(|host| host.threads.facts(&mut labels)).collect();
        let rows = (0..).map(HostId).zip(facts).map(|(host, threads)| TraceRows {
            threads,
            waits: waits(joined, host),
            messages: graph_messages::messages(joined, messages, &ranges, host),
            syncs: joined.host(host).threads.syncs().to_vec(),
            known_since_ns: 0,
        });
        let clocks = GraphClocks::new(&joined.clocks, joined.hosts.len());
        let graph = WaitGraph::new(rows, calls.calls(), labels, Box::new(clocks))?;
        Ok(Self { joined, graph, calls })
    }

    /// Returns the time of a request from its send to its answer; `None` without an answer. If the client has no
    /// trace, it begins when the request arrived.
    pub(crate) fn time_of(&self, node: u32) -> Option<TimeSpan> {
        self.graph.time_of_call(self.call(node)?)
    }

    /// Returns the roots of a request's time. `node` is its number in the forest of requests.
    pub(crate) fn roots_of(&self, node: u32) -> Option<FoundRoots> {
        self.graph.roots_of_call(self.call(node)?)
    }

    /// Returns the service and the thread name of a root; empty where unknown.
    pub(crate) fn names_of(&self, root: &WaitRoot) -> [&str; 2] {
        self.graph.names_of(root)
    }

    /// Returns the thread of a graph's thread.
    pub(crate) fn thread(&self, thread: GraphThread) -> ThreadId {
        let host = HostId(thread.trace.0);
        let about = self.joined.host(host);
        let (number, at_ns) = about.threads.number_and_time(thread.thread);
        let thread = about.tasks().thread(number, at_ns.unwrap_or(about.trace.start_ns));
        ThreadId { host, thread }
    }

    /// Returns the wait of a thread around a time.
    pub(crate) fn wait_at(&self, thread: ThreadId, at_ns: u64) -> Option<GraphWait> {
        self.graph.wait_at(self.graph_thread(thread)?, at_ns)
    }

    /// Returns the thread that ended a wait, and whether it sent a message.
    pub(crate) fn waited_for(
        &self,
        thread: ThreadId,
        wait: &GraphWait,
    ) -> Option<(ThreadId, bool)> {
        let other = self.graph.waited_for(self.graph_thread(thread)?, wait)?;
        Some((self.thread(other.thread), other.is_sender))
    }

    /// Returns whether a thread has rows of its own.
    pub(crate) fn is_recorded(&self, thread: ThreadId) -> bool {
        self.graph_thread(thread).is_some_and(|thread| self.graph.is_recorded(thread))
    }

    fn graph_thread(&self, thread: ThreadId) -> Option<GraphThread> {
        let known = self.joined.host(thread.host).threads.known(thread.thread)?;
        Some(GraphThread { trace: TraceIndex(thread.host.0), thread: known })
    }

    fn call(&self, node: u32) -> Option<CallIndex> {
        self.calls.of_node(node)
    }
}

/// Returns the host of a trace.
pub(crate) fn host_of(trace: TraceIndex) -> HostId {
    HostId(trace.0)
}

/// Returns the places of each host's messages, which come host by host.
fn rows_of_hosts(joined: &JoinedTraces) -> Vec<Range<usize>> {
    let messages = &joined.rows.messages;
    let first = |host: usize| messages.partition_point(|row| (row.host.0 as usize) < host);
    (0..joined.hosts.len()).map(|host| first(host)..first(host + 1)).collect()
}

/// Returns the waits of a host, with those that the end of the trace cut.
fn waits(joined: &JoinedTraces, host: HostId) -> Vec<GraphWait> {
    let about = joined.host(host);
    let count = joined.rows.waits.host(host).map_or(0, |waits| HostWaits::iter(waits).len());
    let mut waits = Vec::with_capacity(count + about.threads.unfinished().len());
    let known = |thread: ThreadIdentity| about.threads.known(thread);
    for (row, cause) in joined.waits_of(host) {
        let is_preempted = cause == luc_events::WaitCause::Preempted;
        let Some(thread) = known(row.thread) else { continue };
        waits.push(GraphWait {
            thread,
            off_ns: row.off_ns,
            // Nobody was seen to wake it: it waited all along.
            woken_ns: (!is_preempted)
                .then(|| row.woken_ns.map_or(row.on_ns, |woken_ns| woken_ns.max(row.off_ns))),
            on_ns: row.on_ns,
            waker: row.waker.and_then(known),
            end: WaitEnd::NotKnown,
            cause,
            processor: row.processor,
        });
    }
    waits.extend_from_slice(about.threads.unfinished());
    waits
}
