//! Indices of traces, threads, messages and calls, each a type of its own.

/// Index of a trace: the rows of one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TraceIndex(pub u32);

/// Index of a thread in its trace's list of threads. A number that the kernel used again is another thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TraceThread(pub u32);

/// A thread of any trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GraphThread {
    /// Trace that has the thread's rows.
    pub trace: TraceIndex,
    /// The thread in that trace.
    pub thread: TraceThread,
}

/// Number of an end of a connection, unique in its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndIndex(pub u32);

/// An end of a connection in any trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct GraphEnd {
    pub(crate) trace: TraceIndex,
    pub(crate) end: EndIndex,
}

/// Index of a message in its trace's list of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageIndex(pub u32);

/// A message of any trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GraphMessageId {
    /// Trace that has the row.
    pub trace: TraceIndex,
    /// The message in that trace.
    pub message: MessageIndex,
}

/// Index of a call in the graph's list of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallIndex(pub u32);
