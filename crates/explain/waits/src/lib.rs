//! The graph of waits: rows of threads, messages and calls come in, roots of waits go out. Pure, without I/O.
//!
//! A thread waits for another one, which waits for a third. The *root* is at the end of that chain: a thread that
//! computes, a timer, a flush, a stopped process. [`WaitGraph::roots_of`] finds the roots of a thread's time, and
//! [`WaitGraph::roots_of_call`] those of a request's. The parts sum to the time exactly. What the rows do not tell is
//! [`RootKind::Unknown`], with a reason.
//!
//! # The rules
//!
//! 1. A wait's cause is its root if no thread ends it: stopped, fsync, journal, device, memory (`own_root`).
//! 2. Otherwise who ended the wait is followed over the wait: the server of a call, or the waker (`wait_ender`). A
//!    convoy on a lock thus ends at what its holder does.
//! 3. A call is on its way, lies in a queue, or is served (`root_walk::call_time`). Its data tell, not its threads.
//!    A thread that works for others while a request lies in its queue is *busy with others*.
//! 4. A message that answers no call is input: the thread had nothing to do until then.
//!
//! Rows are trusted in nothing: forged ones give unknown parts, after a bounded number of steps.
//!
//! # Where the steps are
//!
//! - `graph_rows` has the types of what comes in; `trace_threads` makes them of a trace's tables. `wait_rows` holds
//!   many waits in little memory.
//! - `trace_graph` finds the rows of one host, `call_table` the calls of all hosts; `graph_tables` has both.
//! - `root_sums` adds roots up by kind, service and thread name; `service_names` has the names. `rolling_roots` does so
//!   while rows come in.
//! - `processor_runs` says whose work a thread waited for at a processor.

mod call_table;
mod graph_error;
mod graph_ids;
mod graph_rows;
mod graph_tables;
mod number_hash;
mod own_root;
mod processor_runs;
mod rolling_roots;
mod root_sums;
mod root_walk;
mod service_names;
mod time_span;
mod trace_clocks;
mod trace_graph;
mod trace_threads;
mod wait_ender;
mod wait_graph;
mod wait_labels;
mod wait_root;
mod wait_rows;

pub use graph_error::WaitGraphError;
pub use graph_ids::{
    CallIndex, EndIndex, GraphMessageId, GraphThread, MessageIndex, TraceIndex, TraceThread,
};
pub use graph_rows::{
    GraphCall, GraphMessage, GraphWait, SyncCallSpan, ThreadFacts, TraceRows, WaitEnd,
};
pub use rolling_roots::RollingRoots;
pub use root_sums::{RootCauseTime, RootSums, RootTime};
pub use service_names::{ProcessFacts, ServiceNames, thread_class};
pub use time_span::{SplitSpan, TimeSpan};
pub use trace_clocks::{OneClock, TraceClocks};
pub use trace_threads::{ThreadTables, TraceThreads};
pub use wait_graph::{AwaitedThread, WaitGraph};
pub use wait_labels::{LabelIndex, WaitLabels};
pub use wait_root::{
    FoundRoots, LinkIndex, LinkReason, RootKind, RootPart, UnknownReason, WaitLink, WaitRoot,
};
pub use wait_rows::{TooManyWaits, WaitRows};
