/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counts of the processors' counters while a recorded thread runs. User space opens
 * each event on each processor; the kernel chooses the events with a counter. They are
 * read when a recorded thread leaves a processor or comes to it, when it sends or
 * receives a message, and when user space asks.
 *
 * Each thread has sums, which become a record now and then.
 */
#ifndef LUC_HARDWARE_COUNTS_H
#define LUC_HARDWARE_COUNTS_H

/* Minimum time between two records of a thread that leaves its processor. */
#define COUNT_SWITCH_NS 50000000
/*
 * Minimum time between two records of a thread that sends or receives: short requests
 * may share one.
 */
#define COUNT_MESSAGE_NS 100000

struct counted {
	struct record_counts head;
	struct count counts[LUC_COUNTERS];
};

/* Counts of a processor's events when they were last read. */
struct counter_place {
	/* A program is using it. */
	u32 busy;
	/* The counts have been read. */
	u32 known;
	u64 at_ns;
	struct count counts[LUC_COUNTERS];
};

/* Counters by event and processor. The size is set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} counter_events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counter_place);
} counter_places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct counted);
} counted_threads SEC(".maps");

/*
 * Makes the sums of a recorded thread. Not while it leaves a processor, where no memory
 * can be allocated.
 */
static __always_inline void make_counted(struct task_struct *task, struct thread *thread)
{
	if (!config.counters || !thread->tracked)
		return;
	if (!made_for_task(&counted_threads, task))
		count_lost(LOST_MAP_THREADS);
}

/* Returns NULL if the thread is not recorded. */
static __always_inline struct counted *counted_of(struct task_struct *task)
{
	return hot_of(task) ? bpf_task_storage_get(&counted_threads, task, NULL, 0) : NULL;
}

/*
 * Adds the counts of this processor's events since they were last read to a thread, if
 * there is one.
 */
static __always_inline void read_counters(struct counter_place *place, struct counted *counted,
					  u64 now)
{
	u32 processor = bpf_get_smp_processor_id(), i;
	struct bpf_perf_event_value value;

	/* The time since then is another thread's, or was not counted. */
	if (!place->known)
		counted = NULL;
	/*
	 * Otherwise the compiler tests known again instead of counted, which the
	 * verifier of Linux 6.1 does not understand.
	 */
	barrier_var(counted);
	if (counted && !counted->head.since_ns)
		counted->head.since_ns = place->at_ns;
	for (i = 0; i < LUC_COUNTERS; i++) {
		struct count *before = &place->counts[i];

		if (i >= config.counters)
			break;
		if (bpf_perf_event_read_value(&counter_events, i * config.processors + processor,
					      &value, sizeof(value)))
			continue;
		if (counted) {
			counted->counts[i].value += value.counter - before->value;
			counted->counts[i].enabled_ns += value.enabled - before->enabled_ns;
			counted->counts[i].running_ns += value.running - before->running_ns;
		}
		before->value = value.counter;
		before->enabled_ns = value.enabled;
		before->running_ns = value.running;
	}
	place->known = 1;
	place->at_ns = now;
}

/* Returns whether there was room; else the next record has it, too. */
static __always_inline bool send_counts(struct task_struct *task, struct counted *counted, u64 now)
{
	u32 bytes = sizeof(counted->head) + config.counters * sizeof(counted->counts[0]);
	struct hot *hot = hot_of(task);
	u32 i;

	if (!counted->head.since_ns)
		return true;
	if (hot)
		introduce_hot(task, hot);
	counted->head.kind = RECORD_COUNTS;
	counted->head.thread = task->pid;
	counted->head.process = task->tgid;
	counted->head.cgroup = hot ? hot->cgroup : 0;
	counted->head.at_ns = now;
	if (bpf_ringbuf_output(&records, counted, bytes, BPF_RB_NO_WAKEUP))
		return false;
	for (i = 0; i < LUC_COUNTERS; i++) {
		/* The compiler makes a call of a loop that clears much. */
		volatile struct count *count = &counted->counts[i];

		if (i >= config.counters)
			break;
		count->value = 0;
		count->enabled_ns = 0;
		count->running_ns = 0;
	}
	counted->head.since_ns = now;
	return true;
}

/* Reads the counters for `counted`, the running thread's sums; NULL if it is not recorded. */
static __always_inline void count_until(struct counted *counted, u64 now)
{
	u32 zero = 0;
	struct counter_place *place = bpf_map_lookup_elem(&counter_places, &zero);

	if (!place || place->busy)
		return;
	place->busy = 1;
	barrier();
	read_counters(place, counted, now);
	barrier();
	place->busy = 0;
}

/*
 * Reads the counters for the current thread, and sends a record if the last one is
 * older than least_ns. Returns whether there was room for it.
 */
static __always_inline bool count_current(struct task_struct *task, u64 least_ns)
{
	struct counted *counted;
	u64 now;

	if (!config.counters)
		return true;
	counted = counted_of(task);
	if (!counted)
		return true;
	now = bpf_ktime_get_ns();
	if (counted->head.since_ns && now - counted->head.since_ns < least_ns)
		return true;
	count_until(counted, now);
	return send_counts(task, counted, now);
}

/* Sends the last counts of a thread that ends. */
static __always_inline void count_last(struct task_struct *task)
{
	if (!count_current(task, 0))
		count_lost(LOST_COUNTER);
}

/* Sends the counts of a thread since its last record when recording ends. */
static __always_inline void send_last_counts(struct task_struct *task)
{
	struct counted *counted;

	if (!config.counters)
		return;
	counted = bpf_task_storage_get(&counted_threads, task, NULL, 0);
	if (counted && !send_counts(task, counted, bpf_ktime_get_ns()))
		count_lost(LOST_COUNTER);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(count_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	struct counted *counted = prev->pid ? counted_of(prev) : NULL;
	u64 now;

	if (!counted && !(next->pid && hot_of(next)))
		return 0;
	now = bpf_ktime_get_ns();
	count_until(counted, now);
	if (counted && now - counted->head.since_ns >= COUNT_SWITCH_NS)
		send_counts(prev, counted, now);
	return 0;
}

/* User space runs it on each processor, for a thread that does not leave its one. */
SEC("raw_tp")
int count_running(void *ctx)
{
	count_current(bpf_get_current_task_btf(), COUNT_SWITCH_NS);
	return 0;
}

#endif /* LUC_HARDWARE_COUNTS_H */
