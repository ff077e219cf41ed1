/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* State of each thread, the choice of recorded ones, and the ways out to user space. */
#ifndef LUC_THREAD_STATE_H
#define LUC_THREAD_STATE_H

/* In a section of its own, so that user space sets all of the map at once. */
const volatile struct luc_config config SEC(".rodata.config") = {};

/* The map of each pair that is being filled; user space empties the other. */
u32 epoch SEC(".data.epoch") = 0;

/* Counts entries of both maps of all pairs: if it does not change, there is nothing to empty. */
u32 inserted SEC(".data.inserted") = 0;

/* Whether the programs on system calls are attached; user space turns them on and off. */
u32 calls_attached SEC(".data.calls") = 0;

/* Counts what recorded threads do that makes system calls worth looking at. */
u32 file_activity SEC(".data.activity") = 0;

/* Threads that the last visit before recording found no memory for. */
u32 without_state SEC(".data.without") = 0;

/*
 * State that each switch to and from a recorded thread needs. It is in an array by
 * thread id, because finding it in the task's storage would be most of the cost.
 */
struct hot {
	/* Thread of this place; 0 for none. */
	u32 thread;
	/* Some other thread with this place in the array has its own in its storage. */
	u32 shared;
	/* Off the processor since, by scheduler_clock(); 0: running. */
	u64 off_clock;
	/* Its total wait for a processor by then. */
	u64 run_delay_ns;
	/* Off since, and woken; 0: this clock, which costs more, was not looked at. */
	u64 off_ns;
	u64 woken_ns;
	u32 waker;
	u32 stack;
	u32 off_transaction;
	u32 off_dev;
	u8 off_state;
	u8 off_brief;
	u8 in_sync;
	/* A row of the task table has been sent. */
	u8 introduced;
	/* Whether its cgroup had used up its quota when it was woken. */
	u8 woken_throttled;
	u8 reserved[3];
	u64 cgroup;
	u64 brief_since_ns;
	u64 brief_since_clock;
	struct brief_sum brief[LUC_BRIEF];
	/* Neighbours in the array run on different processors, and each switch writes to both. */
} __attribute__((aligned(64)));

struct thread {
	u64 cgroup;
	/* The system call that it is in, if it is of interest. */
	u64 call_ns;
	u64 call_inode;
	u64 handle_ns;
	/* The fast commit that it is in, or waits for. */
	u64 fast_start_ns;
	/* The fsync or the like that it is in. */
	u64 file_system_enter_ns;
	u64 file_system_exit_ns;
	u64 sync_inode;
	struct inode *inode;
	u32 wanted_enter;
	u32 wanted_exit;
	u32 sync_dev;
	u32 cpu_enter;
	u32 call_dev;
	u8 call_class;
	/* The call did something to a file system or slept uninterruptibly. */
	u8 took_part;
	u8 datasync;
	u8 in_tree;
	u8 tracked;
	/* A row of the task table has been sent. */
	u8 seen;
	/* `hot` is used, as the place in the array is another thread's. */
	u8 displaced;
	/* The row of its end has been sent. */
	u8 exited;
	struct hot hot;
};

/* The size, a power of two, is set before loading. A map that can be mapped begins at a page. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct hot);
} hot_threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

/* Processes, by id, that are in the tree when recording begins. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, u32);
} roots SEC(".maps");

/* The size is set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LOST_PLACES);
	__type(key, u32);
	__type(value, u64);
} lost SEC(".maps");

#define DEFINE_SUMS(name, key_type, value_type, entries)                                           \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_HASH);                                                   \
		__uint(max_entries, entries);                                                      \
		__type(key, key_type);                                                             \
		__type(value, value_type);                                                         \
	} name SEC(".maps")

DEFINE_SUMS(summary_0, struct summary_key, struct summary_sum, 16384);
DEFINE_SUMS(summary_1, struct summary_key, struct summary_sum, 16384);

/*
 * Takes a place. Returns whether an interrupted or preempted program on this processor
 * has it already.
 */
static __always_inline bool occupy(u32 *busy)
{
	return __sync_lock_test_and_set(busy, 1);
}

static __always_inline void vacate(u32 *busy)
{
	barrier();
	*(volatile u32 *)busy = 0;
}

static __always_inline void count_lost_rows(u32 place, u32 rows)
{
	u64 *count = bpf_map_lookup_elem(&lost, &place);

	if (count)
		__sync_fetch_and_add(count, rows);
}

static __always_inline void count_lost(u32 place)
{
	count_lost_rows(place, 1);
}

/* Room for a record; the caller fills every member and submits it. */
#define reserve(type, place)                                                                       \
	({                                                                                         \
		struct type *record_ = bpf_ringbuf_reserve(&records, sizeof(struct type), 0);      \
		if (!record_)                                                                      \
			count_lost(place);                                                         \
		record_;                                                                           \
	})

#define submit(record) bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP)

/* Adds to the sum of key in that map of a pair which is being filled. */
#define sum_of(pair, key_, zero_, place)                                                           \
	({                                                                                         \
		void *map_ = epoch & 1 ? (void *)&pair##_1 : (void *)&pair##_0;                    \
		void *sum_ = bpf_map_lookup_elem(map_, key_);                                      \
		if (!sum_) {                                                                       \
			bpf_map_update_elem(map_, key_, zero_, BPF_NOEXIST);                       \
			sum_ = bpf_map_lookup_elem(map_, key_);                                    \
			if (sum_)                                                                  \
				inserted++;                                                        \
			else                                                                       \
				count_lost(place);                                                 \
		}                                                                                  \
		sum_;                                                                              \
	})

static __always_inline bool device_wanted(u32 dev)
{
	u32 i;

	if (!config.device_count)
		return true;
	for (i = 0; i < LUC_DEVICES; i++) {
		if (i < config.device_count && config.devices[i] == dev)
			return true;
	}
	return false;
}

static __always_inline u64 cgroup_of(struct task_struct *task)
{
	return task->cgroups->dfl_cgrp->kn->id;
}

static __always_inline bool in_wanted_cgroup(struct task_struct *task)
{
	struct cgroup *cgroup = task->cgroups->dfl_cgrp, *above;
	int level = cgroup->level, i;

	if (cgroup->kn->id == config.cgroup)
		return true;
	if (!bpf_core_field_exists(cgroup->ancestors))
		return false;
	for (i = 0; i < 16; i++) {
		if (i >= level)
			break;
		if (bpf_core_read(&above, sizeof(above), &cgroup->ancestors[i]))
			break;
		if (BPF_CORE_READ(above, kn, id) == config.cgroup)
			return true;
	}
	return false;
}

static __always_inline bool same_comm(struct task_struct *task)
{
	char comm[LUC_COMM] = {};
	u32 i;

	bpf_core_read_str(comm, sizeof(comm), &task->comm);
	for (i = 0; i < LUC_COMM; i++) {
		if (comm[i] != config.comm[i])
			return false;
		if (!comm[i])
			break;
	}
	return true;
}

static __always_inline struct thread *thread_of(struct task_struct *task)
{
	return bpf_task_storage_get(&threads, task, NULL, 0);
}

static __always_inline struct hot *place_of(struct task_struct *task)
{
	u32 index = task->pid & config.hot_mask;

	return bpf_map_lookup_elem(&hot_threads, &index);
}

/* NULL: the thread is not recorded. */
static __always_inline struct hot *hot_of(struct task_struct *task)
{
	struct hot *place = place_of(task);
	struct thread *thread;

	if (!place || place->thread == task->pid)
		return place;
	if (!place->shared)
		return NULL;
	thread = thread_of(task);
	return thread && thread->displaced ? &thread->hot : NULL;
}

static __always_inline void track(struct task_struct *task, struct thread *thread)
{
	struct hot *place = place_of(task);

	if (thread->tracked || !place)
		return;
	thread->tracked = 1;
	if (place->thread && place->thread != task->pid) {
		place->shared = 1;
		thread->displaced = 1;
		return;
	}
	place->thread = task->pid;
	place->off_clock = 0;
	place->in_sync = 0;
	place->introduced = 0;
	place->brief_since_ns = 0;
	__builtin_memset(place->brief, 0, sizeof(place->brief));
}

static __always_inline void untrack(struct task_struct *task, struct thread *thread)
{
	struct hot *place = place_of(task);

	thread->tracked = 0;
	thread->displaced = 0;
	if (place && place->thread == task->pid)
		place->thread = 0;
}

static __always_inline bool is_wanted(struct task_struct *task, struct thread *thread)
{
	if (task->flags & PF_KTHREAD)
		return false;
	if (task->tgid == config.own_process)
		return false;
	if (config.tree && !thread->in_tree)
		return false;
	if (config.comm_length && !same_comm(task) && !same_comm(task->group_leader))
		return false;
	if (config.cgroup && !in_wanted_cgroup(task))
		return false;
	return true;
}

static __always_inline void set_cgroup(struct task_struct *task, struct thread *thread, u64 cgroup)
{
	struct hot *hot = hot_of(task);

	thread->cgroup = cgroup;
	if (hot)
		hot->cgroup = cgroup;
}

/*
 * Decides whether the thread is recorded: at first, and after fork, exec and a move to
 * another cgroup.
 */
static __always_inline void decide(struct task_struct *task, struct thread *thread)
{
	if (is_wanted(task, thread))
		track(task, thread);
	else if (thread->tracked)
		untrack(task, thread);
	set_cgroup(task, thread, cgroup_of(task));
}

/* The running thread's state, made if it has none. */
static __always_inline struct thread *current_thread(struct task_struct *task)
{
	struct thread *thread = thread_of(task), *above;

	if (thread)
		return thread;
	thread = made_for_task(&threads, task);
	if (!thread) {
		count_lost(LOST_MAP_THREADS);
		return NULL;
	}
	/* There is no event when io_uring's workers are created. */
	above = thread_of(task->group_leader);
	thread->in_tree = above && above->in_tree;
	decide(task, thread);
	return thread;
}

static __always_inline u64 thread_pointer_of(struct task_struct *task)
{
	if (bpf_core_field_exists(task->thread.fsbase))
		return task->thread.fsbase;
	if (bpf_core_field_exists(task->thread.uw))
		return task->thread.uw.tp_value;
	return 0;
}

/*
 * Returns the function of a new thread. Its creator, whose memory it shares, is the
 * current thread: many threads have ended before user space looks. User space knows the
 * processes whose C library has this offset.
 */
static __always_inline u64 routine_of(struct task_struct *task, struct task_struct *creator,
				      u64 thread_pointer)
{
	u64 routine = 0;

	if (config.routine_offset && thread_pointer && task->mm == creator->mm)
		bpf_probe_read_user(&routine, sizeof(routine),
				    (void *)(thread_pointer + config.routine_offset));
	return routine;
}

/* `creator` has just made it, and is the current thread; NULL: it was there before. */
static __always_inline void send_task(struct task_struct *task, struct thread *thread, u32 event,
				      struct task_struct *creator)
{
	struct record_task *record = reserve(record_task, LOST_TASK);

	if (!record)
		return;
	record->thread_pointer = thread_pointer_of(task);
	record->routine = 0;
	record->creator = 0;
	if (creator) {
		record->creator = creator->pid;
		record->routine = routine_of(task, creator, record->thread_pointer);
	}
	record->kind = RECORD_TASK;
	record->event = event;
	record->thread = task->pid;
	record->process = task->tgid;
	record->at_ns = bpf_ktime_get_ns();
	record->cgroup = thread->cgroup;
	record->start_ns = task->start_time;
	record->user_ns = task->utime;
	record->system_ns = task->stime;
	record->runtime_ns = task->se.sum_exec_runtime;
	record->parent = task->real_parent->tgid;
	bpf_core_read_str(record->comm, LUC_COMM, &task->comm);
	submit(record);
	thread->seen = 1;
}

/* Makes sure that a thread named in another record has a row with its identity. */
static __always_inline void introduce(struct task_struct *task, struct thread *thread)
{
	if (!thread->seen)
		send_task(task, thread, TASK_SEEN, NULL);
}

/* Does the same for a recorded thread, without a look at its storage if that was done before. */
static __always_inline void introduce_hot(struct task_struct *task, struct hot *hot)
{
	struct thread *thread;

	if (hot->introduced)
		return;
	thread = thread_of(task);
	if (!thread)
		return;
	introduce(task, thread);
	hot->introduced = thread->seen;
}

/* floor(log2), 0 for 0 */
static __always_inline u32 log2_of(u64 value)
{
	u32 log = 0;

#pragma unroll
	for (u32 shift = 32; shift; shift >>= 1) {
		if (value >> shift) {
			value >>= shift;
			log += shift;
		}
	}
	return log;
}

/* Counts an event by its key, into which the duration is filled. */
static __always_inline void summarize(struct summary_key *key, u64 cgroup, u64 duration_ns)
{
	struct summary_sum zero = { .cgroup = cgroup }, *sum;

	key->log2_ns = log2_of(duration_ns);
	sum = sum_of(summary, key, &zero, LOST_MAP_SUMMARY);
	if (!sum)
		return;
	__sync_fetch_and_add(&sum->count, 1);
	__sync_fetch_and_add(&sum->total_ns, duration_ns);
}

#endif /* LUC_THREAD_STATE_H */
