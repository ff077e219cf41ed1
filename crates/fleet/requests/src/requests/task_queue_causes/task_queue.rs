//! Tasks of a queue: those that requests put, and those that calls were taken for.

use super::queue_task_times::{QueueTaskTimes, TaskPutTimes};
use crate::host_rows::ThreadIdentity;
use crate::requests::follow_threads::RequestSpan;
use crate::requests::ids::{CallPosition, RequestRank};

/// A call of the process: a task that its thread took out of the queue.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct TakenTask {
    pub(in super::super) thread: ThreadIdentity,
    pub(in super::super) asked_ns: u64,
    /// Time at which its answer had been read; without an answer, when the call was sent.
    pub(in super::super) answered_ns: u64,
    /// Whether it is the first of its connection.
    pub(in super::super) is_first: bool,
    pub(in super::super) cause: Option<RequestRank>,
    /// Whether the cause is known by the wait that its result ended.
    pub(in super::super) is_by_effect: bool,
}

/// A request of the process, whose tasks its thread put into the queue.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct PutTasks {
    pub(in super::super) thread: ThreadIdentity,
    pub(in super::super) span: RequestSpan,
    /// Whether it is the first of its connection.
    pub(in super::super) is_first: bool,
}

/// A call, and the times at which its task can have been taken.
#[derive(Debug)]
pub(super) struct QueueCall {
    pub(super) taken: QueueTaskTimes,
    pub(super) call: TakenTask,
}

/// A request, and the times at which its tasks can have been put.
#[derive(Debug)]
pub(super) struct QueueRequest {
    pub(super) put: TaskPutTimes,
    pub(super) span: RequestSpan,
    /// Calls that are known to be for it by the waits that their results ended.
    pub(super) by_effect: Vec<CallPosition>,
}

/// All that is known of the tasks of a queue.
#[derive(Debug)]
pub(super) struct TaskQueue<'a> {
    /// Calls of the process, by position.
    pub(super) calls: Vec<QueueCall>,
    /// Requests of the process, by rank.
    pub(super) requests: &'a [QueueRequest],
    /// Whether requests wait for their results in the order in which they put the tasks.
    pub(super) waits_in_order: bool,
}
