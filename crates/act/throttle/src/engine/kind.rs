//! What a task is when it is added.

use luc_control::throttle::sample::Class;

/// What is known of a task when it is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskKind {
    /// What may be done to it.
    pub class: Class,
    /// Bytes that it will read and write, if known.
    pub size_bytes: Option<u64>,
    /// What 99 of 100 of its waits for a disk are to take at most, ns; only of class protected.
    pub p99_ns: Option<u64>,
}

impl TaskKind {
    /// One of which nothing else is known.
    #[must_use]
    pub fn of(class: Class) -> Self {
        Self { class, size_bytes: None, p99_ns: None }
    }
}
