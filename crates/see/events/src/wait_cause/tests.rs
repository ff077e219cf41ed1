use proptest::prelude::*;

use super::*;

/// Stacks as seen on Linux 6.1 and 6.18, leaf first.
const SEEN: &[(WaitCause, &str)] = &[
    (
        WaitCause::CommitWait,
        "__schedule;schedule;jbd2_log_wait_commit;ext4_fsync_journal;ext4_sync_file;vfs_fsync_range;\
         __x64_sys_fsync;do_syscall_64",
    ),
    (
        WaitCause::CommitWait,
        "__schedule;schedule;jbd2_log_wait_commit;jbd2_complete_transaction;ext4_fc_commit;\
         ext4_sync_file;do_fsync",
    ),
    (
        WaitCause::FastCommit,
        "__schedule;schedule;jbd2_fc_begin_commit;ext4_fc_commit;ext4_sync_file;do_fsync",
    ),
    (
        WaitCause::FastCommit,
        "__schedule;schedule;io_schedule;bit_wait_io;__wait_on_bit;out_of_line_wait_on_bit;\
         jbd2_fc_wait_bufs;ext4_fc_perform_commit;ext4_fc_commit;ext4_sync_file",
    ),
    (
        WaitCause::DataWriteback,
        "__schedule;schedule;io_schedule;folio_wait_bit_common;folio_wait_writeback;\
         __filemap_fdatawait_range;file_write_and_wait_range;ext4_sync_file;vfs_fsync_range",
    ),
    (
        WaitCause::ShadowBuffer,
        "__schedule;schedule;bit_wait;__wait_on_bit;out_of_line_wait_on_bit;do_get_write_access;\
         jbd2_journal_get_write_access;__ext4_journal_get_write_access;ext4_reserve_inode_write;\
         __ext4_mark_inode_dirty;ext4_dirty_inode;__mark_inode_dirty;file_update_time;vfs_write",
    ),
    (
        WaitCause::TransactionLocked,
        "__schedule;schedule;wait_transaction_locked;add_transaction_credits;start_this_handle;\
         jbd2__journal_start;__ext4_journal_start_sb;ext4_create;path_openat",
    ),
    (
        WaitCause::Checkpoint,
        "__schedule;schedule;jbd2_log_wait_commit;__jbd2_log_wait_for_space;\
         add_transaction_credits;start_this_handle;ext4_create;path_openat",
    ),
    (
        WaitCause::Checkpoint,
        "__schedule;schedule;io_schedule;bit_wait_io;__wait_on_bit;out_of_line_wait_on_bit;\
         __wait_on_buffer;jbd2_log_do_checkpoint;__jbd2_log_wait_for_space;add_transaction_credits",
    ),
    (
        WaitCause::DirectoryLock,
        "__schedule;schedule;schedule_preempt_disabled;rwsem_down_write_slowpath;down_write;\
         path_openat;do_filp_open;do_sys_openat2;__x64_sys_openat",
    ),
    (
        WaitCause::DirectoryLock,
        "__schedule;schedule;rwsem_down_write_slowpath;down_write;do_unlinkat;__x64_sys_unlink",
    ),
    (
        WaitCause::InodeLock,
        "__schedule;schedule;rwsem_down_write_slowpath;down_write;ext4_buffered_write_iter;\
         vfs_write;ksys_write",
    ),
    (
        WaitCause::DirtyThrottle,
        "__schedule;schedule;schedule_timeout;io_schedule_timeout;balance_dirty_pages;\
         balance_dirty_pages_ratelimited_flags;generic_perform_write;ext4_buffered_write_iter",
    ),
    (
        WaitCause::Device,
        "__schedule;schedule;io_schedule;blk_mq_get_tag;__blk_mq_alloc_requests;\
         blk_mq_submit_bio;submit_bio_noacct;ext4_io_submit;ext4_do_writepages",
    ),
    (
        WaitCause::Flush,
        "__schedule;schedule;io_schedule;submit_bio_wait;blkdev_issue_flush;ext4_sync_file;do_fsync",
    ),
    (
        WaitCause::Updates,
        "__schedule;schedule;jbd2_journal_wait_updates;jbd2_journal_commit_transaction;kjournald2",
    ),
    (
        WaitCause::DataWriteback,
        "__schedule;schedule;io_schedule;folio_wait_bit_common;folio_wait_writeback;\
         __filemap_fdatawait_range;filemap_fdatawait_range_keep_errors;\
         jbd2_journal_finish_inode_data_buffers;jbd2_journal_commit_transaction.isra.0;kjournald2",
    ),
    (
        WaitCause::Device,
        "__schedule;schedule;io_schedule;bit_wait_io;__wait_on_bit;out_of_line_wait_on_bit;\
         __wait_on_buffer;jbd2_journal_commit_transaction;kjournald2;kthread",
    ),
    (WaitCause::Sleep, "__schedule;schedule;kjournald2;kthread;ret_from_fork"),
    (WaitCause::Sleep, "__schedule;schedule;worker_thread;kthread;ret_from_fork"),
    (
        WaitCause::Futex,
        "__schedule;schedule;futex_wait_queue;__futex_wait;futex_wait;do_futex;__x64_sys_futex",
    ),
    (WaitCause::Poll, "__schedule;schedule;schedule_hrtimeout_range_clock;ep_poll;do_epoll_wait"),
    (WaitCause::PipeSocket, "__schedule;schedule;anon_pipe_read;vfs_read;ksys_read"),
    (WaitCause::Sleep, "__schedule;schedule;do_nanosleep;hrtimer_nanosleep;common_nsleep"),
    (
        WaitCause::PageFault,
        "__schedule;schedule;io_schedule;folio_wait_bit_common;filemap_fault;__do_fault;\
         handle_mm_fault;do_user_addr_fault;exc_page_fault;asm_exc_page_fault",
    ),
    (
        WaitCause::CommitWait,
        "__schedule;schedule;xlog_wait_on_iclog;xfs_log_force_seq;xfs_file_fsync;do_fsync",
    ),
    (WaitCause::Flock, "__schedule;schedule;locks_lock_inode_wait;__x64_sys_flock;do_syscall_64"),
    (WaitCause::Flock, "__schedule;schedule;fcntl_setlk;do_fcntl;__x64_sys_fcntl"),
    (WaitCause::FullPipe, "__schedule;schedule;anon_pipe_write;vfs_write;ksys_write"),
    (
        WaitCause::FileServer,
        "__schedule;schedule;request_wait_answer;__fuse_simple_request;fuse_lookup_name;fuse_lookup;\
         __lookup_slow;walk_component;path_lookupat",
    ),
    (
        WaitCause::FileServer,
        "__schedule;schedule;io_schedule;folio_wait_bit_common;filemap_get_pages;filemap_read;\
         fuse_file_read_iter;vfs_read",
    ),
    (WaitCause::AsyncIo, "__schedule;schedule;read_events;do_io_getevents;__x64_sys_io_getevents"),
    (
        WaitCause::MemoryLimit,
        "__schedule;schedule;schedule_timeout;schedule_timeout_killable;__mem_cgroup_handle_over_high;\
         exit_to_user_mode_loop;do_syscall_64",
    ),
    (WaitCause::Other, "__schedule;schedule;something_new"),
    (WaitCause::Other, ""),
];

#[test]
fn stacks_that_were_seen_have_their_cause() {
    for &(cause, stack) in SEEN {
        let frames = stack.split(';').filter(|frame| !frame.is_empty());
        assert_eq!(classify(frames), cause, "{stack}");
    }
}

#[test]
fn offsets_and_compiler_suffixes_do_not_matter() {
    let stack = ["schedule+0x2a/0xb0", "jbd2_log_wait_commit.constprop.0+0x1/0x2 [jbd2]"];
    assert_eq!(classify(stack), WaitCause::CommitWait);
}

#[test]
fn every_cause_but_those_of_other_evidence_can_be_told_by_a_stack() {
    for &cause in WaitCause::ALL {
        let told = SEEN.iter().any(|&(seen, _)| seen == cause);
        assert!(
            told || matches!(
                cause,
                WaitCause::Preempted
                    | WaitCause::KernelLock
                    | WaitCause::Frozen
                    | WaitCause::Stopped
                    | WaitCause::Throttled
                    | WaitCause::HeldBack
            ),
            "{cause}"
        );
    }
}

proptest! {
    #[test]
    fn any_text_is_classified(stack in ".{0,300}") {
        classify(stack.split(';'));
    }

    #[test]
    fn frames_that_are_unknown_change_nothing(index in 0..SEEN.len(), at in 0usize..20) {
        let (cause, stack) = SEEN[index];
        let mut frames: Vec<&str> = stack.split(';').collect();
        frames.insert(at.min(frames.len()), "not_a_symbol_of_any_rule");
        prop_assert_eq!(classify(frames), cause);
    }
}
