/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fsync and the like, and other calls on files. A call that neither touched a
 * journal nor slept uninterruptibly is not worth a record.
 */
#ifndef LUC_FILE_CALLS_H
#define LUC_FILE_CALLS_H

static __always_inline bool is_sync(u32 class)
{
	return class >= CALL_SYNC && class <= CALL_SYNC_LAST;
}

/* Returns whether the call counts, by its flags. */
static __always_inline bool passes(struct pt_regs *regs, u32 test)
{
	switch (test) {
	case TEST_CREATE_2:
		return argument(regs, 1) & O_CREAT;
	case TEST_CREATE_3:
		return argument(regs, 2) & O_CREAT;
	case TEST_MSYNC_3:
		return argument(regs, 2) & MS_SYNC;
	default:
		return true;
	}
}

static __always_inline void forget_sync(struct thread *thread)
{
	thread->file_system_enter_ns = 0;
	thread->file_system_exit_ns = 0;
	thread->sync_inode = 0;
	thread->sync_dev = 0;
	thread->inode = NULL;
	thread->wanted_enter = 0;
	thread->wanted_exit = 0;
}

/*
 * From Linux 7.0 on a program on a tracepoint can be preempted. It is then skipped for
 * all other threads on that processor until it goes on: a frequent one like those of
 * system calls misses many. As perf events they run to their end. NAME is attached in
 * one way or the other.
 */
#define ON_CALL_ENTER(name, body)                                                                  \
	SEC("tp_btf/sys_enter") int BPF_PROG(name, struct pt_regs *regs, long number)              \
	{                                                                                          \
		return body(regs, number);                                                         \
	}                                                                                          \
                                                                                                   \
	SEC("tp/raw_syscalls/sys_enter") int name##_perf(struct raw_call *call)                    \
	{                                                                                          \
		return body(own_registers(), call->number);                                        \
	}

#define ON_CALL_EXIT(name, body)                                                                   \
	SEC("tp_btf/sys_exit") int BPF_PROG(name, struct pt_regs *regs, long result)               \
	{                                                                                          \
		return body(regs, result);                                                         \
	}                                                                                          \
                                                                                                   \
	SEC("tp/raw_syscalls/sys_exit") int name##_perf(struct raw_call *call)                     \
	{                                                                                          \
		return body(own_registers(), call->value);                                         \
	}

static __always_inline struct pt_regs *own_registers(void)
{
	return (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
}

static __always_inline int begin_call(struct pt_regs *regs, long number)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread;
	struct hot *hot;
	u32 class;

	if (number < 0 || number >= LUC_SYSCALLS)
		return 0;
	class = config.call_class[number & (LUC_SYSCALLS - 1)];
	if (!class)
		return 0;
	hot = hot_of(task);
	if (!hot)
		return 0;
	thread = thread_of(task);
	if (!thread)
		return 0;
	if (!passes(regs, config.call_test[number & (LUC_SYSCALLS - 1)]))
		return 0;
	thread->call_class = class;
	thread->took_part = 0;
	thread->call_dev = 0;
	thread->call_inode = 0;
	thread->cpu_enter = bpf_get_smp_processor_id();
	thread->call_ns = bpf_ktime_get_ns();
	if (is_sync(class)) {
		hot->in_sync = 1;
		forget_sync(thread);
	}
	return 0;
}

ON_CALL_ENTER(sys_enter, begin_call)

static __always_inline void send_sync(struct task_struct *task, struct thread *thread, u32 kind,
				      u64 enter_ns, u64 exit_ns, long result)
{
	struct record_sync *record;

	introduce(task, thread);
	if (config.summary) {
		struct summary_key key = {
			.dev = thread->sync_dev,
			.process = task->tgid,
			.what = SUMMARIZE_SYNC,
		};

		summarize(&key, thread->cgroup, exit_ns - enter_ns);
		return;
	}
	record = reserve(record_sync, LOST_SYNC);
	if (!record)
		return;
	record->kind = RECORD_SYNC;
	record->sync_kind = kind;
	record->thread = task->pid;
	record->process = task->tgid;
	record->cgroup = thread->cgroup;
	record->inode = thread->sync_inode;
	record->enter_ns = enter_ns;
	record->exit_ns = exit_ns;
	record->file_system_enter_ns = thread->file_system_enter_ns;
	record->file_system_exit_ns = thread->file_system_exit_ns;
	record->dev = thread->sync_dev;
	record->wanted_enter = thread->wanted_enter;
	record->wanted_exit = thread->wanted_exit;
	record->errno = result < 0 ? -result : 0;
	record->cpu_enter = thread->cpu_enter;
	record->reserved = 0;
	submit(record);
}

/* write and read, whose first argument is the file */
static __always_inline void name_file(struct task_struct *task, struct thread *thread,
				      struct pt_regs *regs, u32 kind)
{
	struct inode *inode;

	if (kind != 0 && kind != 7)
		return;
	inode = inode_of(task, argument(regs, 0));
	if (!inode)
		return;
	thread->call_inode = BPF_CORE_READ(inode, i_ino);
	thread->call_dev = BPF_CORE_READ(inode, i_sb, s_dev);
}

static __always_inline void send_call(struct task_struct *task, struct thread *thread, u32 kind,
				      u64 now, long result)
{
	struct record_call *record;

	introduce(task, thread);
	record = reserve(record_call, LOST_CALL);
	if (!record)
		return;
	record->kind = RECORD_CALL;
	record->call_kind = kind;
	record->thread = task->pid;
	record->process = task->tgid;
	record->cgroup = thread->cgroup;
	record->enter_ns = thread->call_ns;
	record->exit_ns = now;
	record->inode = thread->call_inode;
	record->dev = thread->call_dev;
	record->bytes = (kind == 0 || kind == 7) && result > 0 ? result : 0;
	record->errno = result < 0 ? -result : 0;
	submit(record);
}

static __always_inline int end_call(struct pt_regs *regs, long result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	long number = syscall_of_registers(regs);
	struct thread *thread;
	struct inode *inode;
	struct hot *hot;
	u32 class;
	u64 now;

	if (number < 0 || number >= LUC_SYSCALLS || !config.call_class[number & (LUC_SYSCALLS - 1)])
		return 0;
	hot = hot_of(task);
	if (!hot)
		return 0;
	thread = thread_of(task);
	if (!thread || !thread->call_ns)
		return 0;
	class = thread->call_class;
	if (is_sync(class)) {
		hot->in_sync = 0;
		now = bpf_ktime_get_ns();
		if (!thread->sync_dev && class != CALL_SYNC + 2) {
			inode = inode_of(task, argument(regs, 0));
			if (inode) {
				thread->sync_inode = BPF_CORE_READ(inode, i_ino);
				thread->sync_dev = BPF_CORE_READ(inode, i_sb, s_dev);
			}
		}
		if (device_wanted(thread->sync_dev))
			send_sync(task, thread, class - CALL_SYNC, thread->call_ns, now, result);
		forget_sync(thread);
	} else if (thread->took_part && !config.summary) {
		now = bpf_ktime_get_ns();
		/* A write without a handle has not shown its device yet. */
		name_file(task, thread, regs, class - CALL_OTHER);
		if (device_wanted(thread->call_dev))
			send_call(task, thread, class - CALL_OTHER, now, result);
	}
	thread->call_ns = 0;
	thread->call_class = 0;
	thread->call_dev = 0;
	thread->took_part = 0;
	return 0;
}

ON_CALL_EXIT(sys_exit, end_call)

SEC("tp_btf/ext4_sync_file_enter")
int BPF_PROG(ext4_sync_file_enter, struct file *file, int datasync)
{
	struct thread *thread = current_thread(bpf_get_current_task_btf());
	struct inode *inode;
	struct hot *hot;

	if (!file || !thread || !thread->tracked)
		return 0;
	inode = file->f_inode;
	hot = hot_of(bpf_get_current_task_btf());
	if (hot)
		hot->in_sync = 1;
	file_activity++;
	thread->sync_dev = inode->i_sb->s_dev;
	thread->sync_inode = inode->i_ino;
	thread->inode = inode;
	thread->datasync = datasync != 0;
	thread->wanted_enter = wanted_transaction(inode, datasync != 0);
	thread->wanted_exit = 0;
	thread->file_system_exit_ns = 0;
	thread->file_system_enter_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/ext4_sync_file_exit")
int BPF_PROG(ext4_sync_file_exit, struct inode *inode, int result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = thread_of(task);
	struct hot *hot;
	u32 kind;

	if (!inode || !thread || !thread->file_system_enter_ns)
		return 0;
	thread->file_system_exit_ns = bpf_ktime_get_ns();
	thread->wanted_exit = wanted_transaction(inode, thread->datasync);
	/* The end of the system call sends the rest. */
	if (thread->call_ns && is_sync(thread->call_class)) {
		if (calls_attached)
			return 0;
		thread->call_ns = 0;
	}
	hot = hot_of(task);
	if (hot)
		hot->in_sync = 0;
	/* A write to an O_SYNC file; io_uring; system calls are not looked at. */
	if (thread->call_ns && thread->call_class == CALL_OTHER)
		kind = 4;
	else
		kind = thread->datasync ? 1 : 0;
	if (device_wanted(thread->sync_dev))
		send_sync(task, thread, kind, thread->file_system_enter_ns,
			  thread->file_system_exit_ns, result);
	forget_sync(thread);
	return 0;
}

SEC("tp_btf/ext4_allocate_inode")
int BPF_PROG(ext4_allocate_inode, struct inode *inode)
{
	struct thread *thread = thread_of(bpf_get_current_task_btf());

	if (inode && thread && thread->call_ns)
		thread->call_inode = inode->i_ino;
	return 0;
}

SEC("tp_btf/ext4_unlink_enter")
int BPF_PROG(ext4_unlink_enter, struct inode *directory, struct dentry *dentry)
{
	struct thread *thread = thread_of(bpf_get_current_task_btf());

	if (dentry && thread && thread->call_ns)
		thread->call_inode = BPF_CORE_READ(dentry, d_inode, i_ino);
	return 0;
}

#endif /* LUC_FILE_CALLS_H */
