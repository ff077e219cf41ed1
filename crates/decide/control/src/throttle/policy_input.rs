//! Input and output of a throttling policy.
//!
//! A *task* is a unit that is frozen and thawed as one: a cgroup, or a thread of one. All sums only grow, and a policy
//! takes differences. Times are nanoseconds of one monotonic clock.

/// Number of a task, given by the caller of the policy. It is never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

/// Permission to freeze a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TaskClass {
    /// The task may be frozen.
    #[default]
    Batch,
    /// The task is never frozen, and batch steps back for it.
    Protected,
    /// The task is never frozen, and no other task steps back for it.
    Ignored,
}

/// Activity of one task on one disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskSample {
    /// The task that was sampled.
    pub task: TaskId,
    /// Permission to freeze the task.
    pub class: TaskClass,
    /// Its share of the disk relative to other batch tasks; 100 is usual.
    pub weight: u32,
    /// Whether it is frozen now, by anyone.
    pub frozen: bool,
    /// Bytes of its completed requests.
    pub bytes: u64,
    /// Number of its completed requests.
    pub requests: u64,
    /// Number of those requests that begin where the disk's previous request ended.
    pub sequential: u64,
    /// Time that its completed requests waited before they were given to the disk, ns: the paper's soft service time.
    pub queue_ns: u64,
    /// Time that the disk spent on them, ns. It runs from the later of issue and previous completion to their
    /// completion.
    pub device_ns: u64,
    /// Number of its incomplete requests, plus its calls of fsync and the like in progress.
    pub outstanding: u32,
    /// Time at which it last submitted a request or entered an fsync, ns; 0: never.
    pub last_submit_ns: u64,
    /// Bytes that it has yet to move, if known.
    pub remaining_bytes: Option<u64>,
    /// Target for the 99th percentile of its waits for the disk, ns; only for a protected task.
    pub p99_ns: Option<u64>,
}

impl TaskSample {
    /// Creates the sample of a batch task that has done nothing yet.
    #[must_use]
    pub fn new(task: TaskId) -> Self {
        Self { task, weight: 100, ..Self::default() }
    }
}

/// Activity of one disk, for all tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskSample {
    /// Time during which it had a request, ns.
    pub busy_ns: u64,
    /// Bytes of its completed requests.
    pub bytes: u64,
    /// Number of its completed requests.
    pub requests: u64,
    /// Number of requests that it has now.
    pub in_flight: u32,
    /// Time of its last completion, ns; 0: never.
    pub last_complete_ns: u64,
}

/// A disk and the tasks that use it, at one moment.
#[derive(Clone, Copy, Debug)]
pub struct ThrottleSample<'a> {
    /// Time of the sample, ns.
    pub now_ns: u64,
    /// Activity of the disk.
    pub disk: DiskSample,
    /// Tasks that exist. A task that is left out has ended.
    pub tasks: &'a [TaskSample],
}

/// Reason for a freeze or a thaw. Each has a name in the log, which is also a label of the metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FreezeReason {
    /// It is the turn of this task or of another.
    #[default]
    Turn,
    /// The disk was idle, so the next task may run.
    Idle,
    /// The task was frozen as long as allowed.
    Starvation,
    /// The call in which it was frozen has ended: it may only have to exit.
    Call,
    /// It would finish later than under fair sharing.
    Slowdown,
    /// A protected task uses the disk, or no longer does.
    Protect,
    /// A trial shows how the tasks do together.
    Trial,
    /// Freezing gains nothing here.
    NothingGained,
    /// The disk is not contended.
    NotContended,
    /// Another task waits for something that the frozen task holds.
    Inversion,
    /// It reads the same files as the task whose turn it is.
    SameData,
    /// A rule of the paper (policy `wise`).
    Rule,
}

impl FreezeReason {
    /// Name of the reason in the log.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Idle => "idle",
            Self::Starvation => "starvation",
            Self::Call => "call",
            Self::Slowdown => "slowdown",
            Self::Protect => "protect",
            Self::Trial => "trial",
            Self::NothingGained => "nothing-gained",
            Self::NotContended => "not-contended",
            Self::Inversion => "inversion",
            Self::SameData => "same-data",
            Self::Rule => "rule",
        }
    }
}

/// Change to a task's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FreezeAction {
    /// Lets the task run.
    Thaw,
    /// Stops the task on its way to user space.
    Freeze,
}

/// Freeze or thaw of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreezeOrder {
    /// Task that is frozen or thawed.
    pub task: TaskId,
    /// Whether to freeze or to thaw.
    pub action: FreezeAction,
    /// Reason for the order.
    pub reason: FreezeReason,
}

/// Answer of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThrottleDecision {
    /// Orders, thaws before freezes, at most one for each task.
    pub orders: Vec<FreezeOrder>,
    /// Latest time of the next look, ns.
    pub look_again_ns: u64,
}

/// Decides which tasks may run on one disk.
pub trait ThrottlePolicy {
    /// Looks at the disk and its tasks, and orders freezes and thaws.
    fn decide(&mut self, sample: &ThrottleSample<'_>) -> ThrottleDecision;

    /// Treats two tasks as one until `until_ns`: while one of them runs, so may the other. For tasks that wait for each
    /// other or read the same files, which is the `reason`. A policy without turns ignores it.
    fn couple(&mut self, _pair: (TaskId, TaskId), _reason: FreezeReason, _until_ns: u64) {}

    /// Thaws a frozen task because another task waits for what it holds, and does not freeze it again at once. `None`
    /// if this policy did not freeze it, or does not remember.
    fn thaw_for(&mut self, _task: TaskId, _now_ns: u64) -> Option<FreezeOrder> {
        None
    }
}
