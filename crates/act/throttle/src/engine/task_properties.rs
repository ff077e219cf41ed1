//! Properties of a task that are known when it is added.

use luc_control::throttle::policy_input::TaskClass;

/// Properties of a task that are known when it is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskProperties {
    /// Permission to freeze it.
    pub class: TaskClass,
    /// Bytes that it will read and write, if known.
    pub size_bytes: Option<u64>,
    /// Target for the 99th percentile of its waits for a disk, ns; only for a protected task.
    pub p99_ns: Option<u64>,
}

impl TaskProperties {
    /// Describes a task with a known class only.
    #[must_use]
    pub fn of(class: TaskClass) -> Self {
        Self { class, size_bytes: None, p99_ns: None }
    }
}
