//! What frames a trace: where it is from, what was mounted, what was lost, stacks and summaries.

use super::table;
use crate::codes::Summarized;
use crate::{Cause, Cgroup, Dev, StackId, Tgid};

table! {
    /// A file system that was mounted when it was first seen.
    pub struct FileSystem in "file_system" by at_ns {
        /// When it was seen.
        pub at_ns: u64,
        /// Its `st_dev`.
        pub dev: Dev,
        /// The whole disk that it is on, as block requests name it; 0:0: none or several.
        pub disk: Dev,
        /// Its type: ext4, xfs, btrfs, ...
        pub kind: String,
        /// Where it is mounted.
        pub mount_point: String,
        /// Its mount options and super options, separated by commas.
        pub options: String,
        /// The device of its journal; its own if internal, 0:0 if it has none.
        pub journal_dev: Dev,
        /// The journal's size in blocks; 0: no journal or not known.
        pub journal_blocks: u64,
        /// The size of a block.
        pub block_bytes: u32,
        /// Whether ext4's fast_commit is on.
        pub fast_commit: bool,
    }
}

table! {
    /// A kernel stack.
    pub struct Stack in "stack" by at_ns {
        /// When it was first seen.
        pub at_ns: u64,
        /// Its number in this trace, from 1.
        pub id: StackId,
        /// Symbol names, leaf first, separated by semicolons.
        pub symbols: String,
    }
}

impl Stack {
    /// The symbol names, leaf first.
    pub fn frames(&self) -> impl Iterator<Item = &str> {
        self.symbols.split(';').filter(|symbol| !symbol.is_empty())
    }
}

table! {
    /// Events that the recorder could not keep.
    pub struct Lost in "lost" by at_ns {
        /// When the loss was noticed.
        pub at_ns: u64,
        /// How many since the last such row.
        pub count: u64,
        /// Which: the table's name, or `map` and what was full.
        pub place: String,
    }
}

table! {
    /// Counts of the summary mode over one interval: one row per key and power of two of duration.
    pub struct Summary in "summary" by at_ns {
        /// The end of the interval.
        pub at_ns: u64,
        /// Its length.
        pub interval_ns: u64,
        /// The file system or disk, if known.
        pub dev: Dev,
        /// The process; for commits and requests 0.
        pub process: Tgid,
        /// Its cgroup.
        pub cgroup: Cgroup,
        /// What is counted.
        pub what: Summarized,
        /// For waits: why.
        pub cause: Cause,
        /// Durations of at least 2^n and less than 2^(n+1) ns; 0 also holds 0 ns.
        pub log2_ns: u32,
        /// How many.
        pub count: u64,
        /// Their sum.
        pub total_ns: u64,
    }
}

table! {
    /// The trace itself: one row when recording begins (`end_ns` 0) and one when it ends; the last counts.
    pub struct Trace in "trace" by at_ns {
        /// When the row was written.
        pub at_ns: u64,
        /// The version of this vocabulary.
        pub schema_version: u32,
        /// The host's name.
        pub host: String,
        /// The kernel's release, as in `uname -r`.
        pub kernel: String,
        /// Processors online.
        pub processors: u32,
        /// CLOCK_BOOTTIME minus CLOCK_MONOTONIC at the start.
        pub boottime_offset_ns: u64,
        /// CLOCK_REALTIME minus CLOCK_MONOTONIC at the start.
        pub realtime_offset_ns: u64,
        /// The command that was recorded; empty: none was given.
        pub command: String,
        /// Filters in words; empty: none.
        pub filters: String,
        /// `events` or `summary`.
        pub mode: String,
        /// When recording began.
        pub start_ns: u64,
        /// When it ended; 0: it has not, or the recorder was killed.
        pub end_ns: u64,
    }
}
