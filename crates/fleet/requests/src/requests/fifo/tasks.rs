//! What is known of the tasks of a queue.

use super::super::forward::Span;
use super::times::{Puts, Times};
use crate::rows::Thread;

/// A request's number among those that the process received, in their order.
pub(super) type Rank = usize;

/// A call of the process.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Call {
    pub(in super::super) thread: Thread,
    pub(in super::super) asked_ns: u64,
    /// When its answer had been read; without one, when it was sent.
    pub(in super::super) answered_ns: u64,
    /// Whether it is the first of its connection.
    pub(in super::super) is_first: bool,
    /// The request that it is known to be for.
    pub(in super::super) cause: Option<Rank>,
    /// Whether it is known by whose wait its result ended.
    pub(in super::super) is_heard: bool,
}

/// A request of the process.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Request {
    pub(in super::super) thread: Thread,
    pub(in super::super) span: Span,
    /// Whether it is the first of its connection.
    pub(in super::super) is_first: bool,
}

/// A call, for which a task was taken.
#[derive(Debug)]
pub(super) struct QueueCall {
    pub(super) taken: Times,
    pub(super) call: Call,
}

/// A request, whose tasks were put.
#[derive(Debug)]
pub(super) struct QueueRequest {
    pub(super) put: Puts,
    pub(super) span: Span,
    /// Calls that are known to be for it by whose wait their results ended.
    pub(super) heard: Vec<usize>,
}

/// What is known of the tasks of a queue.
#[derive(Debug)]
pub(super) struct Queue<'a> {
    pub(super) calls: Vec<QueueCall>,
    pub(super) requests: &'a [QueueRequest],
    /// Whether requests wait for their results in the order in which they put the tasks.
    pub(super) waits_in_order: bool,
}
