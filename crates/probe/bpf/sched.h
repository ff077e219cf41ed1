/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waits: from leaving a processor to being on one again.
 *
 * Only a thread that sleeps uninterruptibly, or in a system call that does not
 * say why, costs a stack. Others are told by the system call, and if they are
 * brief they are summed per thread: a program that switches 100,000 times a
 * second would otherwise pay for 100,000 records.
 */
#ifndef LUC_SCHED_H
#define LUC_SCHED_H

/* The number of the system call that a thread is in; -1 if none or not known. */
static __always_inline long syscall_of(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct pt_regs___x86 *x86 = (void *)regs;
	struct pt_regs___arm64 *arm64 = (void *)regs;

	if (bpf_core_field_exists(x86->orig_ax))
		return BPF_CORE_READ(x86, orig_ax);
	if (bpf_core_field_exists(arm64->syscallno))
		return BPF_CORE_READ(arm64, syscallno);
	return -1;
}

/* brief_class + 1 of a thread that sleeps interruptibly; 0: ask its stack. */
static __always_inline u32 brief_class_of(struct task_struct *task)
{
	long number;

	if (task->flags & PF_KTHREAD)
		return BRIEF_SLEEP + 1;
	number = syscall_of(task);
	if (number < 0 || number >= LUC_SYSCALLS)
		return 0;
	return config.brief_class[number & (LUC_SYSCALLS - 1)];
}

static __always_inline void take_stack(void *ctx, struct thread *thread)
{
	long id = bpf_get_stackid(ctx, &stacks, 0);

	if (id >= 0)
		thread->stack = id + 1;
	else
		count_lost(LOST_MAP_STACKS);
}

static __always_inline void flush_brief(struct task_struct *task, struct thread *thread, u64 now)
{
	struct record_brief *record;

	if (!thread->brief_since_ns)
		return;
	record = reserve(record_brief, LOST_BRIEF);
	if (record) {
		record->kind = RECORD_BRIEF;
		record->thread = task->pid;
		record->process = task->tgid;
		record->reserved = 0;
		record->cgroup = thread->cgroup;
		record->since_ns = thread->brief_since_ns;
		record->until_ns = now;
		__builtin_memcpy(record->sums, thread->brief, sizeof(record->sums));
		submit(record);
	}
	__builtin_memset(thread->brief, 0, sizeof(thread->brief));
	thread->brief_since_ns = 0;
}

static __always_inline void leave(void *ctx, struct task_struct *task, struct thread *thread,
				  bool preempted, u64 now)
{
	u32 state = preempted ? 0 : task->__state;
	u32 brief;

	thread->off_ns = now;
	thread->woken_ns = 0;
	thread->waker = 0;
	thread->stack = 0;
	thread->off_transaction = 0;
	thread->off_dev = thread->call_dev;
	thread->off_brief = BRIEF_OTHER;
	if (!state) {
		thread->off_state = WAIT_PREEMPTED;
		thread->off_brief = BRIEF_PREEMPTED;
	} else if (state & TASK_UNINTERRUPTIBLE && !(state & TASK_NOLOAD)) {
		thread->off_state = WAIT_UNINTERRUPTIBLE;
		thread->took_part = 1;
		take_stack(ctx, thread);
		if (thread->file_system_enter_ns)
			note_sync_wait(task, thread, now);
	} else if (state & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE)) {
		thread->off_state = WAIT_INTERRUPTIBLE;
		brief = brief_class_of(task);
		if (brief)
			thread->off_brief = brief - 1;
		else
			take_stack(ctx, thread);
	} else if (state & (TASK_DEAD | EXIT_DEAD_OR_ZOMBIE)) {
		thread->off_ns = 0;
	} else {
		thread->off_state = WAIT_OTHER;
	}
}

static __always_inline void send_wait(struct task_struct *task, struct thread *thread, u64 now)
{
	struct record_wait *record;

	introduce(task, thread);
	record = reserve(record_wait, LOST_WAIT);
	if (!record)
		return;
	record->kind = RECORD_WAIT;
	record->state = thread->off_state;
	record->thread = task->pid;
	record->process = task->tgid;
	record->cgroup = thread->cgroup;
	record->off_ns = thread->off_ns;
	record->woken_ns = thread->woken_ns;
	record->on_ns = now;
	record->stack = thread->stack;
	record->brief = thread->off_brief;
	record->waker = thread->waker;
	record->dev = thread->off_dev;
	record->transaction = thread->off_transaction;
	record->reserved = 0;
	submit(record);
}

static __always_inline void add_brief(struct task_struct *task, struct thread *thread, u64 now)
{
	u64 woken_ns = thread->off_state == WAIT_PREEMPTED ? thread->off_ns : thread->woken_ns;
	struct brief_sum *sum;
	u32 class = thread->off_brief;

	if (class >= LUC_BRIEF)
		return;
	if (woken_ns < thread->off_ns || woken_ns > now)
		woken_ns = now;
	if (!thread->brief_since_ns)
		thread->brief_since_ns = thread->off_ns;
	sum = &thread->brief[class];
	sum->count++;
	sum->blocked_ns += woken_ns - thread->off_ns;
	sum->runnable_ns += now - woken_ns;
	if (now - thread->brief_since_ns >= config.brief_flush_ns) {
		introduce(task, thread);
		flush_brief(task, thread, now);
	}
}

static __always_inline void arrive(struct task_struct *task, struct thread *thread, u64 now)
{
	u64 duration_ns = now - thread->off_ns;

	if (config.summary) {
		struct summary_key key = {
			.dev = thread->off_dev,
			.process = task->tgid,
			.what = 2,
			.stack = thread->stack,
			.brief = thread->off_brief,
		};

		introduce(task, thread);
		summarize(&key, thread->cgroup, duration_ns);
	} else if (thread->stack || thread->off_state == WAIT_UNINTERRUPTIBLE ||
		   thread->file_system_enter_ns || duration_ns >= config.brief_ns) {
		send_wait(task, thread, now);
	} else {
		add_brief(task, thread, now);
	}
	thread->off_ns = 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	struct thread *thread;
	u64 now = 0;

	if (prev->pid) {
		thread = thread_of(prev);
		if (thread && thread->tracked) {
			now = bpf_ktime_get_ns();
			leave(ctx, prev, thread, preempted, now);
		}
	}
	if (next->pid) {
		thread = thread_of(next);
		if (thread && thread->off_ns) {
			if (!now)
				now = bpf_ktime_get_ns();
			arrive(next, thread, now);
		}
	}
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *task)
{
	struct thread *thread = thread_of(task);

	if (!thread || !thread->off_ns || thread->woken_ns)
		return 0;
	thread->woken_ns = bpf_ktime_get_ns();
	thread->waker = bpf_get_current_pid_tgid();
	return 0;
}

#endif /* LUC_SCHED_H */
