//! What the processor's counters counted.

use super::table;
use crate::codes::CounterMode;
use crate::{Cgroup, Pid, Tgid};

table! {
    /// What a counter counted while a recorded thread ran, with `luc record --counters`: of each event a row when the
    /// thread leaves its processor and the last one is 50 ms old, when it sends or receives a message and the last one
    /// is 0.1 ms old, and when it or the recording ends. One that does not leave its processor has a row each 50 ms.
    ///
    /// Where a processor has fewer counters than there are events, these take turns: `value` is what was counted in
    /// `running_ns` of `enabled_ns`, not scaled.
    pub struct Counter in "counter" by at_ns {
        /// When the counters were read.
        pub at_ns: u64,
        /// From when on the row counts: the thread's row before, or when it first ran.
        pub since_ns: u64,
        /// The thread.
        pub thread: Pid,
        /// Its process.
        pub process: Tgid,
        /// Its cgroup.
        pub cgroup: Cgroup,
        /// The event, as `perf list` names it, in lower case.
        pub event: String,
        /// In which mode of the processor it was counted.
        pub mode: CounterMode,
        /// What was counted; of events of time nanoseconds.
        pub value: u64,
        /// For how long the thread was on a processor meanwhile.
        pub enabled_ns: u64,
        /// For how long of that the event had a counter.
        pub running_ns: u64,
    }
}
