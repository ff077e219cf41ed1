/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads that sleep when recording begins or ends: the begin of the sleep, its system
 * call and its cause. Such a wait has no row in the table of waits before it ends.
 */
#ifndef LUC_SLEEPING_THREADS_H
#define LUC_SLEEPING_THREADS_H

/* An open file of a process. Numbers are reused between the begin and the end. */
struct descriptor {
	u32 process;
	u32 fd;
	u32 at_end;
};

/* Connections of files. Filled by the iterators over files, just before that over threads. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct descriptor);
	__type(value, u32);
} descriptors SEC(".maps");

/* Time of the last thread's visit when recording began. */
u64 asleep_looked_ns SEC(".data.asleep") = 0;

/* Whether the scheduler is no longer watched: recording has ended, and not by a cut. */
u32 detached SEC(".data.detached") = 0;

static __always_inline void note_descriptor(struct task_struct *task, u32 fd, u32 connection,
					    bool at_end)
{
	struct descriptor key = { .process = task->tgid, .fd = fd, .at_end = at_end };

	if (bpf_map_update_elem(&descriptors, &key, &connection, BPF_ANY))
		count_lost(LOST_MAP_CONNECTIONS);
}

static __always_inline u32 connection_at(struct task_struct *task, u64 fd, bool at_end)
{
	struct descriptor key = { .process = task->tgid, .fd = fd, .at_end = at_end };
	u32 *connection = bpf_map_lookup_elem(&descriptors, &key);

	return connection ? *connection : 0;
}

/*
 * Returns the time when a sleeping thread left its processor; 0 if unknown. If it was
 * not seen, it follows from the scheduler's counts: the begin of the thread's last
 * turn, and its running time in it. The run queue's clock may be behind by a tick.
 */
static __always_inline u64 asleep_since(struct task_struct *task, struct hot *hot, u64 now)
{
	u64 off_clock = hot->off_clock, clock, distance_ns;

	/* A thread that already slept when recording began has that time here. */
	if (hot->off_ns > asleep_looked_ns)
		return hot->off_ns;
	if (!has_scheduler_clock())
		return 0;
	if (hot->off_ns)
		off_clock = 0;
	if (!off_clock && task->sched_info.last_arrival &&
	    bpf_core_field_exists(task->se.prev_sum_exec_runtime))
		off_clock = task->sched_info.last_arrival + task->se.sum_exec_runtime -
			    task->se.prev_sum_exec_runtime;
	if (!off_clock)
		return 0;
	clock = scheduler_clock(bpf_get_current_task_btf());
	distance_ns = clock > off_clock ? clock - off_clock : 0;
	return distance_ns < now ? now - distance_ns : 0;
}

static __always_inline void send_asleep(struct task_struct *task, struct thread *thread,
					struct hot *hot, u32 state, u32 brief, u64 now, bool at_end)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct record_asleep *record = reserve(record_asleep, LOST_ASLEEP);
	long number;

	if (!record)
		return;
	number = syscall_of_registers(regs);
	record->kind = RECORD_ASLEEP;
	record->state = state;
	record->thread = task->pid;
	record->process = task->tgid;
	record->cgroup = thread->cgroup;
	record->at_ns = now;
	record->since_ns = asleep_since(task, hot, now);
	record->call = number >= 0 && number < LUC_SYSCALLS ? number : LUC_NO_CALL;
	record->argument = argument(regs, 0);
	record->operation = argument(regs, 1);
	record->brief = brief;
	record->reserved = 0;
	record->connection = 0;
	if (brief == BRIEF_PIPE_SOCKET || brief == BRIEF_FULL_PIPE)
		record->connection = connection_at(task, record->argument, at_end);
	__builtin_memset(record->stack, 0, sizeof(record->stack));
	bpf_get_task_stack(task, record->stack, sizeof(record->stack), 0);
	submit(record);
}

/*
 * Gives a wait from before the recording a row, too, as if it began now: its end and
 * its waker will be seen.
 */
static __always_inline void begin_wait(struct task_struct *task, struct hot *hot, u32 state,
				       u32 brief, u64 now)
{
	u64 clock = scheduler_clock(bpf_get_current_task_btf());

	if (hot->off_clock)
		return;
	clear_wait(task, hot);
	hot->off_ns = now;
	hot->off_state = state;
	hot->off_brief = brief;
	/* Not if it has left a processor meanwhile. */
	__sync_val_compare_and_swap(&hot->off_clock, 0, clock);
}

/*
 * Ends the wait of a thread that is awake when recording ends, and was not seen on a
 * processor since it left one: it waits for one, or came to one unseen.
 */
static __always_inline void end_wait(struct task_struct *task)
{
	struct hot *hot = hot_of(task);

	if (!hot || !hot->off_clock)
		return;
	arrive_unseen(task, hot, scheduler_clock(bpf_get_current_task_btf()), 0);
	flush_brief(task, hot, bpf_ktime_get_ns());
}

static __always_inline void look_at_sleeper(struct task_struct *task, bool at_end)
{
	struct thread *thread;
	u32 sleeps, state, brief;
	struct hot *hot;
	u64 now;

	/* A thread on its way to sleep, or awake again, is seen when it leaves or comes. */
	sleeps = task->__state;
	if (!sleeps || sleeps & (TASK_DEAD | EXIT_DEAD_OR_ZOMBIE) || task->on_cpu) {
		if (detached)
			end_wait(task);
		return;
	}
	hot = hot_of(task);
	thread = thread_of(task);
	if (!hot || !thread || thread->exited)
		return;
	brief = other_brief(sleeps);
	state = WAIT_OTHER;
	if (sleeps_uninterruptibly(sleeps)) {
		state = WAIT_UNINTERRUPTIBLE;
	} else if (sleeps & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE)) {
		state = WAIT_INTERRUPTIBLE;
		brief = brief_class_of(task);
		brief = brief ? brief - 1 : BRIEF_OTHER;
	}
	now = bpf_ktime_get_ns();
	introduce(task, thread);
	send_asleep(task, thread, hot, state, brief, now, at_end);
	if (at_end)
		return;
	asleep_looked_ns = now;
	begin_wait(task, hot, state, brief, now);
}

SEC("iter/task")
int asleep_begin(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (task)
		look_at_sleeper(task, false);
	return 0;
}

SEC("iter/task")
int asleep_end(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (task)
		look_at_sleeper(task, true);
	return 0;
}

#endif /* LUC_SLEEPING_THREADS_H */
