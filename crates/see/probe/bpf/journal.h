/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Commits and handles of jbd2, fast commits of ext4. */
#ifndef LUC_JOURNAL_H
#define LUC_JOURNAL_H

/* A journal's commit in progress, and the next that was asked for. */
struct journal {
	u64 start_ns;
	u64 locking_ns;
	u64 flushing_ns;
	u64 logging_ns;
	/* The end of the latest commit, full or fast: there is one at a time. */
	u64 end_ns;
	/* The first request seen for asked_transaction. */
	u64 asked_ns;
	u32 asked_transaction;
	u32 asked_by;
	u32 asked_by_process;
	u32 handles;
	u32 blocks;
	u32 blocks_logged;
	u32 dropped;
	/* asked_* of the transaction that is being committed. */
	u32 committing_asked_by;
	u32 committing_asked_by_process;
	u32 reserved;
	u64 committing_asked_ns;
};

/* Journals by the file system's device. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, struct journal);
} journals SEC(".maps");

DEFINE_SUMS(handles_0, struct handle_key, struct handle_sum, 32768);
DEFINE_SUMS(handles_1, struct handle_key, struct handle_sum, 32768);

static __always_inline struct journal *journal_of(u32 dev)
{
	struct journal *journal = bpf_map_lookup_elem(&journals, &dev);
	struct journal zero = {};

	if (journal)
		return journal;
	if (!device_wanted(dev))
		return NULL;
	bpf_map_update_elem(&journals, &dev, &zero, BPF_NOEXIST);
	journal = bpf_map_lookup_elem(&journals, &dev);
	if (!journal)
		count_lost(LOST_MAP_JOURNALS);
	return journal;
}

/* The tid that an fsync of the inode has to wait for. */
static __always_inline u32 wanted_transaction(struct inode *inode, bool datasync)
{
	void *info = (void *)inode - bpf_core_field_offset(struct ext4_inode_info, vfs_inode);
	u32 transaction = 0;
	u32 offset = datasync ? bpf_core_field_offset(struct ext4_inode_info, i_datasync_tid)
			      : bpf_core_field_offset(struct ext4_inode_info, i_sync_tid);

	bpf_probe_read_kernel(&transaction, sizeof(transaction), info + offset);
	return transaction;
}

/*
 * Notes that a thread in an fsync sleeps. If the transaction that it needs has already
 * been asked for, and no thread was seen to wait for it before, this thread is assumed
 * to have asked.
 */
static __always_inline void note_sync_wait(struct task_struct *task, struct thread *thread,
					   struct hot *hot, u64 now)
{
	struct inode *inode = thread->inode;
	u32 wanted;
	struct ext4_sb_info *sbi;
	struct journal *journal;
	u32 requested;

	/* Without ext4's module its structures are unknown, and not needed. */
	if (!bpf_core_field_exists(struct ext4_inode_info, i_sync_tid) ||
	    !bpf_core_field_exists(struct journal_s, j_commit_request))
		return;
	/* Not ext4, or not in its part yet. */
	if (!thread->file_system_enter_ns)
		return;
	hot->off_dev = thread->sync_dev;
	wanted = wanted_transaction(inode, thread->datasync);
	if (!wanted)
		return;
	hot->off_transaction = wanted;
	journal = journal_of(thread->sync_dev);
	if (!journal || journal->asked_transaction == wanted)
		return;
	sbi = BPF_CORE_READ(inode, i_sb, s_fs_info);
	requested = BPF_CORE_READ(sbi, s_journal, j_commit_request);
	if ((s32)(wanted - requested) > 0)
		return;
	if ((s32)(wanted - journal->asked_transaction) < 0 && journal->asked_transaction)
		return;
	journal->asked_by = task->pid;
	journal->asked_by_process = task->tgid;
	journal->asked_ns = now;
	journal->asked_transaction = wanted;
}

SEC("tp_btf/jbd2_start_commit")
int BPF_PROG(jbd2_start_commit, struct journal_s *j, struct transaction_s *transaction)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = current_thread(task);
	struct journal *journal;

	if (!j || !transaction)
		return 0;
	journal = journal_of(j->j_fs_dev->bd_dev);
	if (!journal)
		return 0;
	/* The journal's thread is always recorded: the others wait for it. */
	if (thread && !thread->tracked) {
		track(task, thread);
		introduce(task, thread);
	}
	journal->start_ns = bpf_ktime_get_ns();
	journal->locking_ns = 0;
	journal->flushing_ns = 0;
	journal->logging_ns = 0;
	journal->handles = 0;
	journal->blocks = 0;
	journal->blocks_logged = 0;
	journal->dropped = 0;
	if (journal->asked_transaction == transaction->t_tid) {
		journal->committing_asked_ns = journal->asked_ns;
		journal->committing_asked_by = journal->asked_by;
		journal->committing_asked_by_process = journal->asked_by_process;
	} else {
		journal->committing_asked_ns = 0;
		journal->committing_asked_by = 0;
		journal->committing_asked_by_process = 0;
	}
	return 0;
}

#define PHASE(phase)                                                                               \
	SEC("tp_btf/jbd2_commit_" #phase)                                                          \
	int BPF_PROG(jbd2_commit_##phase, struct journal_s *j)                                     \
	{                                                                                          \
		struct journal *journal;                                                           \
		u32 dev;                                                                           \
                                                                                                   \
		if (!j)                                                                            \
			return 0;                                                                  \
		dev = j->j_fs_dev->bd_dev;                                                         \
		journal = bpf_map_lookup_elem(&journals, &dev);                                    \
		if (journal)                                                                       \
			journal->phase##_ns = bpf_ktime_get_ns();                                  \
		return 0;                                                                          \
	}

PHASE(locking)
PHASE(flushing)
PHASE(logging)

SEC("tp_btf/jbd2_run_stats")
int BPF_PROG(jbd2_run_stats, u32 dev, u64 transaction, struct transaction_run_stats_s *stats)
{
	struct journal *journal = bpf_map_lookup_elem(&journals, &dev);

	if (!journal || !stats)
		return 0;
	journal->handles = stats->rs_handle_count;
	journal->blocks = stats->rs_blocks;
	journal->blocks_logged = stats->rs_blocks_logged;
	return 0;
}

SEC("tp_btf/jbd2_checkpoint_stats")
int BPF_PROG(jbd2_checkpoint_stats, u32 dev, u64 transaction, struct transaction_chp_stats_s *stats)
{
	struct journal *journal = bpf_map_lookup_elem(&journals, &dev);

	if (journal && stats)
		journal->dropped += stats->cs_dropped;
	return 0;
}

SEC("tp_btf/jbd2_end_commit")
int BPF_PROG(jbd2_end_commit, struct journal_s *j, struct transaction_s *transaction)
{
	struct record_commit *record;
	struct journal *journal;
	u64 now = bpf_ktime_get_ns();
	u32 dev;

	if (!j || !transaction)
		return 0;
	dev = j->j_fs_dev->bd_dev;
	journal = bpf_map_lookup_elem(&journals, &dev);
	if (!journal)
		return 0;
	journal->end_ns = now;
	if (!journal->start_ns)
		return 0;
	if (config.summary) {
		struct summary_key key = { .dev = dev, .what = SUMMARIZE_COMMIT };

		summarize(&key, 0, now - journal->start_ns);
		journal->start_ns = 0;
		return 0;
	}
	record = reserve(record_commit, LOST_COMMIT);
	if (!record)
		return 0;
	record->kind = RECORD_COMMIT;
	record->fast = 0;
	record->dev = dev;
	record->transaction = transaction->t_tid;
	/* Asked for before it began, or while it was being locked. */
	if (journal->asked_transaction == record->transaction) {
		record->asked_ns = journal->asked_ns;
		record->asked_by = journal->asked_by;
		record->asked_by_process = journal->asked_by_process;
	} else {
		record->asked_ns = journal->committing_asked_ns;
		record->asked_by = journal->committing_asked_by;
		record->asked_by_process = journal->committing_asked_by_process;
	}
	record->start_ns = journal->start_ns;
	record->locking_ns = journal->locking_ns;
	record->flushing_ns = journal->flushing_ns;
	record->logging_ns = journal->logging_ns;
	record->end_ns = now;
	record->handles = journal->handles;
	record->blocks = journal->blocks;
	record->blocks_logged = journal->blocks_logged;
	record->dropped = journal->dropped;
	submit(record);
	journal->start_ns = 0;
	return 0;
}

SEC("tp_btf/ext4_fc_commit_start")
int BPF_PROG(ext4_fc_commit_start, struct super_block *sb)
{
	struct thread *thread;

	if (!sb || !journal_of(sb->s_dev))
		return 0;
	thread = current_thread(bpf_get_current_task_btf());
	if (thread)
		thread->fast_start_ns = bpf_ktime_get_ns();
	return 0;
}

/*
 * Fast commits, their refusals, and callers that waited for another's commit pass here,
 * several at a time. So each has a begin. The begin of the one that commits is the end
 * of the commit before, if it waited for that first.
 *
 * `transaction` has been an argument since Linux 5.18; before, the program is not
 * loaded.
 */
SEC("tp_btf/ext4_fc_commit_stop")
int BPF_PROG(ext4_fc_commit_stop, struct super_block *sb, int blocks, int reason, u32 transaction)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = current_thread(task);
	u64 start_ns, now = bpf_ktime_get_ns();
	struct record_commit *record;
	struct journal *journal;
	u32 dev;

	if (!sb)
		return 0;
	dev = sb->s_dev;
	journal = bpf_map_lookup_elem(&journals, &dev);
	if (!journal || !thread || !thread->fast_start_ns)
		return 0;
	start_ns = thread->fast_start_ns;
	thread->fast_start_ns = 0;
	/* EXT4_FC_STATUS_OK is 0; else nothing was written by it. */
	if (reason || blocks <= 0)
		return 0;
	if (start_ns < journal->end_ns)
		start_ns = journal->end_ns;
	journal->end_ns = now;
	if (config.summary) {
		struct summary_key key = { .dev = dev, .what = SUMMARIZE_COMMIT };

		summarize(&key, 0, now - start_ns);
		return 0;
	}
	record = reserve(record_commit, LOST_COMMIT);
	if (!record)
		return 0;
	record->kind = RECORD_COMMIT;
	record->fast = 1;
	record->dev = dev;
	record->transaction = transaction;
	record->asked_ns = start_ns;
	record->asked_by = task->pid;
	record->asked_by_process = task->tgid;
	record->start_ns = start_ns;
	record->locking_ns = 0;
	record->flushing_ns = 0;
	record->logging_ns = 0;
	record->end_ns = now;
	record->handles = 0;
	record->blocks = blocks;
	record->blocks_logged = blocks;
	record->dropped = 0;
	submit(record);
	return 0;
}

SEC("tp_btf/jbd2_handle_start")
int BPF_PROG(jbd2_handle_start, u32 dev, u64 transaction, unsigned int type, unsigned int line,
	     int requested)
{
	struct thread *thread;

	if (!device_wanted(dev))
		return 0;
	thread = current_thread(bpf_get_current_task_btf());
	if (!thread)
		return 0;
	thread->handle_ns = bpf_ktime_get_ns();
	thread->call_dev = dev;
	thread->took_part = 1;
	if (thread->tracked)
		file_activity++;
	return 0;
}

SEC("tp_btf/jbd2_handle_stats")
int BPF_PROG(jbd2_handle_stats, u32 dev, u64 transaction, unsigned int type, unsigned int line,
	     int interval, int sync, int requested, int dirtied)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct handle_key key = {
		.dev = dev,
		.transaction = transaction,
		.thread = task->pid,
		.type = type,
	};
	struct handle_sum zero = { .process = task->tgid }, *sum;
	struct thread *thread;
	u64 now;

	if (config.summary || !device_wanted(dev))
		return 0;
	thread = current_thread(task);
	if (!thread)
		return 0;
	introduce(task, thread);
	zero.cgroup = thread->cgroup;
	sum = sum_of(handles, &key, &zero, LOST_MAP_HANDLES);
	if (!sum)
		return 0;
	now = bpf_ktime_get_ns();
	/* Only this thread adds to this sum. */
	sum->at_ns = now;
	sum->line = line;
	sum->count++;
	sum->requested += requested;
	/* Less than none when it gave back more credits than it had asked for. */
	if (dirtied > 0)
		sum->dirtied += dirtied;
	if (thread->handle_ns)
		sum->total_ns += now - thread->handle_ns;
	thread->handle_ns = 0;
	return 0;
}

#endif /* LUC_JOURNAL_H */
