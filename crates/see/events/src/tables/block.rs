//! Block requests and the data behind them.

use super::table;
use crate::event_kinds::{DataDirection, RequestFlags, RequestKind};
use crate::{Cgroup, Dev, Inode, Pid, Tgid};

table! {
    /// A block request. Complete at `complete_ns`.
    pub struct BlockRequest in "request" by complete_ns {
        /// Disk of the request (not the partition).
        pub dev: Dev,
        /// First sector, of 512 bytes.
        pub sector: u64,
        /// Length of the request.
        pub bytes: u64,
        /// Operation of the request.
        pub kind: RequestKind,
        /// Flags of the request.
        pub flags: RequestFlags,
        /// Time when it was queued; 0 if not seen.
        pub insert_ns: u64,
        /// Time when it was given to the driver.
        pub issue_ns: u64,
        /// Time when the device had completed it.
        pub complete_ns: u64,
        /// Thread that queued it.
        pub issuer: Pid,
        /// Process of that thread.
        pub issuer_process: Tgid,
        /// Error as a positive number; 0 without one.
        pub errno: u32,
    }
}

table! {
    /// Data dirtied or written, summed over 10 ms per key (device, inode, thread, direction). Complete at `at_ns`.
    pub struct FileData in "data" by at_ns {
        /// End of the interval that is summed over.
        pub at_ns: u64,
        /// File system of the data.
        pub dev: Dev,
        /// Inode of the file.
        pub inode: Inode,
        /// Thread that dirtied or wrote it.
        pub thread: Pid,
        /// Process of the thread.
        pub process: Tgid,
        /// Cgroup of the thread.
        pub cgroup: Cgroup,
        /// Number of bytes dirtied or written.
        pub bytes: u64,
        /// Whether the data was dirtied, or the way in which it was written.
        pub direction: DataDirection,
    }
}
