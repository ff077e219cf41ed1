/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of kernel types that the programs read, written by hand: with
 * preserve_access_index the loader moves each access to where the running
 * kernel has the field, so only names and kinds matter here.
 */
#ifndef LUC_KERNEL_TYPES_H
#define LUC_KERNEL_TYPES_H

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __s32 s32;
typedef __u64 u64;
typedef __s64 s64;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

/* The user-space interface of BPF. */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_STACK_TRACE = 7,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
};

enum {
	BPF_F_NO_PREALLOC = 1U << 0,
	BPF_F_MMAPABLE = 1U << 10,
};

enum {
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1U << 0,
};

enum {
	BPF_RB_NO_WAKEUP = 1U << 0,
};

/* Numbers that no type information carries. */
#define PF_KTHREAD 0x00200000
#define TASK_INTERRUPTIBLE 0x0001
#define TASK_UNINTERRUPTIBLE 0x0002
#define TASK_STOPPED 0x0004
#define TASK_TRACED 0x0008
#define TASK_NOLOAD 0x0400
/* Since Linux 6.1; before, no state has this bit. */
#define TASK_FROZEN 0x8000
#define EXIT_DEAD_OR_ZOMBIE 0x0030
#define TASK_DEAD 0x0080
#define S_IFMT 0170000
#define S_IFIFO 0010000
#define S_IFREG 0100000
#define S_IFSOCK 0140000
#define EXT4_SUPER_MAGIC 0xEF53
#define PIPEFS_MAGIC 0x50495045
#define FMODE_WRITE 2
#define O_CREAT 0100
#define F_UNLCK 2
#define EAGAIN 11
/* First result of a lock call that has to wait. */
#define FILE_LOCK_DEFERRED 1
#define MS_SYNC 4
#define PAGE_SHIFT_4K 12
/* x86-64 has the kernel and its modules from here on (__START_KERNEL_map). */
#define KERNEL_TEXT 0xffffffff80000000

#define REQ_OP_MASK 0xff
#define REQ_OP_READ 0
#define REQ_OP_WRITE 1
#define REQ_OP_FLUSH 2
#define REQ_OP_DRV_IN 34
#define REQ_OP_DRV_OUT 35
#define IOCB_WRITE (1 << 18)

struct block_device;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	u64 id;
};

struct cgroup {
	int level;
	struct kernfs_node *kn;
	struct cgroup *ancestors[0];
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct super_block {
	u32 s_dev;
	unsigned long s_magic;
	struct block_device *s_bdev;
	void *s_fs_info;
};

struct inode {
	u16 i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
};

struct address_space {
	struct inode *host;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct qstr d_name;
	struct inode *d_inode;
};

struct path {
	struct dentry *dentry;
};

struct file {
	unsigned int f_mode;
	struct inode *f_inode;
	void *private_data;
	struct path f_path;
};

struct pipe_buffer {
	unsigned int len;
};

struct pipe_inode_info {
	unsigned int head;
	unsigned int tail;
	unsigned int max_usage;
	unsigned int ring_size;
	unsigned int writers;
	struct pipe_buffer *bufs;
};

struct file_lock {
	s64 fl_start;
	s64 fl_end;
};

struct file_lock_core {
	unsigned char flc_type;
};

/* Since Linux 6.9. */
struct file_lock___core {
	struct file_lock_core c;
};

struct file_lock___flat {
	unsigned char fl_type;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct kiocb {
	struct file *ki_filp;
	int ki_flags;
};

struct rq {
	u64 clock;
};

struct cfs_rq {
	struct rq *rq;
	/* Since it, or one above it, has used up its quota. */
	int throttle_count;
};

struct sched_entity {
	u64 sum_exec_runtime;
	u64 prev_sum_exec_runtime;
	struct cfs_rq *cfs_rq;
};

struct sched_info {
	unsigned long long run_delay;
	unsigned long long last_arrival;
	unsigned long long last_queued;
};

struct user_thread_pointer {
	unsigned long tp_value;
};

/* `fsbase` is of x86, `uw` of arm64. */
struct thread_struct {
	unsigned long fsbase;
	struct user_thread_pointer uw;
};

struct mm_struct;

struct task_struct {
	unsigned int __state;
	unsigned int flags;
	/* A byte since Linux 7.2. The loader fits the size of a number without a sign only. */
	unsigned int on_cpu;
	struct sched_entity se;
	struct sched_info sched_info;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	u64 utime;
	u64 stime;
	u64 start_time;
	char comm[16];
	struct mm_struct *mm;
	struct files_struct *files;
	struct css_set *cgroups;
	struct thread_struct thread;
	unsigned int frozen : 1;
	/* Since Linux 6.18, which throttles tasks on their way to user space. */
	bool throttled;
};

enum pageflags {
	PG_head = 6,
};

struct folio {
	unsigned long flags;
	unsigned long _flags_1;
};

/* Since Linux 6.18. */
struct memdesc_flags {
	unsigned long f;
};

struct folio___typed_flags {
	struct memdesc_flags flags;
};

/* Linux 5.18 to 6.5. */
struct folio___order_byte {
	unsigned char _folio_order;
};

struct writeback_control {
	long nr_to_write;
};

struct gendisk {
	int major;
	int first_minor;
};

struct block_device {
	u32 bd_dev;
	struct gendisk *bd_disk;
};

struct bio {
	struct block_device *bi_bdev;
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	u32 cmd_flags;
	unsigned int __data_len;
	u64 __sector;
	struct bio *bio;
};

struct transaction_s;

struct journal_s {
	struct transaction_s *j_running_transaction;
	struct block_device *j_fs_dev;
	u32 j_commit_sequence;
	u32 j_commit_request;
};

struct transaction_s {
	u32 t_tid;
};

struct transaction_run_stats_s {
	u32 rs_handle_count;
	u32 rs_blocks;
	u32 rs_blocks_logged;
};

struct transaction_chp_stats_s {
	u32 cs_dropped;
};

struct ext4_inode_info {
	struct inode vfs_inode;
	u32 i_sync_tid;
	u32 i_datasync_tid;
};

struct ext4_sb_info {
	struct journal_s *s_journal;
};

struct bpf_iter_meta;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
};

struct pt_regs___x86 {
	unsigned long di;
	unsigned long si;
	unsigned long dx;
	unsigned long r10;
	unsigned long orig_ax;
};

struct pt_regs___aarch64 {
	u64 regs[31];
	u64 orig_x0;
	s32 syscallno;
};

#pragma clang attribute pop

/* uapi/linux/bpf.h */
struct bpf_perf_event_value {
	u64 counter;
	u64 enabled;
	u64 running;
};

/* Data of a perf event of raw_syscalls: `value` is the first argument, or the result. */
struct raw_call {
	u64 common;
	long number;
	long value;
};

struct bpf_map;
struct page;
struct pt_regs;

#endif /* LUC_KERNEL_TYPES_H */
