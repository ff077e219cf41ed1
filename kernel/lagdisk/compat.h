/* SPDX-License-Identifier: GPL-2.0 */
/* What differs between kernels 6.1 and 7.3. Each shim names the change that it answers. */
#ifndef LAGDISK_COMPAT_H
#define LAGDISK_COMPAT_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/hrtimer.h>
#include <linux/version.h>

#define LAGDISK_MAX_SECTORS 2048 /* of 512 bytes, a request's limit */

/*
 * 6.9, 27e32cd23fed ("block: pass a queue_limits argument to blk_mq_alloc_disk") and
 * 6.11, 1122c0c1cc71 ("block: move cache control settings out of queue->flags").
 */
static inline struct gendisk *lagdisk_alloc_disk(struct blk_mq_tag_set *set, void *data,
						 bool volatile_cache, bool fua)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
	struct queue_limits limits = {
		.logical_block_size = SECTOR_SIZE,
		.physical_block_size = PAGE_SIZE,
		.max_hw_sectors = LAGDISK_MAX_SECTORS,
	};

	if (volatile_cache)
		limits.features |= BLK_FEAT_WRITE_CACHE;
	if (volatile_cache && fua)
		limits.features |= BLK_FEAT_FUA;
	return blk_mq_alloc_disk(set, &limits, data);
#else
	struct gendisk *disk;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
	disk = blk_mq_alloc_disk(set, NULL, data);
#else
	disk = blk_mq_alloc_disk(set, data);
#endif
	if (IS_ERR(disk))
		return disk;
	blk_queue_logical_block_size(disk->queue, SECTOR_SIZE);
	blk_queue_physical_block_size(disk->queue, PAGE_SIZE);
	blk_queue_max_hw_sectors(disk->queue, LAGDISK_MAX_SECTORS);
	blk_queue_write_cache(disk->queue, volatile_cache, volatile_cache && fua);
	return disk;
#endif
}

/* 6.14, 9377b95cda73 ("block: remove BLK_MQ_F_SHOULD_MERGE"). */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
#define LAGDISK_MERGE BLK_MQ_F_SHOULD_MERGE
#else
#define LAGDISK_MERGE 0
#endif

/* 7.2: blk_mq_ops.init_request takes a node that may be none, as an int. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
typedef int lagdisk_node;
#else
typedef unsigned int lagdisk_node;
#endif

/* 6.13, 908a1d775422 ("hrtimers: Introduce hrtimer_setup() to replace hrtimer_init()"). */
static inline void lagdisk_timer_setup(struct hrtimer *timer,
				       enum hrtimer_restart (*function)(struct hrtimer *))
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, function, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	timer->function = function;
#endif
}

#endif
