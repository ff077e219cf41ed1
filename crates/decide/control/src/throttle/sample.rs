//! What a throttling policy is shown, and what it answers.
//!
//! A *task* is whatever is frozen and thawed as one: a cgroup, or a thread of one. All sums only grow; a policy takes
//! differences. Times are nanoseconds of one clock that never goes back.

/// A task, as whoever calls the policy numbers it. A number is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

/// What may be done to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// May be frozen.
    Batch,
    /// Is never frozen, and batch steps back for it.
    Protected,
    /// Is never frozen, and nobody steps back for it.
    Ignored,
}

/// What one task has done on one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskSample {
    /// Which task.
    pub task: TaskId,
    /// What may be done to it.
    pub class: Class,
    /// Its share of the disk, against that of other batch tasks; 100 is usual.
    pub weight: u32,
    /// Whether it is frozen now, by whomever.
    pub frozen: bool,
    /// Bytes of its completed requests.
    pub bytes: u64,
    /// Number of its completed requests.
    pub requests: u64,
    /// Those of them that begin where the disk's request before ended.
    pub sequential: u64,
    /// Time its completed requests waited before they were given to the disk, ns: the paper's soft service time.
    pub queue_ns: u64,
    /// Time the disk spent on them, ns: from the later of issue and the completion before, to their completion.
    pub device_ns: u64,
    /// Its requests that are not completed, and its calls of fsync and the like in progress.
    pub outstanding: u32,
    /// When it last submitted a request or entered an fsync; 0: never.
    pub last_submit_ns: u64,
    /// Bytes that it will yet move, where somebody knows.
    pub remaining_bytes: Option<u64>,
    /// What 99 of 100 of its waits for the disk are to take at most, ns; only of a protected task.
    pub p99_ns: Option<u64>,
}

impl TaskSample {
    /// A batch task that has done nothing yet.
    #[must_use]
    pub fn new(task: TaskId) -> Self {
        Self {
            task,
            class: Class::Batch,
            weight: 100,
            frozen: false,
            bytes: 0,
            requests: 0,
            sequential: 0,
            queue_ns: 0,
            device_ns: 0,
            outstanding: 0,
            last_submit_ns: 0,
            remaining_bytes: None,
            p99_ns: None,
        }
    }
}

/// What one disk has done, for everybody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskSample {
    /// Time during which it had a request, ns.
    pub busy_ns: u64,
    /// Bytes of its completed requests.
    pub bytes: u64,
    /// Number of its completed requests.
    pub requests: u64,
    /// Requests that it has now.
    pub in_flight: u32,
    /// When its last request was completed; 0: never.
    pub last_complete_ns: u64,
}

/// A disk and the tasks that use it, at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// The moment, ns.
    pub now_ns: u64,
    /// The disk.
    pub disk: DiskSample,
    /// The tasks that exist; one that is left out has ended.
    pub tasks: &'a [TaskSample],
}

/// Why a task is frozen or thawed. Each is a name in the log and a label of the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// It is its turn, or somebody else's.
    Turn,
    /// The disk was idle, so the next may run.
    Idle,
    /// It was frozen as long as it may be.
    Starvation,
    /// The call in which it was frozen has ended: it may have nothing more to do than to exit.
    Call,
    /// It would finish later than under fair sharing.
    Slowdown,
    /// A protected task uses the disk, or no longer does.
    Protect,
    /// It is tried how the tasks do together.
    Trial,
    /// Freezing gains nothing here.
    NothingGained,
    /// The disk is not contended.
    NotContended,
    /// Somebody waits for something that the frozen task holds.
    Inversion,
    /// It reads the same files as the task whose turn it is.
    SameData,
    /// A rule of the paper (policy `wise`).
    Rule,
}

impl Reason {
    /// The name, as it is logged.
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

/// What is to be done to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Let it run.
    Thaw,
    /// Stop it.
    Freeze,
}

/// One order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// To whom.
    pub task: TaskId,
    /// What.
    pub action: Action,
    /// Why.
    pub reason: Reason,
}

/// A policy's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Orders, thaws before freezes, at most one for a task.
    pub orders: Vec<Order>,
    /// When the policy wants to look again at the latest, ns.
    pub look_again_ns: u64,
}

/// Who may run on one disk.
pub trait Policy {
    /// Looks at the disk and its tasks, and says who is to be frozen and who thawed.
    fn decide(&mut self, sample: &Sample<'_>) -> Decision;

    /// Treats two tasks as one until then: while one of them runs, so may the other. For tasks that were seen to wait
    /// for each other, or to read the same files, which is the reason. A policy without turns has no use for it.
    fn couple(&mut self, _pair: (TaskId, TaskId), _reason: Reason, _until_ns: u64) {}

    /// Somebody waits for what a frozen task holds: thaws it, and does not freeze it again at once. `None` where it is
    /// not frozen by this policy, or where the policy does not remember whom it froze.
    fn thaw_for(&mut self, _task: TaskId, _now_ns: u64) -> Option<Order> {
        None
    }
}
