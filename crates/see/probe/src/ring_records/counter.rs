//! Layouts of the records of threads' counters.

use super::Plain;

plain! {
    /// Count of an event.
    struct Count = "count" {
        value: u64,
        enabled_ns: u64,
        running_ns: u64,
    }

    /// Head of the [`Count`]s of a thread.
    struct Counts = "record_counts" {
        kind: u32,
        thread: u32,
        process: u32,
        reserved: u32,
        cgroup: u64,
        since_ns: u64,
        at_ns: u64,
    }
}
