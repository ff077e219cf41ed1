//! What is known of the tasks of a queue.

use super::super::forward::Span;
use super::times::{Puts, Times};

/// A request's number among those that the process received, in their order.
pub(super) type Rank = usize;

/// A call, for which a task was taken.
#[derive(Debug)]
pub(super) struct QueueCall {
    pub(super) taken: Times,
    pub(super) asked_ns: u64,
    pub(super) answered_ns: u64,
    pub(super) cause: Option<Rank>,
    pub(super) is_heard: bool,
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
