/* SPDX-License-Identifier: GPL-2.0 */
#ifndef LAGDISK_H
#define LAGDISK_H

#include <linux/atomic.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>

/* What a disk remembers: sparse, in pages. */
struct lagdisk_store {
	struct xarray durable; /* outlives a power cut */
	struct xarray
		cache; /* whole pages over durable; page_private has a bit for each dirty sector */
	struct mutex lock; /* both arrays and the content of their pages */
	atomic64_t pages;  /* that both hold */
	u64 kept_sectors;  /* of those that were dirty at the last power cut */
	u64 lost_sectors;
};

/* How long things take, in nanoseconds. Each may be changed at any time. */
struct lagdisk_costs {
	u64 read_ns;
	u64 write_ns;
	u64 read_ns_per_kib;
	u64 write_ns_per_kib;
	u64 flush_ns;
	u64 fua_ns; /* in addition to the write */
};

struct lagdisk_counts {
	atomic64_t reads;
	atomic64_t writes;
	atomic64_t flushes;
	atomic64_t fuas;
	atomic64_t read_bytes;
	atomic64_t write_bytes;
	atomic64_t failed; /* since the last power cut, because of it */
};

struct lagdisk {
	struct gendisk *disk;
	struct blk_mq_tag_set tags;
	struct lagdisk_store store;
	struct lagdisk_costs costs;
	struct lagdisk_counts counts;
	bool volatile_cache;
	bool is_cut; /* power is off: every request fails */
	bool serial; /* one request at a time */
	spinlock_t busy_lock;
	u64 busy_until_ns; /* when the last request of a serial disk will be done */
};

void lagdisk_store_init(struct lagdisk_store *store);
void lagdisk_store_clear(struct lagdisk_store *store);
u64 lagdisk_store_dirty_bytes(struct lagdisk_store *store);
int lagdisk_store_write(struct lagdisk_store *store, sector_t sector, const void *data,
			unsigned int bytes, bool to_cache);
void lagdisk_store_read(struct lagdisk_store *store, sector_t sector, void *data,
			unsigned int bytes);
int lagdisk_store_flush(struct lagdisk_store *store);
int lagdisk_store_cut(struct lagdisk_store *store, unsigned int keep_percent, u64 seed);

extern const struct attribute_group *lagdisk_groups[];

#endif
