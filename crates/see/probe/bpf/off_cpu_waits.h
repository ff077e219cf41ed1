/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waits: from leaving a processor to being on one again.
 *
 * Only a thread that sleeps uninterruptibly, or in a system call that does not show the
 * cause, costs a stack. The system call gives the cause of other waits, and brief ones
 * are summed per thread: a program that switches 100,000 times a second would otherwise
 * pay for 100,000 records.
 *
 * config.wake_ups (luc record --fleet) makes a record of each wait that a thread ended,
 * of any length: the wakers show which request a thread has worked for. Then only
 * sleeps for a time and waits for a processor are summed.
 */
#ifndef LUC_OFF_CPU_WAITS_H
#define LUC_OFF_CPU_WAITS_H

/*
 * Returns whether the scheduler's own clock and counts can be read: most switches then
 * need no other.
 */
static __always_inline bool has_scheduler_clock(void)
{
	return config.run_delays && bpf_core_field_exists(struct task_struct, sched_info) &&
	       bpf_core_field_exists(struct sched_entity, cfs_rq) &&
	       bpf_core_field_exists(struct cfs_rq, rq) && bpf_core_field_exists(struct rq, clock);
}

/*
 * Returns the clock of the task's run queue, which is this processor's; for lengths.
 * __schedule has just updated it, so it costs a memory access, while reading the time
 * would be most of a switch's cost. Where it cannot be read, returns the time. (Few
 * kernels export it by its name, runqueues.)
 */
static __always_inline u64 scheduler_clock(struct task_struct *task)
{
	return has_scheduler_clock() ? task->se.cfs_rq->rq->clock : bpf_ktime_get_ns();
}

/* The number of the system call that a thread is in; -1 if none or not known. */
/*
 * brief_class + 1 of a thread that writes to a file. What serves a file system answers
 * calls on its files, as with FUSE: the stack tells.
 */
static __always_inline u32 brief_class_of_file(struct task_struct *task, u32 fd)
{
	struct inode *inode = inode_of(task, fd);
	u32 type = inode ? BPF_CORE_READ(inode, i_mode) & S_IFMT : 0;

	if (type == S_IFREG)
		return 0;
	return type == S_IFIFO ? BRIEF_FULL_PIPE + 1 : BRIEF_PIPE_SOCKET + 1;
}

/* brief_class + 1 of a thread that sleeps interruptibly; 0: ask its stack. */
static __always_inline u32 brief_class_of(struct task_struct *task)
{
	struct pt_regs *regs;
	long number;
	u32 class;

	if (task->flags & PF_KTHREAD)
		return BRIEF_SLEEP + 1;
	/*
	 * A frozen thread sleeps in get_signal(). Its registers still have the system
	 * call before that.
	 */
	if (bpf_core_field_exists(task->frozen) && BPF_CORE_READ_BITFIELD(task, frozen))
		return BRIEF_FROZEN + 1;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	number = syscall_of_registers(regs);
	if (number < 0 || number >= LUC_SYSCALLS)
		return 0;
	class = config.brief_class[number & (LUC_SYSCALLS - 1)];
	if (!(class & BRIEF_BY_FILE))
		return class;
	class &= ~BRIEF_BY_FILE;
	/* Threads often sleep in reads, but seldom in writes: only these pay for the look. */
	return class == BRIEF_FULL_PIPE + 1 ? brief_class_of_file(task, argument(regs, 0)) : class;
}

/*
 * Returns the cause of a sleep that is neither interruptible nor uninterruptible. A
 * cgroup of version 1 is frozen by the state, one of version 2 by a bit of the thread.
 */
static __always_inline u32 other_brief(u32 state)
{
	if (state & TASK_FROZEN)
		return BRIEF_FROZEN;
	return state & (TASK_STOPPED | TASK_TRACED) ? BRIEF_STOPPED : BRIEF_OTHER;
}

/* Returns whether the quota of a thread's cgroup is used up on its processor. */
static __always_inline bool is_throttled(struct task_struct *task)
{
	return bpf_core_field_exists(struct cfs_rq, throttle_count) &&
	       task->se.cfs_rq->throttle_count > 0;
}

static __always_inline void send_brief(struct task_struct *task, struct hot *hot, u64 now)
{
	struct record_brief *record;

	record = reserve(record_brief, LOST_BRIEF);
	if (!record)
		return;
	record->kind = RECORD_BRIEF;
	record->thread = task->pid;
	record->process = task->tgid;
	record->reserved = 0;
	record->cgroup = hot->cgroup;
	record->since_ns = hot->brief_since_ns;
	record->until_ns = now;
	__builtin_memcpy(record->sums, hot->brief, sizeof(record->sums));
	submit(record);
}

static __always_inline void flush_brief(struct task_struct *task, struct hot *hot, u64 now)
{
	if (!hot->brief_since_ns)
		return;
	send_brief(task, hot, now);
	__builtin_memset(hot->brief, 0, sizeof(hot->brief));
	hot->brief_since_ns = 0;
}

/* The file system that a thread reads, or writes without taking part in a journal. */
static __always_inline u32 dev_of_file(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	long number = syscall_of_registers(regs);
	struct inode *inode;

	if (number < 0 || number >= LUC_SYSCALLS ||
	    !(config.brief_class[number & (LUC_SYSCALLS - 1)] & BRIEF_BY_FILE))
		return 0;
	inode = inode_of(task, argument(regs, 0));
	return inode ? BPF_CORE_READ(inode, i_sb, s_dev) : 0;
}

/*
 * Begins an uninterruptible sleep: the stack gives the cause, and the thread's call the
 * file system.
 */
static __always_inline void leave_uninterruptibly(void *ctx, struct task_struct *task,
						  struct hot *hot)
{
	struct thread *thread = thread_of(task);
	u64 now = bpf_ktime_get_ns();

	hot->off_state = WAIT_UNINTERRUPTIBLE;
	hot->off_ns = now;
	hot->stack = stack_of(ctx, task);
	/* A journal's thread works for all users of the file system, recorded or not. */
	if (!(task->flags & PF_KTHREAD))
		file_activity++;
	if (!thread)
		return;
	thread->took_part = 1;
	hot->off_dev = thread->call_dev;
	if (!hot->off_dev && !(task->flags & PF_KTHREAD))
		hot->off_dev = dev_of_file(task);
	if (hot->in_sync)
		note_sync_wait(task, thread, hot, now);
}

static __always_inline bool sleeps_uninterruptibly(u32 state)
{
	return state & TASK_UNINTERRUPTIBLE && !(state & TASK_NOLOAD);
}

/* Clears the state of the thread's last wait. */
static __always_inline void clear_wait(struct task_struct *task, struct hot *hot)
{
	if (has_scheduler_clock())
		hot->run_delay_ns = task->sched_info.run_delay;
	hot->off_ns = 0;
	hot->woken_ns = 0;
	hot->waker = 0;
	hot->woken_throttled = 0;
	hot->stack = 0;
	hot->off_transaction = 0;
	hot->off_dev = 0;
	hot->off_brief = BRIEF_OTHER;
}

/* Returns the time of an ended wait in which the thread was ready to run. */
static __always_inline u64 runnable_ns(struct task_struct *task, struct hot *hot, u64 clock,
				       u64 duration_ns)
{
	u64 queued, ready_ns;

	if (hot->off_state == WAIT_PREEMPTED)
		return duration_ns;
	/* Old kernels count it as ready meanwhile. */
	if (hot->off_brief == BRIEF_THROTTLED)
		return 0;
	if (!has_scheduler_clock()) {
		ready_ns = hot->woken_ns ? clock - hot->woken_ns : 0;
	} else {
		/* The count grows at the end of each stay in a queue. The last stay ends now. */
		queued = task->sched_info.last_queued;
		ready_ns = task->sched_info.run_delay - hot->run_delay_ns;
		if (queued && queued < clock)
			ready_ns += clock - queued;
	}
	return ready_ns < duration_ns ? ready_ns : duration_ns;
}

static __always_inline void emit_wait(struct record_wait *record)
{
	if (config.wake_ups)
		gather_wait(record);
	else if (bpf_ringbuf_output(&records, record, sizeof(*record), BPF_RB_NO_WAKEUP))
		count_lost(LOST_WAIT);
}

/*
 * Sends a wait. If a quota kept the thread from running after it was woken, that is a
 * separate wait. The thread came `ago_ns` before now to `processor`, a number plus 1; 0
 * if unknown.
 */
static __always_inline void send_wait(struct task_struct *task, struct hot *hot, u64 clock,
				      u64 duration_ns, u64 ago_ns, u32 processor)
{
	u64 now = bpf_ktime_get_ns() - ago_ns;
	struct record_wait record = {
		.kind = RECORD_WAIT,
		.state = hot->off_state,
		.thread = task->pid,
		.process = task->tgid,
		.cgroup = hot->cgroup,
		.on_ns = now,
		.stack = hot->stack,
		.brief = hot->off_brief,
		.waker = hot->waker,
		.dev = hot->off_dev,
		.transaction = hot->off_transaction,
		.processor = processor,
	};

	record.off_ns = hot->off_ns ? hot->off_ns : now - duration_ns;
	record.woken_ns = hot->woken_ns;
	if (!hot->woken_ns)
		record.woken_ns = now - runnable_ns(task, hot, clock, duration_ns);
	/* The scheduler's clock may be a little off. */
	else if (hot->woken_ns < record.off_ns)
		record.woken_ns = record.off_ns;
	if (hot->woken_throttled && now - hot->woken_ns >= config.brief_ns) {
		record.on_ns = hot->woken_ns;
		emit_wait(&record);
		record.state = WAIT_OTHER;
		record.brief = BRIEF_THROTTLED;
		record.off_ns = hot->woken_ns;
		record.woken_ns = now;
		record.on_ns = now;
		record.stack = 0;
		record.waker = 0;
	}
	emit_wait(&record);
}

/* Returns whether the sums span enough time to be sent. */
static __always_inline bool add_brief(struct task_struct *task, struct hot *hot, u64 clock,
				      u64 duration_ns)
{
	u64 ready_ns = runnable_ns(task, hot, clock, duration_ns);
	struct brief_sum *sum;
	/* Linux 6.1 does not see that a copy of 32 bits is in bounds as well. */
	u64 class = hot->off_brief;

	if (class >= LUC_BRIEF)
		return false;
	if (!hot->brief_since_ns) {
		hot->brief_since_ns = bpf_ktime_get_ns() - duration_ns;
		hot->brief_since_clock = hot->off_clock;
	}
	sum = &hot->brief[class];
	sum->count++;
	sum->blocked_ns += duration_ns - ready_ns;
	sum->runnable_ns += ready_ns;
	return clock - hot->brief_since_clock >= config.brief_flush_ns;
}

static __always_inline void summarize_wait(struct task_struct *task, struct hot *hot,
					   u64 duration_ns)
{
	struct summary_key key = {
		.dev = hot->off_dev,
		.process = task->tgid,
		.what = SUMMARIZE_WAIT,
		.stack = hot->stack,
		.brief = hot->off_brief,
	};

	summarize(&key, hot->cgroup, duration_ns);
}

/* Returns whether a wait is summed if it was brief. */
static __always_inline bool may_be_summed(struct hot *hot)
{
	if (hot->stack || hot->in_sync || hot->off_state == WAIT_UNINTERRUPTIBLE)
		return false;
	/* A sleep for a time, or a wait for a processor, has no waker. */
	return !config.wake_ups || hot->off_brief == BRIEF_SLEEP ||
	       hot->off_brief == BRIEF_PREEMPTED;
}

static __always_inline void arrive(struct task_struct *task, struct hot *hot, u64 clock, u64 ago_ns,
				   u32 processor)
{
	/* Clocks of two processors may differ by a little. */
	u64 duration_ns = clock > hot->off_clock ? clock - hot->off_clock : 0;
	bool brief;

	brief = duration_ns < config.brief_ns && may_be_summed(hot);
	if (!brief || add_brief(task, hot, clock, duration_ns)) {
		introduce_hot(task, hot);
		if (brief)
			flush_brief(task, hot, bpf_ktime_get_ns());
		else if (config.summary)
			summarize_wait(task, hot, duration_ns);
		else
			send_wait(task, hot, clock, duration_ns, ago_ns, processor);
	}
	hot->off_clock = 0;
}

/*
 * Handles a thread whose arrival on a processor was not seen, because the kernel ran no
 * program then. Some kernels keep one of their processes from being traced, and with it
 * the switch to the next thread. The time of arrival is in the scheduler's counts.
 */
static __noinline int arrive_unseen(struct task_struct *task, struct hot *hot, u64 clock,
				    u32 processor)
{
	u64 came, ago_ns = 0;

	if (!hot)
		return 0;
	if (has_scheduler_clock()) {
		came = task->sched_info.last_arrival;
		/* One that has not come yet came there for an earlier turn. */
		if (hot->off_clock < came && came < clock)
			ago_ns = clock - came;
	}
	arrive(task, hot, clock - ago_ns, ago_ns, processor);
	return 0;
}

static __always_inline void leave(void *ctx, struct task_struct *task, struct hot *hot,
				  bool preempted, u64 clock)
{
	u32 state = preempted ? 0 : task->__state;
	u32 brief;

	if (hot->off_clock)
		arrive_unseen(task, hot, clock, bpf_get_smp_processor_id() + 1);
	hot->off_clock = clock;
	clear_wait(task, hot);
	if (!state && is_throttled(task)) {
		hot->off_state = WAIT_OTHER;
		hot->off_brief = BRIEF_THROTTLED;
	} else if (!state) {
		hot->off_state = WAIT_PREEMPTED;
		hot->off_brief = BRIEF_PREEMPTED;
	} else if (sleeps_uninterruptibly(state)) {
		leave_uninterruptibly(ctx, task, hot);
	} else if (state & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE)) {
		hot->off_state = WAIT_INTERRUPTIBLE;
		brief = brief_class_of(task);
		if (brief) {
			hot->off_brief = brief - 1;
		} else {
			hot->off_ns = bpf_ktime_get_ns();
			hot->stack = stack_of(ctx, task);
		}
	} else if (state & (TASK_DEAD | EXIT_DEAD_OR_ZOMBIE)) {
		hot->off_clock = 0;
	} else {
		hot->off_state = WAIT_OTHER;
		hot->off_brief = other_brief(state);
	}
}

/*
 * Returns whether the end of this turn on a processor may count. The summary mode only
 * keeps uninterruptible sleeps, which are the waits for storage. Any other switch then
 * costs neither a clock nor a look at the thread's state.
 */
static __always_inline bool leaving_counts(struct task_struct *prev, bool preempted)
{
	if (config.summary)
		return !preempted && sleeps_uninterruptibly(prev->__state);
	return prev->pid;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	struct hot *hot;
	u64 clock = 0;

	if (leaving_counts(prev, preempted)) {
		hot = hot_of(prev);
		if (hot) {
			clock = scheduler_clock(prev);
			leave(ctx, prev, hot, preempted, clock);
		}
	}
	if (next->pid) {
		hot = hot_of(next);
		if (hot && hot->off_clock) {
			if (!clock)
				clock = scheduler_clock(next);
			arrive(next, hot, clock, 0, bpf_get_smp_processor_id() + 1);
		}
	}
	return 0;
}

/*
 * Returns whether the time of a wake-up is read. The scheduler's counts give the time
 * when the thread came into a queue, which costs nothing. But on another processor that
 * is some microseconds after the waker has gone on, and the waker's next actions would
 * seem to come before. A message needs no waker's time.
 */
static __always_inline bool needs_wake_up_time(struct hot *hot)
{
	if (hot->off_ns || !has_scheduler_clock())
		return true;
	return config.wake_ups && hot->off_brief != BRIEF_PIPE_SOCKET;
}

/* Returns whether a used-up quota keeps a thread from running in the kernel, too. */
static __always_inline bool waits_when_woken(struct task_struct *task)
{
	return !bpf_core_field_exists(task->throttled) && is_throttled(task);
}

/* Not used in the summary mode, which does not separate blocked from runnable. */
SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *task)
{
	struct hot *hot = hot_of(task);

	if (!hot || !hot->off_clock)
		return 0;
	hot->waker = in_timer() ? 0 : bpf_get_current_pid_tgid();
	hot->woken_throttled = waits_when_woken(task);
	if (hot->woken_throttled || needs_wake_up_time(hot))
		hot->woken_ns = bpf_ktime_get_ns();
	return 0;
}

#endif /* LUC_OFF_CPU_WAITS_H */
