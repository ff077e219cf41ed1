/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory shared by user space and the programs that add up disks' use. User space maps
 * struct contention and reads it without system calls. This file defines it;
 * src/disk_contention/shared_memory.rs mirrors it, and a test compares both with a C compiler.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC, 0 is "never". Devices are the kernel's
 * dev_t. Sums only grow, until user space reuses a place.
 */
#ifndef LUC_CONTENTION_H
#define LUC_CONTENTION_H

/* Powers of two: an index is masked to the size. */
#define LUC_DISKS 16
#define LUC_TASKS 1024
/* Disks, and devices above them whose file systems wait for them. */
#define LUC_DEVS 32
/* File locks whose refusals are remembered, a power of two. */
#define LUC_LOCKS 64
/* Place of no task: nobody watched. */
#define LUC_NOBODY 0xffffffff

/* Notifications to user space, by flags in task_control. */
enum notify {
	/* The task submitted a request, or entered an fsync, and had none before. */
	NOTIFY_SUBMIT = 1,
	/* The task's last request was completed, or its last fsync was left. */
	NOTIFY_DONE = 2,
	/* A process, watched or not, waits for a file lock: by notify_lock. */
	NOTIFY_LOCK = 4,
};

/* Counters of events that could not be kept. */
enum unkept {
	/* Requests that are not counted at all. */
	UNKEPT_REQUEST,
	UNKEPT_NOTIFICATION,
	/* Writers of inodes, so that nobody owns a flusher's requests for these. */
	UNKEPT_WRITER,
	/* fsyncs that are not counted as outstanding. */
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
	/* Number of this use of the place: requests of a former use do not count. */
	u32 generation;
	/* Flags: NOTIFY_*. */
	u32 notify;
};

/* A task's use of a disk. Each is on separate cache lines. */
struct task_sums {
	u64 bytes_read;
	u64 bytes_written;
	/*
	 * Completed requests, and those of them that begin where the previously issued
	 * request ended.
	 */
	u64 requests;
	u64 sequential;
	/* Time from submission to issue. */
	u64 queue_ns;
	/*
	 * Time from issue, or from the completion of another request if that is later,
	 * to completion.
	 */
	u64 device_ns;
	u64 last_submit_ns;
	u64 last_complete_ns;
	/* Requests that are not completed, and fsyncs in progress. */
	u32 outstanding;
	/* Sequential requests that were reads. */
	u32 sequential_reads;
	/* Completed requests that begin where the task's previously issued request ended. */
	u64 continued;
	/* End of that request. */
	u64 next_sector;
	/* Bytes and device time of sequential_reads. */
	u64 sequential_bytes;
	u64 sequential_ns;
	/* Completed requests that were no reads, and their device time. */
	u64 writes;
	u64 write_ns;
	/* Time with something outstanding, stored as busy_ns of a disk. */
	u64 active_ns;
	/* Time from the previous completion to those of sequential_reads. */
	u64 sequential_apart_ns;
	u64 reserved[7];
};

/* Everybody's use of a disk. */
struct disk_sums {
	/*
	 * Busy time. While the disk is busy, the time when it became busy is
	 * subtracted, so that several processors may add in any order. The sum is
	 * negative then.
	 */
	u64 busy_ns;
	u64 bytes;
	u64 requests;
	u64 last_complete_ns;
	/* End of the last issued request. */
	u64 next_sector;
	u64 unowned_bytes;
	u64 unowned_device_ns;
	/* Requests that the driver has. */
	u32 in_flight;
	u32 reserved;
};

/*
 * A file lock that was refused to the processes of a cgroup. Two processors may write
 * to a place at once and mix their values: it is a hint.
 */
struct refused_lock {
	u64 cgroup;
	u64 inode;
	u64 first_byte;
	u64 last_byte;
	/* Time of the last refusal. */
	u64 last_ns;
	u32 dev;
	/* Whether it is a lock of flock. */
	u32 is_flock;
	/* Process that was refused last. */
	u32 process;
	/* Refusals in a row; 0 once a process of the cgroup took it. */
	u32 refusals;
	/* Times that a process of the cgroup took it after a refusal. */
	u32 takings;
	/* Times that another process took it meanwhile. */
	u32 takings_by_others;
};

struct contention {
	/* Written by user space. A task's place from another generation is no longer valid. */
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
	/* Set by user space to be notified of the next of both, and cleared by the programs. */
	u32 notify_lock;
	/* Whether a lock was ever refused. */
	u32 lock_refused;
	u32 reserved[14];
	struct refused_lock refused[LUC_LOCKS];
	struct disk_sums disks[LUC_DISKS];
	struct task_sums sums[LUC_DISKS][LUC_TASKS];
};

/* Record of the ring buffer. */
struct notification {
	u64 at_ns;
	u32 task;
	u32 generation;
	u32 disk;
	/* NOTIFY_SUBMIT or NOTIFY_DONE. */
	u32 kind;
};

#endif /* LUC_CONTENTION_H */
