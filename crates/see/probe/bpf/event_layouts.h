/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The layouts that the programs share with user space. This file defines them;
 * src/ring_records.rs mirrors them, and its test has a C compiler compare the two.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC, 0 is "not seen". Devices are the
 * kernel's dev_t. Members are ordered so that nothing needs padding.
 */
#ifndef LUC_EVENT_LAYOUTS_H
#define LUC_EVENT_LAYOUTS_H

#define LUC_SYSCALLS 512
#define LUC_DEVICES 8
#define LUC_COMM 16
#define LUC_STACK_DEPTH 48
/* Different stacks that are remembered. */
#define LUC_STACKS 16384
#define LUC_BRIEF 11
/* Events that are counted at most. */
#define LUC_COUNTERS 48
/* In place of a system call's number: in none, or not known. */
#define LUC_NO_CALL 0xffffffff
/* The most messages, or waits, of one record; a power of two. */
#define LUC_BATCH 32
/* Pairs of service and peer whose exchanges are summed apart. */
#define LUC_EXCHANGES 4096
/* Steps of times, and log2 of the first one's nanoseconds; the last has 120 s and more. */
#define LUC_LATENCIES 104
#define LUC_LATENCY_LOG2 10
/* Room for a unix socket's name, a power of two that is more than the longest. */
#define LUC_NAME 128

/*
 * Kind of a record in the ring buffer: its first member. Records of messages and waits
 * may have several rows.
 */
enum record_kind {
	RECORD_SYNC = 1,
	RECORD_COMMIT,
	RECORD_WAIT,
	RECORD_BRIEF,
	RECORD_CALL,
	RECORD_REQUEST,
	RECORD_TASK,
	RECORD_CONNECTION,
	RECORD_MESSAGE,
	RECORD_PACKET,
	RECORD_ASLEEP,
	RECORD_LOCAL,
	RECORD_TOKEN,
	RECORD_COUNTS,
};

/* Counters of events that could not be kept. */
enum lost_place {
	LOST_SYNC,
	LOST_COMMIT,
	LOST_WAIT,
	LOST_BRIEF,
	LOST_CALL,
	LOST_REQUEST,
	LOST_TASK,
	LOST_MAP_HANDLES,
	LOST_MAP_DATA,
	LOST_MAP_SUMMARY,
	LOST_MAP_REQUESTS,
	LOST_MAP_JOURNALS,
	LOST_MAP_THREADS,
	LOST_MAP_STACKS,
	LOST_CONNECTION,
	LOST_MESSAGE,
	LOST_PACKET,
	LOST_MAP_CONNECTIONS,
	LOST_ASLEEP,
	LOST_MAP_EXCHANGES,
	LOST_TOKEN,
	LOST_COUNTER,
	LOST_PLACES,
};

/* Class of a system call. */
enum call_class {
	CALL_NONE,
	/* Syncs; luc_events::SyncKind + CALL_SYNC. */
	CALL_SYNC = 1,
	CALL_SYNC_LAST = CALL_SYNC + 5,
	/* Other calls; luc_events::CallKind + CALL_OTHER. */
	CALL_OTHER = 32,
};

/* Extra things to look at on entering a call. */
enum call_test {
	TEST_NONE,
	/* open flags in the second, third argument */
	TEST_CREATE_2,
	TEST_CREATE_3,
	/* msync flags in the third argument */
	TEST_MSYNC_3,
};

/* Index of a sum of brief waits. */
enum brief_class {
	BRIEF_PREEMPTED,
	BRIEF_FUTEX,
	BRIEF_SLEEP,
	BRIEF_POLL,
	BRIEF_PIPE_SOCKET,
	BRIEF_OTHER,
	BRIEF_FROZEN,
	BRIEF_STOPPED,
	BRIEF_THROTTLED,
	BRIEF_FULL_PIPE,
	BRIEF_ASYNC_IO,
};

/* Flag of a brief_class: of a read or a write, whose file tells more. */
#define BRIEF_BY_FILE 0x80

/* Result of a call that sends. */
enum send_class {
	SEND_NONE,
	SEND_BYTES,
	SEND_MESSAGES,
};

/* Second argument of a call that sends or receives. */
enum buffer_class {
	BUFFER_NONE,
	BUFFER_BYTES,
	BUFFER_VECTOR,
	BUFFER_MESSAGE,
};

/* Use of pipes by a call; from PIPE_WRITES on it may write. */
enum pipe_class {
	PIPE_NONE,
	/* The first argument is read from, or written to. */
	PIPE_READS,
	PIPE_WRITES,
	/* The first is read from, the third written to. */
	PIPE_SPLICES,
};

/* Place of the flags of a call that receives. */
enum receive_class {
	RECEIVE_NONE,
	RECEIVE_PLAIN,
	/* The third, or fourth, argument. */
	RECEIVE_FLAGS_3,
	RECEIVE_FLAGS_4,
};

enum wait_state {
	WAIT_PREEMPTED,
	WAIT_INTERRUPTIBLE,
	WAIT_UNINTERRUPTIBLE,
	WAIT_OTHER,
};

/* Events that the summary mode counts: luc_events::Summarized. */
enum summarized {
	SUMMARIZE_SYNC,
	SUMMARIZE_COMMIT,
	SUMMARIZE_WAIT,
	SUMMARIZE_REQUEST,
	SUMMARIZE_FLUSH,
};

/* Event of a task's row. */
enum task_event {
	TASK_SEEN,
	TASK_EXEC,
	TASK_EXIT,
};

struct record_sync {
	u32 kind;
	u32 sync_kind;
	u32 thread;
	u32 process;
	u64 cgroup;
	u64 inode;
	u64 enter_ns;
	u64 exit_ns;
	u64 file_system_enter_ns;
	u64 file_system_exit_ns;
	u32 dev;
	u32 wanted_enter;
	u32 wanted_exit;
	u32 errno;
	u32 cpu_enter;
	u32 reserved;
};

struct record_commit {
	u32 kind;
	u32 fast;
	u32 dev;
	u32 transaction;
	u64 asked_ns;
	u64 start_ns;
	u64 locking_ns;
	u64 flushing_ns;
	u64 logging_ns;
	u64 end_ns;
	u32 asked_by;
	u32 asked_by_process;
	u32 handles;
	u32 blocks;
	u32 blocks_logged;
	u32 dropped;
};

struct record_wait {
	u32 kind;
	u32 state;
	u32 thread;
	u32 process;
	u64 cgroup;
	u64 off_ns;
	u64 woken_ns;
	u64 on_ns;
	/* Index into the stack map + 1; 0: not taken. */
	u32 stack;
	/* brief_class; holds where there is no stack. */
	u32 brief;
	u32 waker;
	u32 dev;
	u32 transaction;
	/* Its processor at on_ns: the number + 1. */
	u32 processor;
};

/* Brief waits of one kind, summed. */
struct brief_sum {
	u64 count;
	/* Time from leaving the processor to being woken. */
	u64 blocked_ns;
	/* Time from then to being on a processor. */
	u64 runnable_ns;
};

struct record_brief {
	u32 kind;
	u32 thread;
	u32 process;
	u32 reserved;
	u64 cgroup;
	u64 since_ns;
	u64 until_ns;
	struct brief_sum sums[LUC_BRIEF];
};

struct record_call {
	u32 kind;
	u32 call_kind;
	u32 thread;
	u32 process;
	u64 cgroup;
	u64 inode;
	u64 enter_ns;
	u64 exit_ns;
	u64 bytes;
	u32 dev;
	u32 errno;
};

struct record_request {
	u32 kind;
	u32 dev;
	u64 sector;
	u64 insert_ns;
	u64 issue_ns;
	u64 complete_ns;
	u32 bytes;
	/* The kernel's cmd_flags: operation and flags. */
	u32 command;
	u32 issuer;
	u32 issuer_process;
	u32 status;
	u32 reserved;
};

struct record_task {
	u32 kind;
	u32 event;
	u32 thread;
	u32 process;
	u64 at_ns;
	u64 cgroup;
	u64 start_ns;
	u64 user_ns;
	u64 system_ns;
	u64 runtime_ns;
	/* Its thread pointer; 0 if it has none. */
	u64 thread_pointer;
	/* The function that it runs, by its C library; 0: not known. */
	u64 routine;
	u32 parent;
	/* The thread that has just made it; 0: it was there before. */
	u32 creator;
	char comm[LUC_COMM];
};

/* A thread that sleeps when recording begins or ends. */
struct record_asleep {
	u32 kind;
	u32 state;
	u32 thread;
	u32 process;
	u64 cgroup;
	u64 at_ns;
	u64 since_ns;
	/* The first two arguments of the system call. */
	u64 argument;
	u64 operation;
	u32 call;
	/* brief_class; holds where the stack does not tell. */
	u32 brief;
	u32 connection;
	u32 reserved;
	u64 stack[LUC_STACK_DEPTH];
};

#include "network_layouts.h"

/* Head of the rows that a processor has gathered. */
struct batch_head {
	/* A program writes to them. */
	u32 busy;
	u32 count;
};

/* Handles of one kind by one thread in one transaction. */
struct handle_key {
	u32 dev;
	u32 transaction;
	u32 thread;
	u32 type;
};

struct handle_sum {
	u64 at_ns;
	u64 cgroup;
	u64 total_ns;
	u32 process;
	u32 line;
	u32 count;
	u32 requested;
	u32 dirtied;
	u32 reserved;
};

/* Data that went one way, of one file, by one thread, in one 10 ms slot. */
struct data_key {
	u64 inode;
	u64 slot;
	u32 dev;
	u32 thread;
	/* luc_events::Direction */
	u32 direction;
	u32 reserved;
};

struct data_sum {
	u64 bytes;
	u64 cgroup;
	u32 process;
	u32 reserved;
};

/* Key of the summary mode's counts. */
struct summary_key {
	u32 dev;
	u32 process;
	/* luc_events::Summarized */
	u32 what;
	/* As in record_wait. */
	u32 stack;
	u32 brief;
	u32 log2_ns;
};

struct summary_sum {
	u64 count;
	u64 total_ns;
	u64 cgroup;
};

/* Constants for the programs, set before they are loaded. */
/* Count of an event while it had a counter, and the times. */
struct count {
	u64 value;
	u64 enabled_ns;
	u64 running_ns;
};

/* Head of the counts of a thread's events: config.counters of struct count follow. */
struct record_counts {
	u32 kind;
	u32 thread;
	u32 process;
	u32 reserved;
	u64 cgroup;
	u64 since_ns;
	u64 at_ns;
};

struct luc_config {
	/* The only cgroup whose threads are recorded, with those below it. */
	u64 cgroup;
	/* Waits shorter than this are summed, unless they matter. */
	u64 brief_ns;
	u64 brief_flush_ns;
	u64 slot_ns;
	/* Offset of a thread's function from its thread pointer, by the C library; 0 if unknown. */
	u64 routine_offset;
	/* The kernel function that all system calls go through, on x86-64; 0: not known. */
	u64 system_call;
	u64 system_call_bytes;
	/* The recorder, which is not recorded. */
	u32 own_process;
	/* Only processes of the tree: those in `roots` and the recorder's children, and theirs. */
	u32 tree;
	u32 device_count;
	u32 devices[LUC_DEVICES];
	/* Only threads, or threads of a process, of this name. */
	u32 comm_length;
	char comm[LUC_COMM];
	u32 summary;
	/* The size of the array of recorded threads, less one. */
	u32 hot_mask;
	/* The scheduler counts how long threads wait for a processor (sched_info_on). */
	u32 run_delays;
	/* The beginning and the end of sends are seen (tcp_sendmsg_locked, sock_send_length). */
	u32 send_begins;
	u32 send_ends;
	/* Whether wakers of sleeps of any length are recorded. */
	u32 wake_ups;
	/* Names of requests are looked for in their bytes. */
	u32 tokens;
	/* Pipes are recorded. */
	u32 pipes;
	/* Number of counted events, and maximum number of processors. */
	u32 counters;
	u32 processors;
	/* Classes by the number of the system call. */
	u8 call_class[LUC_SYSCALLS];
	u8 call_test[LUC_SYSCALLS];
	/* brief_class + 1, with BRIEF_BY_FILE; 0: only a stack can tell why it sleeps. */
	u8 brief_class[LUC_SYSCALLS];
	u8 send_class[LUC_SYSCALLS];
	u8 buffer_class[LUC_SYSCALLS];
	/* Set where the ends of receives are not seen. */
	u8 receive_class[LUC_SYSCALLS];
	/* All 0 if pipes are not recorded. */
	u8 pipe_class[LUC_SYSCALLS];
};

#endif /* LUC_EVENT_LAYOUTS_H */
