/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests on watched disks, from their submission to their completion. */
#ifndef LUC_DISK_USE_H
#define LUC_DISK_USE_H

/* Submitter of a future request, and the time. */
struct submission {
	struct owner owner;
	u64 at_ns;
};

/* Submissions by the bio's address; only used without the tracepoint block_io_start. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, u64);
	__type(value, struct submission);
} submissions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} notifications SEC(".maps");

static __always_inline void send(struct owner *owner, u32 disk, u32 kind, u64 now)
{
	struct notification *notification;

	notification = bpf_ringbuf_reserve(&notifications, sizeof(*notification), 0);
	if (!notification) {
		count_unkept(UNKEPT_NOTIFICATION);
		return;
	}
	notification->at_ns = now;
	notification->task = owner->task;
	notification->generation = owner->generation;
	notification->disk = disk;
	notification->kind = kind;
	/* Wakes the reader, unless it was woken for a record that it has not taken yet. */
	bpf_ringbuf_submit(notification, 0);
}

static __always_inline void notify(struct owner *owner, u32 disk, u32 kind, u64 now)
{
	if (control_of(owner->task)->notify & kind)
		send(owner, disk, kind, now);
}

/* The task has one more thing that it may wait for. */
static __always_inline void add_outstanding(struct owner *owner, u32 disk, u64 now)
{
	struct task_sums *sums = sums_of(owner, disk);

	sums->last_submit_ns = now;
	if (__sync_fetch_and_add(&sums->outstanding, 1) == 0) {
		__sync_fetch_and_add(&sums->active_ns, -now);
		notify(owner, disk, NOTIFY_SUBMIT, now);
	}
}

static __always_inline void end_outstanding(struct owner *owner, u32 disk, u64 now)
{
	struct task_sums *sums = sums_of(owner, disk);

	if (__sync_fetch_and_add(&sums->outstanding, -1) == 1) {
		__sync_fetch_and_add(&sums->active_ns, now);
		notify(owner, disk, NOTIFY_DONE, now);
	}
}

static __always_inline void give_to_driver(struct disk_sums *disk, u64 now)
{
	if (__sync_fetch_and_add(&disk->in_flight, 1) == 0)
		__sync_fetch_and_add(&disk->busy_ns, -now);
}

static __always_inline void take_from_driver(struct disk_sums *disk, u64 now)
{
	if (__sync_fetch_and_add(&disk->in_flight, -1) == 1)
		__sync_fetch_and_add(&disk->busy_ns, now);
}

static __always_inline bool is_passthrough(struct request *rq)
{
	u32 operation = rq->cmd_flags & REQ_OP_MASK;

	return operation == REQ_OP_DRV_IN || operation == REQ_OP_DRV_OUT;
}

static __always_inline u32 disk_of_request(struct request *rq)
{
	return disk_of(dev_of(rq->q->disk));
}

/* Ends a request that is completed or will not appear again: nobody waits for it. */
static __always_inline bool forget(u64 key, struct request_state *state, u64 now)
{
	/* Another processor, or the other program of a pair, was first. */
	if (!take_request(key))
		return false;
	if (state->issue_ns)
		take_from_driver(disk_sums_of(state->disk), now);
	if (is_valid(&state->owner))
		end_outstanding(&state->owner, state->disk, now);
	return true;
}

static __always_inline void forget_request(struct request *rq)
{
	u64 key = (u64)rq;
	struct request_state state, *known = find_request(key);

	if (!known)
		return;
	state = *known;
	forget(key, &state, bpf_ktime_get_ns());
}

/* A request that was not known. */
static __always_inline void begin(struct request *rq, u32 disk, struct owner *owner, u64 now)
{
	struct request_state new = { .submit_ns = now, .owner = *owner, .disk = disk };
	u64 key = (u64)rq;

	if (!put_request(key, &new)) {
		/* There was one of this address, whose end was missed. */
		forget_request(rq);
		if (!put_request(key, &new)) {
			count_unkept(UNKEPT_REQUEST);
			return;
		}
	}
	if (is_valid(owner))
		add_outstanding(owner, disk, now);
}

/* Since Linux 6.3: in the context of the submitter. */
SEC("tp_btf/block_io_start")
int BPF_PROG(block_io_start, struct request *rq)
{
	u32 disk = disk_of_request(rq);
	struct owner owner;

	if (disk >= LUC_DISKS || is_passthrough(rq))
		return 0;
	owner = submitting_owner();
	begin(rq, disk, &owner, bpf_ktime_get_ns());
	return 0;
}

/*
 * Before: a bio becomes a request in the context of the submitter. The request itself
 * is seen only later.
 */
SEC("tp_btf/block_getrq")
int BPF_PROG(block_getrq, struct bio *bio)
{
	struct block_device *device = bio->bi_bdev;
	struct submission submission;
	u64 key = (u64)bio;

	if (!device || disk_of(dev_of(device->bd_disk)) >= LUC_DISKS)
		return 0;
	submission.owner = submitting_owner();
	submission.at_ns = bpf_ktime_get_ns();
	bpf_map_update_elem(&submissions, &key, &submission, BPF_ANY);
	return 0;
}

/* A request that was not seen to begin. */
static __always_inline void begin_late(struct request *rq, u32 disk, u64 now)
{
	struct owner owner = owner_of(LUC_NOBODY);
	struct submission *submission;
	u64 bio = (u64)rq->bio;

	/* The flush machinery's own, for several callers. */
	if ((rq->cmd_flags & REQ_OP_MASK) == REQ_OP_FLUSH) {
		begin(rq, disk, &owner, now);
		return;
	}
	submission = bpf_map_lookup_elem(&submissions, &bio);
	if (submission) {
		owner = submission->owner;
		now = submission->at_ns;
		bpf_map_delete_elem(&submissions, &bio);
	} else {
		owner = submitting_owner();
	}
	begin(rq, disk, &owner, now);
}

/* Only where block_io_start is missing. */
SEC("tp_btf/block_rq_insert")
int BPF_PROG(block_rq_insert, struct request *rq)
{
	u32 disk = disk_of_request(rq);
	struct request_state *known;
	u64 key = (u64)rq;

	if (disk >= LUC_DISKS || is_passthrough(rq))
		return 0;
	known = find_request(key);
	/* A request that the driver has is not inserted. */
	if (!known || known->issue_ns)
		begin_late(rq, disk, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(block_rq_issue, struct request *rq)
{
	u32 disk = disk_of_request(rq), bytes = rq->__data_len;
	u64 now, key = (u64)rq, sector = rq->__sector;
	struct request_state *known;
	struct disk_sums *sums;

	if (disk >= LUC_DISKS || is_passthrough(rq))
		return 0;
	now = bpf_ktime_get_ns();
	known = find_request(key);
	if (!known || known->issue_ns) {
		begin_late(rq, disk, now);
		known = find_request(key);
		if (!known)
			return 0;
	}
	sums = disk_sums_of(disk);
	known->issue_ns = now;
	if (!known->bytes)
		known->bytes = bytes;
	if (bytes) {
		u64 end = sector + (bytes >> 9);

		known->sequential = __sync_lock_test_and_set(&sums->next_sector, end) == sector;
		if (is_valid(&known->owner))
			known->continued =
				__sync_lock_test_and_set(&sums_of(&known->owner, disk)->next_sector,
							 end) == sector;
	}
	give_to_driver(sums, now);
	return 0;
}

/* The driver could not take it yet, or only did a part. */
SEC("tp_btf/block_rq_requeue")
int BPF_PROG(block_rq_requeue, struct request *rq)
{
	u64 key = (u64)rq;
	struct request_state *known;

	if (disk_of_request(rq) >= LUC_DISKS)
		return 0;
	known = find_request(key);
	if (!known || !known->issue_ns)
		return 0;
	known->issue_ns = 0;
	take_from_driver(disk_sums_of(known->disk), bpf_ktime_get_ns());
	return 0;
}

/* The request became a part of another one, with which its bytes count. */
SEC("tp_btf/block_rq_merge")
int BPF_PROG(block_rq_merge, struct request *rq)
{
	if (disk_of_request(rq) < LUC_DISKS)
		forget_request(rq);
	return 0;
}

static __always_inline void add_device_time(struct request_state *state, u32 operation, u64 now)
{
	struct disk_sums *disk = disk_sums_of(state->disk);
	u64 bytes = operation == REQ_OP_READ || operation == REQ_OP_WRITE ? state->bytes : 0;
	u64 before = __sync_lock_test_and_set(&disk->last_complete_ns, now), device_ns = 0;
	u64 since = before;
	struct task_sums *task;

	if (since < state->issue_ns)
		since = state->issue_ns;
	/* Else another processor's completion is later. */
	if (now > since)
		device_ns = now - since;
	__sync_fetch_and_add(&disk->bytes, bytes);
	__sync_fetch_and_add(&disk->requests, 1);
	if (!is_valid(&state->owner)) {
		__sync_fetch_and_add(&disk->unowned_bytes, bytes);
		__sync_fetch_and_add(&disk->unowned_device_ns, device_ns);
		return;
	}
	task = sums_of(&state->owner, state->disk);
	if (operation == REQ_OP_READ)
		__sync_fetch_and_add(&task->bytes_read, bytes);
	else
		__sync_fetch_and_add(&task->bytes_written, bytes);
	if (operation != REQ_OP_READ) {
		__sync_fetch_and_add(&task->writes, 1);
		__sync_fetch_and_add(&task->write_ns, device_ns);
	}
	__sync_fetch_and_add(&task->requests, 1);
	if (state->sequential)
		__sync_fetch_and_add(&task->sequential, 1);
	if (state->sequential && operation == REQ_OP_READ) {
		__sync_fetch_and_add(&task->sequential_reads, 1);
		__sync_fetch_and_add(&task->sequential_bytes, bytes);
		__sync_fetch_and_add(&task->sequential_ns, device_ns);
		if (now > before)
			__sync_fetch_and_add(&task->sequential_apart_ns, now - before);
	}
	if (state->continued)
		__sync_fetch_and_add(&task->continued, 1);
	if (state->issue_ns > state->submit_ns)
		__sync_fetch_and_add(&task->queue_ns, state->issue_ns - state->submit_ns);
	__sync_fetch_and_add(&task->device_ns, device_ns);
}

static __always_inline void complete(struct request *rq)
{
	u32 operation = rq->cmd_flags & REQ_OP_MASK;
	struct request_state state, *known;
	u64 now, key = (u64)rq;

	if (disk_of_request(rq) >= LUC_DISKS)
		return;
	known = find_request(key);
	if (!known)
		return;
	state = *known;
	now = bpf_ktime_get_ns();
	/* One that was never issued only waited for a flush. */
	if (state.issue_ns)
		add_device_time(&state, operation, now);
	if (is_valid(&state.owner))
		sums_of(&state.owner, state.disk)->last_complete_ns = now;
	forget(key, &state, now);
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(block_rq_complete, struct request *rq, int status, unsigned int bytes)
{
	/* Unless a part only; the rest follows. */
	if (bytes >= rq->__data_len)
		complete(rq);
	return 0;
}

/* Used without block_io_done. */
SEC("tp_btf/block_rq_complete")
int BPF_PROG(block_rq_complete_2, struct request *rq, int status, unsigned int bytes)
{
	if (bytes >= rq->__data_len)
		complete(rq);
	return 0;
}

/* Since Linux 6.3, unless the disk's statistics are off: shortly after. */
SEC("tp_btf/block_io_done")
int BPF_PROG(block_io_done, struct request *rq)
{
	complete(rq);
	return 0;
}

#endif /* LUC_DISK_USE_H */
