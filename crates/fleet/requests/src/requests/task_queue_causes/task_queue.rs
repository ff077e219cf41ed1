//! Tasks of a queue: those that requests put, and those that calls were taken for.

use super::times::{Puts, Times};
use crate::requests::forward::RequestSpan;
use crate::requests::ids::{Position, Rank};
use crate::rows::Thread;

/// A call of the process: a task that its thread took out of the queue.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct TakenTask {
    pub(in super::super) thread: Thread,
    pub(in super::super) asked_ns: u64,
    /// Time at which its answer had been read; without an answer, when the call was sent.
    pub(in super::super) answered_ns: u64,
    /// Whether it is the first of its connection.
    pub(in super::super) is_first: bool,
    pub(in super::super) cause: Option<Rank>,
    /// Whether the cause is known by the wait that its result ended.
    pub(in super::super) is_by_effect: bool,
}

/// A request of the process, whose tasks its thread put into the queue.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct PutTasks {
    pub(in super::super) thread: Thread,
    pub(in super::super) span: RequestSpan,
    /// Whether it is the first of its connection.
    pub(in super::super) is_first: bool,
}

/// A call, and the times at which its task can have been taken.
#[derive(Debug)]
pub(super) struct QueueCall {
    pub(super) taken: Times,
    pub(super) call: TakenTask,
}

/// A request, and the times at which its tasks can have been put.
#[derive(Debug)]
pub(super) struct QueueRequest {
    pub(super) put: Puts,
    pub(super) span: RequestSpan,
    /// Calls that are known to be for it by the waits that their results ended.
    pub(super) by_effect: Vec<Position>,
}

/// All that is known of the tasks of a queue.
#[derive(Debug)]
pub(super) struct Queue<'a> {
    /// Calls of the process, by position.
    pub(super) calls: Vec<QueueCall>,
    /// Requests of the process, by rank.
    pub(super) requests: &'a [QueueRequest],
    /// Whether requests wait for their results in the order in which they put the tasks.
    pub(super) waits_in_order: bool,
}
