// SPDX-License-Identifier: GPL-2.0
/*
 * lagdisk: RAM disks whose reads, writes and flushes take as long as they are told to, to the
 * nanosecond of the kernel's clock, with a volatile write cache and a power switch.
 *
 * A request changes the memory when it arrives and is done when its timer fires.
 */
#include <linux/module.h>

#include "compat.h"
#include "lagdisk.h"

#define MAX_DISKS 16

static unsigned int disks = 1;
module_param(disks, uint, 0444);
MODULE_PARM_DESC(disks, "Number of disks, 1 to 16");

static unsigned long size_mib = 1024;
module_param(size_mib, ulong, 0444);
MODULE_PARM_DESC(size_mib, "Size of each in MiB; memory is taken when it is written to");

static unsigned int queue_depth = 128;
module_param(queue_depth, uint, 0444);
MODULE_PARM_DESC(queue_depth, "Requests under way at a time, 1 to 1024");

static bool volatile_cache = true;
module_param(volatile_cache, bool, 0444);
MODULE_PARM_DESC(volatile_cache, "Writes are durable only after a flush, or with FUA");

static bool fua;
module_param(fua, bool, 0444);
MODULE_PARM_DESC(fua, "The disk knows FUA; otherwise the kernel sends a flush after the write");

static bool serial;
module_param(serial, bool, 0444);
MODULE_PARM_DESC(serial, "One request at a time; otherwise all at once");

static struct lagdisk_costs costs;
#define COST_PARAMETER(name, text)                                                                 \
	module_param_named(name, costs.name, ullong, 0444);                                        \
	MODULE_PARM_DESC(name, text)
COST_PARAMETER(read_ns, "Time of a read");
COST_PARAMETER(write_ns, "Time of a write");
COST_PARAMETER(read_ns_per_kib, "Time of a read's KiB, in addition");
COST_PARAMETER(write_ns_per_kib, "Time of a write's KiB, in addition");
COST_PARAMETER(flush_ns, "Time of a cache flush");
COST_PARAMETER(fua_ns, "Time of a write's FUA, in addition");

static struct lagdisk *lagdisks[MAX_DISKS];
static int major;

struct command {
	struct hrtimer timer;
	blk_status_t status;
};

static u64 cost_ns(const struct lagdisk *lagdisk, struct request *rq)
{
	const struct lagdisk_costs *costs = &lagdisk->costs;
	u64 bytes = blk_rq_bytes(rq);
	u64 ns;

	switch (req_op(rq)) {
	case REQ_OP_FLUSH:
		return READ_ONCE(costs->flush_ns);
	case REQ_OP_READ:
		return READ_ONCE(costs->read_ns) +
		       (READ_ONCE(costs->read_ns_per_kib) * bytes >> 10);
	default:
		ns = READ_ONCE(costs->write_ns) +
		     (READ_ONCE(costs->write_ns_per_kib) * bytes >> 10);
		if (rq->cmd_flags & REQ_FUA)
			ns += READ_ONCE(costs->fua_ns);
		return ns;
	}
}

/* When a request that arrives now is done. */
static u64 done_at_ns(struct lagdisk *lagdisk, u64 now_ns, u64 cost_ns)
{
	unsigned long flags;
	u64 done;

	if (!lagdisk->serial)
		return now_ns + cost_ns;
	spin_lock_irqsave(&lagdisk->busy_lock, flags);
	done = max(now_ns, lagdisk->busy_until_ns) + cost_ns;
	lagdisk->busy_until_ns = done;
	spin_unlock_irqrestore(&lagdisk->busy_lock, flags);
	return done;
}

static void count(struct lagdisk *lagdisk, struct request *rq)
{
	struct lagdisk_counts *counts = &lagdisk->counts;

	switch (req_op(rq)) {
	case REQ_OP_FLUSH:
		atomic64_inc(&counts->flushes);
		break;
	case REQ_OP_READ:
		atomic64_inc(&counts->reads);
		atomic64_add(blk_rq_bytes(rq), &counts->read_bytes);
		break;
	default:
		atomic64_inc(&counts->writes);
		atomic64_add(blk_rq_bytes(rq), &counts->write_bytes);
		if (rq->cmd_flags & REQ_FUA)
			atomic64_inc(&counts->fuas);
	}
}

/* Does to the memory what the request says. The store's lock is held. */
static int transfer(struct lagdisk *lagdisk, struct request *rq)
{
	bool to_cache = lagdisk->volatile_cache && !(rq->cmd_flags & REQ_FUA);
	struct lagdisk_store *store = &lagdisk->store;
	sector_t sector = blk_rq_pos(rq);
	struct req_iterator iterator;
	struct bio_vec vec;
	int error = 0;

	if (req_op(rq) == REQ_OP_FLUSH)
		return lagdisk_store_flush(store);
	rq_for_each_segment(vec, rq, iterator)
	{
		void *data = bvec_kmap_local(&vec);

		if (rq_data_dir(rq) == WRITE)
			error = lagdisk_store_write(store, sector, data, vec.bv_len, to_cache);
		else
			lagdisk_store_read(store, sector, data, vec.bv_len);
		kunmap_local(data);
		if (error)
			break;
		sector += vec.bv_len >> SECTOR_SHIFT;
	}
	return error;
}

static enum hrtimer_restart done(struct hrtimer *timer)
{
	struct command *command = container_of(timer, struct command, timer);
	struct request *rq = blk_mq_rq_from_pdu(command);
	struct lagdisk *lagdisk = rq->q->queuedata;

	if (READ_ONCE(lagdisk->is_cut)) {
		atomic64_inc(&lagdisk->counts.failed);
		command->status = BLK_STS_IOERR;
	}
	blk_mq_end_request(rq, command->status);
	return HRTIMER_NORESTART;
}

static blk_status_t queue_rq(struct blk_mq_hw_ctx *hctx, const struct blk_mq_queue_data *data)
{
	struct request *rq = data->rq;
	struct lagdisk *lagdisk = rq->q->queuedata;
	struct command *command = blk_mq_rq_to_pdu(rq);
	u64 now_ns = ktime_get_ns();
	u64 done_ns;

	switch (req_op(rq)) {
	case REQ_OP_FLUSH:
	case REQ_OP_READ:
	case REQ_OP_WRITE:
		break;
	default:
		return BLK_STS_NOTSUPP;
	}
	done_ns = done_at_ns(lagdisk, now_ns, cost_ns(lagdisk, rq));
	blk_mq_start_request(rq);
	mutex_lock(&lagdisk->store.lock);
	if (lagdisk->is_cut) {
		atomic64_inc(&lagdisk->counts.failed);
		command->status = BLK_STS_IOERR;
	} else {
		count(lagdisk, rq);
		command->status = errno_to_blk_status(transfer(lagdisk, rq));
	}
	mutex_unlock(&lagdisk->store.lock);
	if (done_ns <= ktime_get_ns())
		done(&command->timer);
	else
		hrtimer_start(&command->timer, ns_to_ktime(done_ns), HRTIMER_MODE_ABS);
	return BLK_STS_OK;
}

static int init_request(struct blk_mq_tag_set *set, struct request *rq, unsigned int hctx,
			lagdisk_node node)
{
	struct command *command = blk_mq_rq_to_pdu(rq);

	lagdisk_timer_setup(&command->timer, done);
	return 0;
}

static const struct blk_mq_ops queue_ops = {
	.queue_rq = queue_rq,
	.init_request = init_request,
};

static const struct block_device_operations disk_ops = {
	.owner = THIS_MODULE,
};

static void remove_disk(struct lagdisk *lagdisk)
{
	del_gendisk(lagdisk->disk);
	put_disk(lagdisk->disk);
	blk_mq_free_tag_set(&lagdisk->tags);
	lagdisk_store_clear(&lagdisk->store);
	kfree(lagdisk);
}

static int add_disk_number(unsigned int number)
{
	struct lagdisk *lagdisk = kzalloc(sizeof(*lagdisk), GFP_KERNEL);
	int error;

	if (!lagdisk)
		return -ENOMEM;
	lagdisk_store_init(&lagdisk->store);
	spin_lock_init(&lagdisk->busy_lock);
	lagdisk->costs = costs;
	lagdisk->volatile_cache = volatile_cache;
	lagdisk->serial = serial;
	lagdisk->tags.ops = &queue_ops;
	lagdisk->tags.nr_hw_queues = 1;
	lagdisk->tags.queue_depth = queue_depth;
	lagdisk->tags.numa_node = NUMA_NO_NODE;
	lagdisk->tags.cmd_size = sizeof(struct command);
	/* Memory is allocated, so the queue may sleep; no scheduler, so that costs are what they
	 * say. */
	lagdisk->tags.flags = LAGDISK_MERGE | BLK_MQ_F_BLOCKING | BLK_MQ_F_NO_SCHED_BY_DEFAULT;
	error = blk_mq_alloc_tag_set(&lagdisk->tags);
	if (error)
		goto free;
	lagdisk->disk = lagdisk_alloc_disk(&lagdisk->tags, lagdisk, volatile_cache, fua);
	if (IS_ERR(lagdisk->disk)) {
		error = PTR_ERR(lagdisk->disk);
		goto free_tags;
	}
	lagdisk->disk->major = major;
	lagdisk->disk->first_minor = number;
	lagdisk->disk->minors = 1;
	lagdisk->disk->fops = &disk_ops;
	lagdisk->disk->private_data = lagdisk;
	snprintf(lagdisk->disk->disk_name, DISK_NAME_LEN, "lagdisk%u", number);
	set_capacity(lagdisk->disk, size_mib << (20 - SECTOR_SHIFT));
	error = device_add_disk(NULL, lagdisk->disk, lagdisk_groups);
	if (error)
		goto put;
	lagdisks[number] = lagdisk;
	return 0;
put:
	put_disk(lagdisk->disk);
free_tags:
	blk_mq_free_tag_set(&lagdisk->tags);
free:
	kfree(lagdisk);
	return error;
}

static void remove_all(void)
{
	int i;

	for (i = 0; i < MAX_DISKS; i++)
		if (lagdisks[i])
			remove_disk(lagdisks[i]);
	unregister_blkdev(major, "lagdisk");
}

static int __init lagdisk_init(void)
{
	unsigned int i;
	int error = 0;

	if (!disks || disks > MAX_DISKS || !queue_depth || queue_depth > 1024 || !size_mib ||
	    size_mib > (1 << 24)) {
		pr_err("lagdisk: parameter out of range: disks 1 to %d, queue_depth 1 to 1024, "
		       "size_mib 1 to 16777216\n",
		       MAX_DISKS);
		return -EINVAL;
	}
	major = register_blkdev(0, "lagdisk");
	if (major < 0)
		return major;
	for (i = 0; i < disks && !error; i++)
		error = add_disk_number(i);
	if (error)
		remove_all();
	return error;
}

static void __exit lagdisk_exit(void)
{
	remove_all();
}

module_init(lagdisk_init);
module_exit(lagdisk_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("RAM disks with exact latencies, a volatile write cache and a power switch");
