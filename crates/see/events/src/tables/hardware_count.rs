//! Counts of the processor's counters.

use super::table;
use crate::event_kinds::CounterMode;
use crate::{Cgroup, Pid, Tgid};

table! {
    /// Counts of an event while a recorded thread ran, with `luc record --counters`. Each event has a row when the
    /// thread leaves its processor, if the last row is 50 ms old. It has one when the thread sends or receives a
    /// message, if the last row is 0.1 ms old. It also has one when the thread or the recording ends. A thread that
    /// does not leave its processor has a row every 50 ms.
    ///
    /// If a processor has fewer counters than there are events, the events take turns. `value` is then the count in
    /// `running_ns` of `enabled_ns`, not scaled.
    pub struct HardwareCount in "counter" by at_ns {
        /// Time when the counters were read.
        pub at_ns: u64,
        /// Begin of the count: the thread's row before, or its first time on a processor.
        pub since_ns: u64,
        /// Thread that was counted.
        pub thread: Pid,
        /// Process of the thread.
        pub process: Tgid,
        /// Cgroup of the thread.
        pub cgroup: Cgroup,
        /// Event, as `perf list` names it, in lower case.
        pub event: String,
        /// Mode of the processor in which it was counted.
        pub mode: CounterMode,
        /// Count; nanoseconds for events of time.
        pub value: u64,
        /// Time that the thread was on a processor.
        pub enabled_ns: u64,
        /// Part of that time in which the event had a counter.
        pub running_ns: u64,
    }
}
