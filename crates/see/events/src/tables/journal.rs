//! fsyncs, commits and handles.

use super::table;
use crate::event_kinds::{CommitKind, SyncKind};
use crate::{Cgroup, Dev, Inode, Pid, Tgid, Transaction};

table! {
    /// An fsync or a similar call. Complete at `exit_ns`.
    pub struct FsyncCall in "sync" by exit_ns {
        /// Thread that made the call.
        pub thread: Pid,
        /// Process of the thread.
        pub process: Tgid,
        /// Cgroup of the thread.
        pub cgroup: Cgroup,
        /// File system of the file.
        pub dev: Dev,
        /// Inode of the file.
        pub inode: Inode,
        /// Kind of the call.
        pub kind: SyncKind,
        /// Begin of the system call.
        pub enter_ns: u64,
        /// End of the system call.
        pub exit_ns: u64,
        /// Begin of the file system's own part (`ext4_sync_file_enter`); 0 if not seen.
        pub file_system_enter_ns: u64,
        /// End of that part (`ext4_sync_file_exit`); 0 if not seen.
        pub file_system_exit_ns: u64,
        /// Transaction that the file needed at the beginning (`i_sync_tid`, for fdatasync `i_datasync_tid`).
        pub wanted_enter: Transaction,
        /// Transaction that the file needed at the end: delayed allocation inside the call can change it.
        pub wanted_exit: Transaction,
        /// Error as a positive number; 0 without one.
        pub errno: u32,
        /// Processor on which the call began.
        pub cpu_enter: u32,
    }
}

table! {
    /// A commit of a jbd2 journal, or an ext4 fast commit. Complete at `end_ns`.
    ///
    /// A full commit's phases follow each other. *Locking* waits for running handles. *Flushing* submits the data of
    /// ordered mode. *Logging* waits for that data and writes the metadata and the commit record.
    pub struct JournalCommit in "commit" by end_ns {
        /// File system of the journal.
        pub dev: Dev,
        /// Transaction that was committed.
        pub transaction: Transaction,
        /// Time of the first request for it; 0 if none was seen.
        pub asked_ns: u64,
        /// Thread that made that request.
        pub asked_by: Pid,
        /// Process of the thread.
        pub asked_by_process: Tgid,
        /// Begin of the commit (`jbd2_start_commit`, `ext4_fc_commit_start`).
        pub start_ns: u64,
        /// Begin of locking the transaction (`jbd2_commit_locking`); 0 in a fast commit.
        pub locking_ns: u64,
        /// Begin of writing data (`jbd2_commit_flushing`); 0 in a fast commit.
        pub flushing_ns: u64,
        /// Begin of writing the log (`jbd2_commit_logging`); 0 in a fast commit.
        pub logging_ns: u64,
        /// End of the commit (`jbd2_end_commit`, `ext4_fc_commit_stop`).
        pub end_ns: u64,
        /// Kind of the commit: full or fast.
        pub kind: CommitKind,
        /// Number of handles in it (`jbd2_run_stats`).
        pub handles: u32,
        /// Number of metadata blocks reserved in it.
        pub blocks: u32,
        /// Number of blocks written to the journal for it.
        pub blocks_logged: u32,
        /// Number of checkpointed buffers dropped with it (`jbd2_checkpoint_stats`).
        pub dropped: u32,
    }
}

table! {
    /// A thread's handles of one kind in a transaction. Complete at `at_ns`.
    pub struct JournalHandle in "handle" by at_ns {
        /// Time when the last of these handles stopped.
        pub at_ns: u64,
        /// File system of the journal.
        pub dev: Dev,
        /// Transaction of the handles.
        pub transaction: Transaction,
        /// Thread that had the handles.
        pub thread: Pid,
        /// Process of the thread.
        pub process: Tgid,
        /// Cgroup of the thread.
        pub cgroup: Cgroup,
        /// Type of the handles (`EXT4_HT_*`).
        pub kind: u32,
        /// Source line that started the last of them.
        pub line: u32,
        /// Number of handles.
        pub count: u32,
        /// Number of metadata blocks that they reserved.
        pub requested: u32,
        /// Number of metadata blocks that they dirtied.
        pub dirtied: u32,
        /// Time that they were open in all.
        pub total_ns: u64,
    }
}
