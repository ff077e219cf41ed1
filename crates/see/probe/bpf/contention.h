/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs that add up disks' use share with user space, which maps
 * struct contention and reads it without system calls. This file defines it;
 * src/contention/shared.rs mirrors it, and a test has a C compiler compare both.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC, 0 is "never". Devices are the
 * kernel's dev_t. Sums only grow, until user space gives a place to another.
 */
#ifndef LUC_CONTENTION_H
#define LUC_CONTENTION_H

/* Powers of two: an index is cut off to what is there. */
#define LUC_DISKS 16
#define LUC_TASKS 1024
/* Disks, and devices above them whose file systems wait for them. */
#define LUC_DEVS 32
/* File locks whose refusals are remembered, a power of two. */
#define LUC_LOCKS 64
/* In the place of a task: nobody who is watched. */
#define LUC_NOBODY 0xffffffff

/* What user space is told at once, by flags in task_control. */
enum notify {
	/* It submitted a request, or entered an fsync, and had none before. */
	NOTIFY_SUBMIT = 1,
	/* Its last request was completed, or its last fsync was left. */
	NOTIFY_DONE = 2,
	/* Somebody, watched or not, waits for a file lock: by notify_lock. */
	NOTIFY_LOCK = 4,
};

/* Where something could not be kept: the index of a counter. */
enum unkept {
	/* A request that is not counted at all. */
	UNKEPT_REQUEST,
	UNKEPT_NOTIFICATION,
	/* An inode's writer, so that a flusher's requests for it are nobody's. */
	UNKEPT_WRITER,
	/* An fsync that is not counted as outstanding. */
	UNKEPT_SYNC,
	UNKEPT_PLACES,
};

/* A disk, or a device above it. Written by user space. */
struct watched_dev {
	u32 dev;
	u32 disk;
};

/* Written by user space. */
struct task_control {
	/* Which use of this place it is: what belongs to a former one does not count. */
	u32 generation;
	/* Flags: NOTIFY_*. */
	u32 notify;
};

/* A task's use of one disk. Each is on cache lines of its own. */
struct task_sums {
	u64 bytes_read;
	u64 bytes_written;
	/* Completed requests, and those of them that begin where the request issued before ended.
	 */
	u64 requests;
	u64 sequential;
	/* From submission to issue. */
	u64 queue_ns;
	/* From issue, or the completion of another request if that is later, to completion. */
	u64 device_ns;
	u64 last_submit_ns;
	u64 last_complete_ns;
	/* Requests that are not completed, and fsyncs in progress. */
	u32 outstanding;
	/* Sequential requests that were reads. */
	u32 sequential_reads;
	/* Completed requests that begin where the task's own request issued before ended. */
	u64 continued;
	/* Where that ended. */
	u64 next_sector;
	/* Bytes of sequential_reads, and how long the disk was at them. */
	u64 sequential_bytes;
	u64 sequential_ns;
	/* Completed requests that were no reads, and how long the disk was at them. */
	u64 writes;
	u64 write_ns;
	/* With something outstanding, kept as busy_ns of a disk. */
	u64 active_ns;
	/* From the completion before, to those of sequential_reads. */
	u64 sequential_apart_ns;
	u64 reserved[7];
};

/* Everybody's use of a disk. */
struct disk_sums {
	/*
	 * Less the time when it became busy while it is, so that several processors
	 * may add in any order. Negative, then.
	 */
	u64 busy_ns;
	u64 bytes;
	u64 requests;
	u64 last_complete_ns;
	/* Where the request issued last ends. */
	u64 next_sector;
	u64 unowned_bytes;
	u64 unowned_device_ns;
	/* Requests that the driver has. */
	u32 in_flight;
	u32 reserved;
};

/*
 * A file lock that the processes of a cgroup tried to take and were refused. Two
 * processors may write one place at once and mix what they write: it is a hint.
 */
struct refused_lock {
	u64 cgroup;
	u64 inode;
	u64 first_byte;
	u64 last_byte;
	/* When it was refused last. */
	u64 last_ns;
	u32 dev;
	/* Whether it is one of flock. */
	u32 is_flock;
	/* Who was refused last. */
	u32 process;
	/* How often in a row; 0 once one of the cgroup took it. */
	u32 refusals;
	/* How often one of the cgroup took it after a refusal. */
	u32 takings;
	/* How often another one took it meanwhile. */
	u32 takings_by_others;
};

struct contention {
	/* Written by user space. A task's place that was found in another generation holds no
	 * longer. */
	u32 generation;
	u32 tasks_watched;
	u32 threads_watched;
	u32 dev_count;
	struct watched_dev devs[LUC_DEVS];
	struct task_control tasks[LUC_TASKS];
	/* Written by the programs. */
	u64 unkept[UNKEPT_PLACES];
	/* Waits for file locks that began. */
	u64 lock_waits;
	/* Refusals of locks that were refused before. */
	u64 lock_refusals;
	/* Set by user space, to be told of the next of both; the programs take it back. */
	u32 notify_lock;
	/* Whether a lock was ever refused. */
	u32 lock_refused;
	u32 reserved[14];
	struct refused_lock refused[LUC_LOCKS];
	struct disk_sums disks[LUC_DISKS];
	struct task_sums sums[LUC_DISKS][LUC_TASKS];
};

/* What the ring buffer carries. */
struct notification {
	u64 at_ns;
	u32 task;
	u32 generation;
	u32 disk;
	/* NOTIFY_SUBMIT or NOTIFY_DONE. */
	u32 kind;
};

#endif /* LUC_CONTENTION_H */
