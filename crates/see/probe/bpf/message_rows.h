/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads that send, and the rows of what is sent and received. */
#ifndef LUC_MESSAGE_ROWS_H
#define LUC_MESSAGE_ROWS_H

/* A thread that sends. */
struct talker {
	/* Thread of this place in the array; 0 for none. */
	u32 thread;
	u32 send_connection;
	/* The socket's upper protocol makes other bytes of those that are sent. */
	u32 send_upper;
	u32 reserved;
	/* The socket of the send that it is in, and where this began; 0: none. */
	u64 send_sock;
	u64 send_ns;
	u64 send_first;
	/* Bytes of the call that were left to send then, and bytes that have rows already. */
	u64 send_left;
	u64 send_done;
	/* Begin of its call that may write into a pipe. */
	u64 call_ns;
} __attribute__((aligned(64)));

/*
 * Talkers by thread id, as in the array of recorded threads: the task's storage costs
 * several times as much.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct talker);
} places SEC(".maps");

/* Talkers whose place is taken by another thread. */

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct talker);
} talkers SEC(".maps");

static __always_inline struct talker *talker_place(struct task_struct *task)
{
	u32 index = task->pid & config.hot_mask;

	return bpf_map_lookup_elem(&places, &index);
}

/* NULL: the thread has not sent. */
static __always_inline struct talker *talker_of(struct task_struct *task)
{
	struct talker *place = talker_place(task);

	if (!place || !place->thread)
		return NULL;
	if (place->thread == task->pid)
		return place;
	return bpf_task_storage_get(&talkers, task, NULL, 0);
}

static __always_inline struct talker *made_talker(struct task_struct *task)
{
	struct talker *place = talker_place(task), *talker;
	u32 thread = task->pid;

	if (!place || place->thread == thread)
		return place;
	if (!place->thread && !__sync_val_compare_and_swap(&place->thread, 0, thread))
		return place;
	talker = made_for_task(&talkers, task);
	if (!talker)
		count_lost(LOST_MAP_THREADS);
	return talker;
}

static __always_inline void send_message(struct task_struct *task, struct hot *hot, u32 flow,
					 u32 connection, u64 at_ns, u64 first, u64 bytes)
{
	struct record_message record = {
		.kind = RECORD_MESSAGE,
		.connection = connection,
		.thread = task->pid,
		.process = task->tgid,
		.at_ns = at_ns,
		.first_byte = first,
		.bytes = bytes,
		.flow = flow,
	};

	introduce_hot(task, hot);
	gather_message(&record);
	count_current(task, COUNT_MESSAGE_NS);
}

#endif /* LUC_MESSAGE_ROWS_H */
