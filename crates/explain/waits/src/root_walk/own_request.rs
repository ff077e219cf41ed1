//! The request that threads of a process work for, and what they do for others.

use crate::call_table::FollowedCall;
use crate::graph_ids::{CallIndex, EndIndex, GraphMessageId, GraphThread, MessageIndex};
use crate::graph_rows::GraphMessage;
use crate::graph_tables::GraphTables;
use crate::time_span::TimeSpan;
use crate::trace_graph::TraceGraph;

/// Maximum number of messages or wake-ups that are looked at for one of another request. Of more, none is expected.
const MAX_SCANNED_EVENTS: usize = 1_000;

/// Request that a message is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageOwner {
    /// The request at hand.
    Own,
    /// Known to be of another request.
    Other,
    NotKnown,
}

/// Time of the request on one end.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnWindow {
    pub(super) end: EndIndex,
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
}

/// Request that threads of a process work for, from one of its events to the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnRequest<'r> {
    /// The request, if it is a known call.
    pub(super) call: Option<CallIndex>,
    /// Times of the request, and of the calls that were made for it.
    pub(super) windows: &'r [OwnWindow],
    /// Time of the event before.
    pub(super) from_ns: u64,
    /// Time of the event after.
    pub(super) until_ns: u64,
}

impl OwnRequest<'_> {
    /// Returns the request that a message is of.
    pub(super) fn owner_of(
        &self,
        tables: &GraphTables<'_>,
        id: GraphMessageId,
        message: &GraphMessage,
    ) -> MessageOwner {
        let is_in = |window: &OwnWindow| {
            window.end == message.end
                && window.from_ns <= message.at_ns
                && message.at_ns <= window.to_ns
        };
        let Some(role) = tables.calls.role_of(id) else {
            let is_own = self.windows.iter().any(is_in);
            return if is_own { MessageOwner::Own } else { MessageOwner::NotKnown };
        };
        let request =
            if role.is_servers { Some(role.call) } else { tables.calls.parent_of(role.call) };
        match request {
            None => MessageOwner::NotKnown,
            Some(_) if request == self.call => MessageOwner::Own,
            Some(_) => MessageOwner::Other,
        }
    }

    /// Returns whether a call may have been made for the request: not one that is known to be for another.
    pub(super) fn may_have_made(&self, call: &FollowedCall) -> bool {
        call.made_for.is_none() || call.made_for == self.call
    }

    /// Returns whether a thread sent or received for others between the two events, as far as is known.
    pub(super) fn is_beside_others(
        &self,
        tables: &GraphTables<'_>,
        trace: &TraceGraph,
        thread: GraphThread,
    ) -> bool {
        let inside = [self.from_ns.saturating_add(1), self.until_ns.saturating_sub(1)];
        let messages = trace.messages_of(thread.thread, inside).take(MAX_SCANNED_EVENTS);
        let mut owners = messages
            .map(|(index, message)| self.owner_of(tables, message_id(thread, index), message));
        owners.any(|owner| owner != MessageOwner::Own)
    }

    /// Returns the time until which a thread worked for another request, before it ended a wait of this one. The wait
    /// ends at the end of a span. The time is that of its last message of another request. Or it is that of its last
    /// wake-up of a thread that had read one.
    ///
    /// A thread that has read a request itself, and not answered it, takes none from others: it had a lock.
    pub(super) fn busy_until(
        &self,
        tables: &GraphTables<'_>,
        trace: &TraceGraph,
        thread: GraphThread,
        span: TimeSpan,
    ) -> Option<u64> {
        self.call?;
        let is_other = |call: CallIndex| Some(call) != self.call;
        if tables.calls.open_at(thread, span.to_ns()).any(is_other) {
            return None;
        }
        let inside = [span.from_ns().saturating_add(1), span.to_ns().saturating_sub(1)];
        let messages = trace.messages_of(thread.thread, inside).rev().take(MAX_SCANNED_EVENTS);
        let mut of_others = messages.filter(|(index, message)| {
            self.owner_of(tables, message_id(thread, *index), message) == MessageOwner::Other
        });
        let message_ns = of_others.next().map(|(_, message)| message.at_ns);
        let wakes = trace.waits.woken_by(thread.thread, inside).rev().take(MAX_SCANNED_EVENTS);
        let mut for_others = wakes.filter_map(|wait| {
            let woken = GraphThread { thread: wait.thread, ..thread };
            let woken_ns = wait.woken_ns?;
            tables.calls.only_open(woken, woken_ns).filter(|&call| is_other(call))?;
            Some(woken_ns)
        });
        message_ns.max(for_others.next())
    }
}

/// Returns a message of a thread's trace.
pub(super) fn message_id(thread: GraphThread, message: MessageIndex) -> GraphMessageId {
    GraphMessageId { trace: thread.trace, message }
}
