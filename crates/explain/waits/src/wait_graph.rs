//! The questions that the graph answers.

use crate::call_table::{CallTable, FollowedCall};
use crate::graph_error::WaitGraphError;
use crate::graph_ids::{CallIndex, GraphThread};
use crate::graph_rows::{GraphCall, GraphWait, TraceRows, WaitEnd};
use crate::graph_tables::GraphTables;
use crate::root_walk::RootWalk;
use crate::time_span::TimeSpan;
use crate::trace_clocks::TraceClocks;
use crate::trace_graph::TraceGraph;
use crate::wait_ender::{WaitEnder, find_wait_ender};
use crate::wait_labels::WaitLabels;
use crate::wait_root::{FoundRoots, WaitRoot};

/// The graph of waits: rows of traces, and calls between their threads.
#[derive(Debug)]
pub struct WaitGraph<'c> {
    tables: GraphTables<'c>,
    labels: WaitLabels,
}

impl<'c> WaitGraph<'c> {
    /// Builds a graph. Indices in rows that point nowhere count as unknown. One trace after the other is taken in.
    ///
    /// # Errors
    /// [`WaitGraphError`].
    pub fn new(
        traces: impl IntoIterator<Item = TraceRows>,
        calls: Vec<GraphCall>,
        labels: WaitLabels,
        clocks: Box<dyn TraceClocks + 'c>,
    ) -> Result<Self, WaitGraphError> {
        if u32::try_from(calls.len()).is_err() {
            return Err(WaitGraphError::TooManyCalls);
        }
        let traces: Result<Vec<TraceGraph>, WaitGraphError> =
            traces.into_iter().map(TraceGraph::new).collect();
        let traces = traces?;
        let calls = CallTable::new(calls, &traces);
        Ok(Self { tables: GraphTables { traces, calls, clocks }, labels })
    }

    /// Returns the roots of a thread's time, on the clock of its trace. The parts sum to it exactly.
    #[must_use]
    pub fn roots_of(&self, thread: GraphThread, span: TimeSpan) -> FoundRoots {
        RootWalk::new(&self.tables).of_thread(thread, span)
    }

    /// Returns the roots of a call's time, from its send to its answer. If the client has no trace, it is the time
    /// from the request's arrival to the server's answer. `None`: neither is known of the call.
    #[must_use]
    pub fn roots_of_call(&self, call: CallIndex) -> Option<FoundRoots> {
        let call = self.tables.call(call)?;
        let span = time_of_call(&call)?;
        Some(RootWalk::new(&self.tables).of_call(&call, span))
    }

    /// Returns the time of a call on its asker's clock, as [`WaitGraph::roots_of_call`] divides it.
    #[must_use]
    pub fn time_of_call(&self, call: CallIndex) -> Option<TimeSpan> {
        time_of_call(&self.tables.call(call)?)
    }

    /// Returns the wait of a thread around a time. One that the end of the trace cut goes on beyond it.
    #[must_use]
    pub fn wait_at(&self, thread: GraphThread, at_ns: u64) -> Option<GraphWait> {
        let trace = self.tables.trace(thread.trace)?;
        let wait = trace.waits.last_before(thread.thread, at_ns.checked_add(1)?)?;
        (at_ns < wait.on_ns || wait.end == WaitEnd::Unfinished).then_some(wait)
    }

    /// Returns the thread that ended a wait, or that it waits for when the trace ends; `None`: a timer, or unknown.
    #[must_use]
    pub fn waited_for(&self, thread: GraphThread, wait: &GraphWait) -> Option<AwaitedThread> {
        match find_wait_ender(&self.tables.traces, thread, wait) {
            WaitEnder::Message(message) => {
                let thread = self.tables.other_thread(&message)?;
                Some(AwaitedThread { thread, is_sender: true })
            }
            WaitEnder::Thread(waker) => {
                let thread = GraphThread { thread: waker, ..thread };
                Some(AwaitedThread { thread, is_sender: false })
            }
            WaitEnder::Timer | WaitEnder::Unknown(_) => None,
        }
    }

    /// Returns whether the trace has the waits of a thread, so that it ran between them.
    #[must_use]
    pub fn is_recorded(&self, thread: GraphThread) -> bool {
        self.tables.trace(thread.trace).is_some_and(|trace| trace.is_recorded(thread.thread))
    }

    /// Returns the names of the graph.
    #[must_use]
    pub fn labels(&self) -> &WaitLabels {
        &self.labels
    }

    /// Returns the service and the thread name of a root in words; empty where unknown.
    #[must_use]
    pub fn names_of(&self, root: &WaitRoot) -> [&str; 2] {
        [root.service, root.name].map(|label| label.map_or("", |label| self.labels.name(label)))
    }
}

/// Thread that another one waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AwaitedThread {
    /// The thread that is waited for.
    pub thread: GraphThread,
    /// Whether it sent the message that ended the wait; otherwise it woke the waiter, or has what that waits for.
    pub is_sender: bool,
}

/// Returns the time of a call as its asker sees it.
fn time_of_call(call: &FollowedCall) -> Option<TimeSpan> {
    match (call.sent, call.answer) {
        (Some(sent), Some(answer)) => Some(TimeSpan::new(sent.row.at_ns, answer.row.at_ns)),
        (Some(_), None) => None,
        (None, _) => {
            let (read, done) = call.read.zip(call.done)?;
            Some(TimeSpan::new(read.row.moved_ns.min(read.row.at_ns), done.row.at_ns))
        }
    }
}
