//! fsyncs, commits and handles.

use super::table;
use crate::codes::{CommitKind, SyncKind};
use crate::{Cgroup, Dev, Inode, Pid, Tgid, Transaction};

table! {
    /// One fsync-like call. Complete at `exit_ns`.
    pub struct Sync in "sync" by exit_ns {
        /// The calling thread.
        pub thread: Pid,
        /// Its process.
        pub process: Tgid,
        /// Its cgroup.
        pub cgroup: Cgroup,
        /// The file's file system.
        pub dev: Dev,
        /// The file.
        pub inode: Inode,
        /// The call.
        pub kind: SyncKind,
        /// When the system call began.
        pub enter_ns: u64,
        /// When it ended.
        pub exit_ns: u64,
        /// When the file system's own part began (`ext4_sync_file_enter`); 0: never seen.
        pub file_system_enter_ns: u64,
        /// When it ended (`ext4_sync_file_exit`); 0: never seen.
        pub file_system_exit_ns: u64,
        /// The transaction that the file needed at the beginning (`i_sync_tid`, for fdatasync
        /// `i_datasync_tid`).
        pub wanted_enter: Transaction,
        /// The same at the end: delayed allocation inside the call can move it.
        pub wanted_exit: Transaction,
        /// 0, or the error as a positive number.
        pub errno: u32,
        /// The processor on which the call began.
        pub cpu_enter: u32,
    }
}

table! {
    /// One commit of a jbd2 journal, or one ext4 fast commit. Complete at `end_ns`.
    ///
    /// A full commit's phases follow each other: *locking* waits for running handles, *flushing*
    /// submits the data of ordered mode, *logging* waits for that data and writes the metadata and the commit record.
    pub struct Commit in "commit" by end_ns {
        /// The file system.
        pub dev: Dev,
        /// The transaction.
        pub transaction: Transaction,
        /// When the first request for it was seen; 0: none was.
        pub asked_ns: u64,
        /// The thread that made that request.
        pub asked_by: Pid,
        /// Its process.
        pub asked_by_process: Tgid,
        /// When it began (`jbd2_start_commit`, `ext4_fc_commit_start`).
        pub start_ns: u64,
        /// When it began to lock the transaction (`jbd2_commit_locking`); 0 in a fast commit.
        pub locking_ns: u64,
        /// When it began to write data (`jbd2_commit_flushing`); 0 in a fast commit.
        pub flushing_ns: u64,
        /// When it began to write the log (`jbd2_commit_logging`); 0 in a fast commit.
        pub logging_ns: u64,
        /// When it ended (`jbd2_end_commit`, `ext4_fc_commit_stop`).
        pub end_ns: u64,
        /// Full or fast.
        pub kind: CommitKind,
        /// Handles that were in it (`jbd2_run_stats`).
        pub handles: u32,
        /// Metadata blocks reserved in it.
        pub blocks: u32,
        /// Blocks written to the journal for it.
        pub blocks_logged: u32,
        /// Checkpointed buffers dropped with it (`jbd2_checkpoint_stats`).
        pub dropped: u32,
    }
}

table! {
    /// What one thread did with handles of one kind in one transaction. Complete at `at_ns`.
    pub struct Handle in "handle" by at_ns {
        /// When the last of these handles stopped.
        pub at_ns: u64,
        /// The file system.
        pub dev: Dev,
        /// The transaction.
        pub transaction: Transaction,
        /// The thread.
        pub thread: Pid,
        /// Its process.
        pub process: Tgid,
        /// Its cgroup.
        pub cgroup: Cgroup,
        /// The handles' type (`EXT4_HT_*`).
        pub kind: u32,
        /// The source line that started the last of them.
        pub line: u32,
        /// How many handles.
        pub count: u32,
        /// Metadata blocks that they reserved.
        pub requested: u32,
        /// Metadata blocks that they made dirty.
        pub dirtied: u32,
        /// How long they were open in all.
        pub total_ns: u64,
    }
}
