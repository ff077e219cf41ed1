//! Tables that a walk looks into.

use crate::call_table::{CallTable, FollowedCall, PlacedMessage, placed};
use crate::graph_ids::{CallIndex, GraphThread, TraceIndex};
use crate::trace_clocks::TraceClocks;
use crate::trace_graph::TraceGraph;
use crate::wait_root::{RootKind, WaitRoot};

/// The rows of all traces, their calls and their clocks.
#[derive(Debug)]
pub(crate) struct GraphTables<'c> {
    pub(crate) traces: Vec<TraceGraph>,
    pub(crate) calls: CallTable,
    pub(crate) clocks: Box<dyn TraceClocks + 'c>,
}

impl GraphTables<'_> {
    pub(crate) fn trace(&self, trace: TraceIndex) -> Option<&TraceGraph> {
        self.traces.get(trace.0 as usize)
    }

    pub(crate) fn call(&self, call: CallIndex) -> Option<FollowedCall> {
        self.calls.call(call, &self.traces)
    }

    /// Returns the thread at the other side of a message.
    pub(crate) fn other_thread(&self, message: &PlacedMessage) -> Option<GraphThread> {
        placed(message.row.other?, &self.traces).map(|other| other.graph_thread())
    }

    /// Returns the root of a kind at a thread.
    pub(crate) fn root_at(&self, kind: RootKind, thread: GraphThread) -> WaitRoot {
        let facts = self.trace(thread.trace).and_then(|trace| trace.facts(thread.thread));
        WaitRoot {
            kind,
            service: facts.map(|facts| facts.service),
            name: facts.map(|facts| facts.name),
        }
    }

    /// Returns whether two threads are of one process of one host.
    pub(crate) fn is_same_process(&self, a: GraphThread, b: GraphThread) -> bool {
        let trace = self.trace(a.trace).filter(|_| a.trace == b.trace);
        trace.is_some_and(|trace| trace.is_same_process(a.thread, b.thread))
    }
}
