//! Rows that a graph is made of. Times of a trace are on its host's clock.

use luc_events::WaitCause;

use crate::graph_ids::{CallIndex, EndIndex, GraphMessageId, TraceThread};
use crate::time_span::TimeSpan;
use crate::wait_labels::LabelIndex;

/// End of a wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum WaitEnd {
    /// The recorder did not say: a waker is a thread, or an interrupt that met one. Without a waker it is a timer's
    /// interrupt, or one that met an idle processor.
    #[default]
    NotKnown,
    /// A thread ended it.
    Thread,
    /// A timer ended it.
    Timer,
    /// Another interrupt ended it: of a device, or of the network.
    Interrupt,
    /// The trace ended first. The waker is the thread that had the lock then, or the other end of the connection.
    Unfinished,
}

/// An interval in which a thread was not on a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GraphWait {
    /// Thread that was off its processor.
    pub thread: TraceThread,
    /// Time when it left its processor.
    pub off_ns: u64,
    /// Time when it was woken; `None` if it could run all along, or if that was not seen.
    pub woken_ns: Option<u64>,
    /// Time when it was on a processor again.
    pub on_ns: u64,
    /// Thread that woke it, if any.
    pub waker: Option<TraceThread>,
    /// End of the wait: by whom or by what.
    pub end: WaitEnd,
    /// Cause of the wait, by its kernel stack.
    pub cause: WaitCause,
    /// Processor that the thread then got; `None` if unknown. `u32::MAX` is no processor.
    pub processor: Option<u32>,
}

/// A send or a receive of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GraphMessage {
    /// Begin of the send, or end of the receive.
    pub at_ns: u64,
    /// Of a send: time when its last byte left the host. Of a receive: time when its last byte was at the socket. If
    /// no packet tells, it is the time of the send, and the byte may have come later.
    pub moved_ns: u64,
    /// Whether a packet tells when it moved.
    pub has_packet: bool,
    /// Thread that sent or received.
    pub thread: TraceThread,
    /// End on which it did.
    pub end: EndIndex,
    /// Whether the thread received it; otherwise it sent it.
    pub is_received: bool,
    /// Of a send: the receive of its last byte. Of a receive: the send of its last byte. `None` if no trace has it.
    pub other: Option<GraphMessageId>,
}

/// A request that one process sent to another, and its answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GraphCall {
    /// First send of the client; `None` if its host has no trace.
    pub sent: Option<GraphMessageId>,
    /// First receive of the server; `None` if its host has no trace.
    pub read: Option<GraphMessageId>,
    /// Last send of the answer by the server.
    pub done: Option<GraphMessageId>,
    /// Last receive of the answer by the client.
    pub answer: Option<GraphMessageId>,
    /// Call that this one was made for, by evidence.
    pub made_for: Option<CallIndex>,
    /// Address of the server, as the client knows it.
    pub address: Option<LabelIndex>,
}

/// A call of a thread that waits until data are safe, such as fsync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncCallSpan {
    /// Thread that made the call.
    pub thread: TraceThread,
    /// Begin and end of the system call.
    pub span: TimeSpan,
}

/// Facts about a thread that its rows do not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadFacts {
    /// Number of its process, unique in the trace.
    pub process: u32,
    /// Service of its process, as [`ServiceNames`](crate::ServiceNames) tells.
    pub service: LabelIndex,
    /// Name of the thread without the numbers of a pool.
    pub name: LabelIndex,
    /// Thread that made it, if that was seen.
    pub creator: Option<TraceThread>,
    /// Time when it began, if that was in the trace.
    pub started_ns: Option<u64>,
    /// Time when it ended, if that was in the trace.
    pub ended_ns: Option<u64>,
    /// Whether the recorder watched it: all of its waits have rows, and it ran between them.
    pub is_recorded: bool,
}

impl ThreadFacts {
    /// Returns the part of a time in which the thread existed.
    #[must_use]
    pub fn alive_in(&self, span: TimeSpan) -> TimeSpan {
        let since = span.split(self.started_ns.unwrap_or(0)).after;
        since.split(self.ended_ns.unwrap_or(u64::MAX)).before
    }
}

/// Rows of one trace, in any order.
#[derive(Debug, Clone, Default)]
pub struct TraceRows {
    /// Facts about each thread, by [`TraceThread`].
    pub threads: Vec<ThreadFacts>,
    /// Waits, also those that the end of the trace cut.
    pub waits: Vec<GraphWait>,
    /// Sends and receptions, by [`MessageIndex`](crate::MessageIndex).
    pub messages: Vec<GraphMessage>,
    /// fsyncs and the like.
    pub syncs: Vec<SyncCallSpan>,
    /// Time since which all rows are there; 0 for a whole trace. What a thread did before is unknown to those that
    /// waited for it.
    pub known_since_ns: u64,
}
