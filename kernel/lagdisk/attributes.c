// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/block/lagdiskN/lagdisk/: costs in nanoseconds (read and write), counters (read), and the
 * switches power_cut, restore and wipe (write).
 */
#include <linux/device.h>
#include <linux/kernel.h>
#include <linux/sysfs.h>

#include "lagdisk.h"

#define MAX_COST_NS (60 * NSEC_PER_SEC)

static struct lagdisk *of(struct device *dev)
{
	return dev_to_disk(dev)->private_data;
}

static ssize_t store_number(const char *text, size_t length, u64 most, u64 *number)
{
	u64 value;
	int error = kstrtou64(text, 0, &value);

	if (error)
		return error;
	if (value > most)
		return -ERANGE;
	WRITE_ONCE(*number, value);
	return length;
}

#define COST(name)                                                                                 \
	static ssize_t name##_show(struct device *dev, struct device_attribute *attribute,         \
				   char *page)                                                     \
	{                                                                                          \
		return sysfs_emit(page, "%llu\n", READ_ONCE(of(dev)->costs.name));                 \
	}                                                                                          \
	static ssize_t name##_store(struct device *dev, struct device_attribute *attribute,        \
				    const char *text, size_t length)                               \
	{                                                                                          \
		return store_number(text, length, MAX_COST_NS, &of(dev)->costs.name);              \
	}                                                                                          \
	static DEVICE_ATTR_RW(name)

COST(read_ns);
COST(write_ns);
COST(read_ns_per_kib);
COST(write_ns_per_kib);
COST(flush_ns);
COST(fua_ns);

#define COUNT(name)                                                                                \
	static ssize_t name##_show(struct device *dev, struct device_attribute *attribute,         \
				   char *page)                                                     \
	{                                                                                          \
		return sysfs_emit(page, "%llu\n", atomic64_read(&of(dev)->counts.name));           \
	}                                                                                          \
	static DEVICE_ATTR_RO(name)

COUNT(reads);
COUNT(writes);
COUNT(flushes);
COUNT(fuas);
COUNT(read_bytes);
COUNT(write_bytes);
COUNT(failed);

#define CUT(name)                                                                                  \
	static ssize_t name##_show(struct device *dev, struct device_attribute *attribute,         \
				   char *page)                                                     \
	{                                                                                          \
		return sysfs_emit(page, "%llu\n", READ_ONCE(of(dev)->store.name));                 \
	}                                                                                          \
	static DEVICE_ATTR_RO(name)

CUT(kept_sectors);
CUT(lost_sectors);

static ssize_t dirty_bytes_show(struct device *dev, struct device_attribute *attribute, char *page)
{
	return sysfs_emit(page, "%llu\n", lagdisk_store_dirty_bytes(&of(dev)->store));
}
static DEVICE_ATTR_RO(dirty_bytes);

static ssize_t memory_bytes_show(struct device *dev, struct device_attribute *attribute, char *page)
{
	return sysfs_emit(page, "%llu\n", atomic64_read(&of(dev)->store.pages) * PAGE_SIZE);
}
static DEVICE_ATTR_RO(memory_bytes);

static ssize_t power_cut_show(struct device *dev, struct device_attribute *attribute, char *page)
{
	return sysfs_emit(page, "%d\n", READ_ONCE(of(dev)->is_cut));
}

/* "1": every unflushed sector is lost. "keep PERCENT SEED": so many of them had reached the medium.
 */
static ssize_t power_cut_store(struct device *dev, struct device_attribute *attribute,
			       const char *text, size_t length)
{
	struct lagdisk *lagdisk = of(dev);
	unsigned int percent = 0;
	u64 seed = 0;
	char rest;
	int error;

	if (!sysfs_streq(text, "1") && sscanf(text, "keep %u %llu %c", &percent, &seed, &rest) != 2)
		return -EINVAL;
	if (percent > 100)
		return -ERANGE;
	/* Under the lock no request is changing the store; those under way fail when they are done.
	 */
	mutex_lock(&lagdisk->store.lock);
	WRITE_ONCE(lagdisk->is_cut, true);
	atomic64_set(&lagdisk->counts.failed, 0);
	mutex_unlock(&lagdisk->store.lock);
	error = lagdisk_store_cut(&lagdisk->store, percent, seed);
	return error ? error : length;
}
static DEVICE_ATTR_RW(power_cut);

/* Power is back: the disk has what was durable. */
static ssize_t restore_store(struct device *dev, struct device_attribute *attribute,
			     const char *text, size_t length)
{
	if (!sysfs_streq(text, "1"))
		return -EINVAL;
	WRITE_ONCE(of(dev)->is_cut, false);
	return length;
}
static DEVICE_ATTR_WO(restore);

/* A new, empty disk. */
static ssize_t wipe_store(struct device *dev, struct device_attribute *attribute, const char *text,
			  size_t length)
{
	if (!sysfs_streq(text, "1"))
		return -EINVAL;
	lagdisk_store_clear(&of(dev)->store);
	return length;
}
static DEVICE_ATTR_WO(wipe);

static struct attribute *attributes[] = {
	&dev_attr_read_ns.attr,
	&dev_attr_write_ns.attr,
	&dev_attr_read_ns_per_kib.attr,
	&dev_attr_write_ns_per_kib.attr,
	&dev_attr_flush_ns.attr,
	&dev_attr_fua_ns.attr,
	&dev_attr_reads.attr,
	&dev_attr_writes.attr,
	&dev_attr_flushes.attr,
	&dev_attr_fuas.attr,
	&dev_attr_read_bytes.attr,
	&dev_attr_write_bytes.attr,
	&dev_attr_failed.attr,
	&dev_attr_kept_sectors.attr,
	&dev_attr_lost_sectors.attr,
	&dev_attr_dirty_bytes.attr,
	&dev_attr_memory_bytes.attr,
	&dev_attr_power_cut.attr,
	&dev_attr_restore.attr,
	&dev_attr_wipe.attr,
	NULL,
};

static const struct attribute_group group = {
	.name = "lagdisk",
	.attrs = attributes,
};

const struct attribute_group *lagdisk_groups[] = { &group, NULL };
