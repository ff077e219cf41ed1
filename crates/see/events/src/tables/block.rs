//! Block requests and the data behind them.

use super::table;
use crate::codes::{Direction, RequestFlags, RequestKind};
use crate::{Cgroup, Dev, Inode, Pid, Tgid};

table! {
    /// One block request. Complete at `complete_ns`.
    pub struct Request in "request" by complete_ns {
        /// The disk (not the partition).
        pub dev: Dev,
        /// Its first sector, of 512 bytes.
        pub sector: u64,
        /// Its length.
        pub bytes: u64,
        /// What it does.
        pub kind: RequestKind,
        /// Its flags.
        pub flags: RequestFlags,
        /// When it was queued; 0: not seen.
        pub insert_ns: u64,
        /// When it was given to the driver.
        pub issue_ns: u64,
        /// When the device had completed it.
        pub complete_ns: u64,
        /// The thread that queued it.
        pub issuer: Pid,
        /// That thread's process.
        pub issuer_process: Tgid,
        /// 0, or the error as a positive number.
        pub errno: u32,
    }
}

table! {
    /// Data made dirty or written, summed over 10 ms per key (device, inode, thread, direction).
    /// Complete at `at_ns`.
    pub struct Data in "data" by at_ns {
        /// The end of the interval that is summed over.
        pub at_ns: u64,
        /// The file system.
        pub dev: Dev,
        /// The file.
        pub inode: Inode,
        /// The thread that dirtied or wrote it.
        pub thread: Pid,
        /// Its process.
        pub process: Tgid,
        /// Its cgroup.
        pub cgroup: Cgroup,
        /// How much.
        pub bytes: u64,
        /// Which way.
        pub direction: Direction,
    }
}
