//! The frame of a trace: its origin, mounted file systems, losses, stacks and summaries.

use super::table;
use crate::event_kinds::SummarizedKind;
use crate::{Cgroup, Dev, StackId, Tgid, WaitCause};

table! {
    /// A file system that was mounted when it was first seen.
    pub struct MountedFileSystem in "file_system" by at_ns {
        /// Time when it was seen.
        pub at_ns: u64,
        /// `st_dev` of the file system.
        pub dev: Dev,
        /// Whole disk that it is on, as block requests name it; 0:0 for none or several.
        pub disk: Dev,
        /// Type: ext4, xfs, btrfs, ...
        pub kind: String,
        /// Mount point of the file system.
        pub mount_point: String,
        /// Mount options and super options, separated by commas.
        pub options: String,
        /// Device of the journal: the file system's own if internal, 0:0 without a journal.
        pub journal_dev: Dev,
        /// Size of the journal in blocks; 0 if there is none or it is unknown.
        pub journal_blocks: u64,
        /// Size of a block.
        pub block_bytes: u32,
        /// Whether ext4's fast_commit is on.
        pub fast_commit: bool,
    }
}

/// Kinds of file systems that another host or a program serves, but those of FUSE.
const SERVED_KINDS: [&str; 8] = ["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs", "virtiofs"];

impl MountedFileSystem {
    /// Returns whether another host or a program serves the file system, so that no disk of this host does.
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.kind.starts_with("fuse") || SERVED_KINDS.contains(&self.kind.as_str())
    }
}

table! {
    /// A kernel stack.
    pub struct KernelStack in "stack" by at_ns {
        /// Time when it was first seen.
        pub at_ns: u64,
        /// Number in this trace, from 1.
        pub id: StackId,
        /// Symbol names, leaf first, separated by semicolons.
        pub symbols: String,
    }
}

impl KernelStack {
    /// Returns the symbol names, leaf first.
    pub fn frames(&self) -> impl Iterator<Item = &str> {
        self.symbols.split(';').filter(|symbol| !symbol.is_empty())
    }
}

table! {
    /// Events that the recorder could not keep.
    pub struct LostEvents in "lost" by at_ns {
        /// Time when the loss was noticed.
        pub at_ns: u64,
        /// Number of losses since the last row of this kind.
        pub count: u64,
        /// Place of the loss: the name of a table, or `map` and the map that was full.
        pub place: String,
    }
}

table! {
    /// Counts of the summary mode over an interval: a row per key and power of two of duration.
    pub struct SummaryCount in "summary" by at_ns {
        /// End of the interval.
        pub at_ns: u64,
        /// Length of the interval.
        pub interval_ns: u64,
        /// File system or disk, if known.
        pub dev: Dev,
        /// Process; 0 for commits and requests.
        pub process: Tgid,
        /// Cgroup of the process.
        pub cgroup: Cgroup,
        /// Counted kind of event.
        pub what: SummarizedKind,
        /// Cause of the waits.
        pub cause: WaitCause,
        /// Durations of at least 2^n and less than 2^(n+1) ns; 0 also holds 0 ns.
        pub log2_ns: u32,
        /// Number of events.
        pub count: u64,
        /// Sum of the durations.
        pub total_ns: u64,
    }
}

table! {
    /// The trace itself: a row when recording begins (`end_ns` 0) and one when it ends. The last row counts.
    pub struct TraceDescription in "trace" by at_ns {
        /// Time when the row was written.
        pub at_ns: u64,
        /// Version of this vocabulary.
        pub schema_version: u32,
        /// Name of the host.
        pub host: String,
        /// Release of the kernel, as in `uname -r`.
        pub kernel: String,
        /// Number of processors online.
        pub processors: u32,
        /// CLOCK_BOOTTIME minus CLOCK_MONOTONIC at the start.
        pub boottime_offset_ns: u64,
        /// CLOCK_REALTIME minus CLOCK_MONOTONIC at the start.
        pub realtime_offset_ns: u64,
        /// Recorded command; empty without one.
        pub command: String,
        /// Filters in words; empty without any.
        pub filters: String,
        /// Mode of the recorder: `events` or `summary`.
        pub mode: String,
        /// Start of the recording.
        pub start_ns: u64,
        /// End of the recording; 0 until then, or if the recorder was killed.
        pub end_ns: u64,
    }
}
