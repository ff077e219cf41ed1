//! Causes of a thread's sleep, by the symbol names of its kernel stack.
//!
//! Rules are tried in order; the first that matches gives the cause. The order matters. Waiting for journal space calls
//! `jbd2_log_wait_commit` too, so the checkpoint rule comes first. Mere sleeping (`io_schedule`,
//! `rwsem_down_write_slowpath`) decides only if no rule above matches. Symbols are those of Linux 5.15 to 6.18.
//! Compiler suffixes (`.isra.0`) and offsets (`+0x1f`) are ignored.

use crate::event_kinds::codes;

codes! {
    /// The reason why a thread was not running.
    pub enum WaitCause {
        /// No known cause.
        #[default]
        Other = 0 "other",
        /// A journal commit (`jbd2_log_wait_commit`; XFS and btrfs: their logs).
        CommitWait = 1 "commit_wait",
        /// Data on its way to the disk (`folio_wait_writeback`).
        DataWriteback = 2 "data_writeback",
        /// A metadata buffer that a commit is writing to the journal (`do_get_write_access`): the
        /// paper's file write delay.
        ShadowBuffer = 3 "shadow_buffer",
        /// A transaction that takes no more handles (`wait_transaction_locked`).
        TransactionLocked = 4 "transaction_locked",
        /// Journal space that a checkpoint must free (`__jbd2_log_wait_for_space`).
        Checkpoint = 5 "checkpoint",
        /// An inode's lock, under a call on a file.
        InodeLock = 6 "inode_lock",
        /// A directory's lock, under a call on a name.
        DirectoryLock = 7 "directory_lock",
        /// The writer is slowed down because there is too much dirty data (`balance_dirty_pages`).
        DirtyThrottle = 8 "dirty_throttle",
        /// A block request, or a place in the device's queue.
        Device = 9 "device",
        /// An ext4 fast commit (`ext4_fc_*`, `jbd2_fc_*`).
        FastCommit = 10 "fast_commit",
        /// A flush of the device's cache outside a commit (`blkdev_issue_flush`).
        Flush = 11 "flush",
        /// A futex: locks and condition variables of user space.
        Futex = 12 "futex",
        /// A sleep or a kernel thread without work.
        Sleep = 13 "sleep",
        /// Waiting for any of several files or for signals or children (`poll`, `epoll_wait`, `wait4`).
        Poll = 14 "poll",
        /// A pipe or a socket.
        PipeSocket = 15 "pipe_socket",
        /// Another thread had the processor while it was runnable.
        Preempted = 16 "preempted",
        /// A page fault of the thread.
        PageFault = 17 "page_fault",
        /// A commit that waits for running handles (`jbd2_journal_wait_updates`).
        Updates = 18 "updates",
        /// Another lock of the kernel.
        KernelLock = 19 "kernel_lock",
        /// A frozen cgroup: by `luc throttle`, a container runtime or another program. It is read from the thread's own
        /// bit, because compilers hide `do_freezer_trap` in its stack.
        Frozen = 20 "frozen",
        /// Stopped by a signal (SIGSTOP, SIGTSTP) or a debugger. It is read from the thread's state, not its stack.
        Stopped = 21 "stopped",
        /// A cgroup that had used up its quota of processor time (`cpu.max`): from when the thread left its processor,
        /// or was woken, until it ran again. It is read from the scheduler's own count, not the stack.
        Throttled = 22 "throttled",
        /// A lock of a file, by `flock`, `fcntl` or a lease.
        Flock = 23 "flock",
        /// A pipe that is full until its reader reads.
        FullPipe = 24 "full_pipe",
        /// Whoever serves a file system: a program (FUSE), or another host (NFS, SMB, 9p, Ceph).
        FileServer = 25 "file_server",
        /// Memory that the kernel must free first: the cgroup is at its limit (`memory.high`, `memory.max`), or the
        /// machine has none left.
        MemoryLimit = 26 "memory_limit",
        /// Completions of asynchronous calls (`io_getevents`, `io_uring_enter`): for files, sockets or timers.
        AsyncIo = 27 "async_io",
        /// A block request that no disk has yet: a limit (`io.max`) or a scheduler holds it back. No recorder says so,
        /// but the analysis does.
        HeldBack = 28 "held_back",
    }
}

/// A pattern of symbols: a name, or with a `*` at its end all names that begin so.
type Symbols = &'static [&'static str];

/// Holds when the stack has one symbol of each list, in any order.
struct Rule {
    cause: WaitCause,
    all: &'static [Symbols],
}

/// Sleeping until a bit of a buffer or page changes, as opposed to allocating memory or the like.
const BIT_WAITS: Symbols = &["out_of_line_wait_on_bit", "__wait_on_bit", "bit_wait*"];
/// Sleeping for a lock of the kernel.
const LOCKS: Symbols = &[
    "rwsem_down_read_slowpath",
    "rwsem_down_write_slowpath",
    "down_read*",
    "down_write*",
    "__mutex_lock*",
    "mutex_lock*",
    "__down*",
    "percpu_rwsem_wait",
    "__percpu_down_read",
    "percpu_down_write",
];
/// Calls on names, which lock directories.
const NAME_CALLS: Symbols = &[
    "path_openat",
    "open_last_lookups",
    "lookup_slow",
    "filename_create",
    "do_unlinkat",
    "do_rmdir",
    "do_mkdirat",
    "do_mknodat",
    "do_linkat",
    "do_symlinkat",
    "do_renameat2",
    "lock_rename*",
    "iterate_dir",
];
/// Calls on files, which lock inodes.
const FILE_CALLS: Symbols = &[
    "vfs_write",
    "vfs_iter_write",
    "vfs_writev",
    "do_iter_write",
    "ext4_*",
    "xfs_*",
    "btrfs_*",
    "f2fs_*",
    "generic_file_write_iter",
    "vfs_fsync_range",
    "do_truncate",
    "vfs_fallocate",
    "notify_change",
    "io_write",
];

const RULES: &[Rule] = &[
    // The journal, most particular first.
    rule(WaitCause::Checkpoint, &[&["__jbd2_log_wait_for_space", "jbd2_log_do_checkpoint"]]),
    rule(
        WaitCause::TransactionLocked,
        &[&["wait_transaction_locked", "wait_transaction_switching", "add_transaction_credits"]],
    ),
    rule(
        WaitCause::ShadowBuffer,
        &[
            &["do_get_write_access", "jbd2_journal_get_write_access"],
            &["out_of_line_wait_on_bit", "__wait_on_bit"],
        ],
    ),
    rule(WaitCause::Updates, &[&["jbd2_journal_wait_updates", "jbd2_journal_lock_updates"]]),
    rule(WaitCause::CommitWait, &[&["jbd2_log_wait_commit"]]),
    rule(WaitCause::FastCommit, &[&["ext4_fc_*", "jbd2_fc_*"]]),
    rule(
        WaitCause::DataWriteback,
        &[&[
            "jbd2_journal_finish_inode_data_buffers",
            "ext4_journal_finish_inode_data_buffers",
            "journal_finish_inode_data_buffers",
        ]],
    ),
    rule(WaitCause::Device, &[&["jbd2_journal_commit_transaction"], BIT_WAITS]),
    // Other file systems' logs.
    rule(
        WaitCause::CommitWait,
        &[&[
            "xlog_wait_on_iclog*",
            "xfs_log_force*",
            "xlog_force*",
            "btrfs_commit_transaction",
            "btrfs_wait_for_commit",
            "wait_log_commit",
            "wait_for_commit",
            "btrfs_sync_log",
        ]],
    ),
    rule(WaitCause::Checkpoint, &[&["xlog_grant_head_wait", "xlog_grant_head_check"]]),
    // Others that have to do something.
    rule(
        WaitCause::Flock,
        &[&["locks_lock_inode_wait", "fcntl_setlk*", "__break_lease", "do_lock_file_wait"]],
    ),
    rule(WaitCause::FullPipe, &[&["pipe_write", "anon_pipe_write", "fifo_pipe_write"]]),
    rule(
        WaitCause::FileServer,
        &[&[
            "request_wait_answer",
            "__fuse_simple_request",
            "fuse_simple_request",
            "rpc_wait_bit_killable",
            "nfs_wait_bit_killable",
            "nfs_wait_client_init_complete",
            "wait_for_response",
            "cifs_send_recv",
            "p9_client_rpc",
            "ceph_mdsc_wait_request",
            "ceph_mdsc_do_request",
            "ceph_osdc_wait_request",
        ]],
    ),
    // What they have to read or write is waited for as pages, too.
    rule(
        WaitCause::FileServer,
        &[
            &["fuse_*", "nfs_*", "nfs4_*", "cifs_*", "smb2_*", "v9fs_*", "ceph_*", "netfs_*"],
            &["io_schedule*", "folio_wait_*", "__folio_lock*", "schedule_timeout*"],
        ],
    ),
    rule(
        WaitCause::MemoryLimit,
        &[&[
            "mem_cgroup_handle_over_high",
            "__mem_cgroup_handle_over_high",
            "try_to_free_mem_cgroup_pages",
            "try_to_free_pages",
            "throttle_direct_reclaim",
            "reclaim_throttle",
        ]],
    ),
    // Data and devices.
    rule(WaitCause::DirtyThrottle, &[&["balance_dirty_pages*"]]),
    rule(
        WaitCause::Flush,
        &[&["blkdev_issue_flush", "blkdev_fsync"], &["submit_bio_wait", "blkdev_issue_flush"]],
    ),
    rule(
        WaitCause::DataWriteback,
        &[&[
            "folio_wait_writeback*",
            "wait_on_page_writeback*",
            "folio_wait_stable",
            "wait_for_stable_page",
            "__filemap_fdatawait_range",
            "filemap_fdatawait*",
        ]],
    ),
    // Locks, by what is locked.
    rule(
        WaitCause::PageFault,
        &[LOCKS, &["do_user_addr_fault", "exc_page_fault", "handle_mm_fault", "do_page_fault"]],
    ),
    rule(WaitCause::DirectoryLock, &[LOCKS, NAME_CALLS]),
    rule(WaitCause::InodeLock, &[LOCKS, FILE_CALLS]),
    rule(
        WaitCause::PageFault,
        &[&[
            "exc_page_fault",
            "asm_exc_page_fault",
            "do_user_addr_fault",
            "do_page_fault",
            "faultin_page",
        ]],
    ),
    rule(WaitCause::KernelLock, &[LOCKS]),
    // User space and idleness.
    rule(WaitCause::Futex, &[&["futex_wait*", "do_futex", "futex_lock_pi*", "__futex_wait"]]),
    rule(WaitCause::AsyncIo, &[&["io_cqring_wait", "read_events"]]),
    rule(
        WaitCause::Poll,
        &[&[
            "ep_poll",
            "do_epoll_wait",
            "do_sys_poll",
            "do_select",
            "do_poll*",
            "do_wait",
            "kernel_wait4",
            "do_sigtimedwait",
            "sigsuspend",
            "do_signalfd*",
            "__do_sys_pause",
        ]],
    ),
    rule(
        WaitCause::PipeSocket,
        &[&[
            "pipe_read",
            "anon_pipe_read",
            "pipe_wait*",
            "unix_stream_*",
            "unix_dgram_*",
            "unix_wait_for_peer",
            "sk_wait_data",
            "sk_stream_wait_*",
            "tcp_recvmsg*",
            "tcp_sendmsg*",
            "inet_csk_accept",
            "skb_wait_for_more_packets",
            "__skb_wait_for_more_packets",
            "n_tty_read",
            "vsock_*",
            "fuse_dev_do_read",
        ]],
    ),
    rule(
        WaitCause::Sleep,
        &[&[
            "do_nanosleep",
            "hrtimer_nanosleep",
            "common_nsleep*",
            "schedule_timeout_*",
            "msleep*",
            "usleep_range*",
            "worker_thread",
            "kthreadd",
            "smpboot_thread_fn",
            "rcu_gp_kthread",
            "rcu_gp_fqs_loop",
            "kcompactd",
            "kswapd",
            "oom_reaper",
            "khugepaged",
        ]],
    ),
    // Anything else that waits for I/O.
    rule(
        WaitCause::Device,
        &[&[
            "io_schedule*",
            "submit_bio_wait",
            "blk_mq_get_tag",
            "rq_qos_wait",
            "__wait_on_buffer",
            "__lock_buffer",
            "blk_mq_submit_bio",
            "bio_await*",
            "blk_io_schedule",
            "folio_wait_bit_common",
            "__bio_queue_enter",
            "blk_execute_rq",
        ]],
    ),
    rule(WaitCause::Sleep, &[&["kjournald2", "kthread"]]),
];

const fn rule(cause: WaitCause, all: &'static [Symbols]) -> Rule {
    Rule { cause, all }
}

/// Returns the cause of a sleep by the symbols of the kernel stack, leaf first; [`WaitCause::Other`] if no rule matches
/// or the stack is empty. A thread that left its processor runnable was preempted, with any stack: the caller must
/// check its state.
pub fn classify<'a>(symbols: impl IntoIterator<Item = &'a str>) -> WaitCause {
    let symbols: Vec<&str> = symbols.into_iter().map(bare).collect();
    RULES
        .iter()
        .find(|rule| rule.all.iter().all(|any| has_one_of(&symbols, any)))
        .map_or(WaitCause::Other, |rule| rule.cause)
}

fn has_one_of(symbols: &[&str], patterns: Symbols) -> bool {
    symbols.iter().any(|symbol| patterns.iter().any(|pattern| matches(symbol, pattern)))
}

fn matches(symbol: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => symbol.starts_with(beginning),
        None => symbol == pattern,
    }
}

/// A symbol without offset, module and compiler suffix.
fn bare(symbol: &str) -> &str {
    let end = symbol.find(['+', '.', ' ']).filter(|&at| at > 0).unwrap_or(symbol.len());
    &symbol[..end]
}

#[cfg(test)]
mod tests;
