// SPDX-License-Identifier: GPL-2.0
/*
 * What a disk remembers. A write goes to the volatile cache (a whole page over the durable one,
 * with a bit for each sector that was written) and becomes durable at the next flush; or directly
 * if the disk has no cache or the write has FUA.
 *
 * The lock is the caller's business, except in the functions that sysfs uses.
 */
#include <linux/highmem.h>
#include <linux/mm.h>

#include "lagdisk.h"

#define SECTORS_PER_PAGE (PAGE_SIZE / SECTOR_SIZE)

void lagdisk_store_init(struct lagdisk_store *store)
{
	xa_init(&store->durable);
	xa_init(&store->cache);
	mutex_init(&store->lock);
	atomic64_set(&store->pages, 0);
}

static void drop_page(struct lagdisk_store *store, struct page *page)
{
	if (!page)
		return;
	set_page_private(page, 0);
	__free_page(page);
	atomic64_dec(&store->pages);
}

static void drop_all(struct lagdisk_store *store, struct xarray *pages)
{
	struct page *page;
	unsigned long index;

	xa_for_each (pages, index, page) {
		drop_page(store, page);
		cond_resched();
	}
	xa_destroy(pages);
}

/* Forgets everything. */
void lagdisk_store_clear(struct lagdisk_store *store)
{
	mutex_lock(&store->lock);
	drop_all(store, &store->cache);
	drop_all(store, &store->durable);
	mutex_unlock(&store->lock);
}

u64 lagdisk_store_dirty_bytes(struct lagdisk_store *store)
{
	struct page *page;
	unsigned long index;
	u64 sectors = 0;

	mutex_lock(&store->lock);
	xa_for_each (&store->cache, index, page)
		sectors += hweight_long(page_private(page));
	mutex_unlock(&store->lock);
	return sectors * SECTOR_SIZE;
}

/* The page at index, made if it is not there: with the content of below, or zero. NULL: no memory.
 */
static struct page *page_for_write(struct lagdisk_store *store, struct xarray *pages,
				   unsigned long index, struct page *below, bool whole)
{
	struct page *page = xa_load(pages, index);

	if (page)
		return page;
	page = alloc_page(GFP_NOIO | (whole || below ? 0 : __GFP_ZERO));
	if (!page)
		return NULL;
	if (below && !whole)
		copy_highpage(page, below);
	set_page_private(page, 0);
	if (xa_err(xa_store(pages, index, page, GFP_NOIO))) {
		__free_page(page);
		return NULL;
	}
	atomic64_inc(&store->pages);
	return page;
}

/* A write of bytes (whole sectors) that stays within a page. */
static int write_in_page(struct lagdisk_store *store, sector_t sector, const void *data,
			 unsigned int bytes, bool to_cache)
{
	unsigned long index = sector / SECTORS_PER_PAGE;
	unsigned int first = sector % SECTORS_PER_PAGE;
	unsigned long bits = GENMASK(first + bytes / SECTOR_SIZE - 1, first);
	bool whole = bytes == PAGE_SIZE;
	struct page *page;

	if (to_cache) {
		page = page_for_write(store, &store->cache, index, xa_load(&store->durable, index),
				      whole);
		if (!page)
			return -ENOMEM;
		memcpy_to_page(page, first * SECTOR_SIZE, data, bytes);
		set_page_private(page, page_private(page) | bits);
		return 0;
	}
	page = page_for_write(store, &store->durable, index, NULL, whole);
	if (!page)
		return -ENOMEM;
	memcpy_to_page(page, first * SECTOR_SIZE, data, bytes);
	/* What the cache has there is older now. */
	page = xa_load(&store->cache, index);
	if (page) {
		memcpy_to_page(page, first * SECTOR_SIZE, data, bytes);
		set_page_private(page, page_private(page) & ~bits);
	}
	return 0;
}

int lagdisk_store_write(struct lagdisk_store *store, sector_t sector, const void *data,
			unsigned int bytes, bool to_cache)
{
	while (bytes) {
		unsigned int offset = (sector % SECTORS_PER_PAGE) * SECTOR_SIZE;
		unsigned int part = min_t(unsigned int, bytes, PAGE_SIZE - offset);
		int error = write_in_page(store, sector, data, part, to_cache);

		if (error)
			return error;
		sector += part / SECTOR_SIZE;
		data += part;
		bytes -= part;
	}
	return 0;
}

void lagdisk_store_read(struct lagdisk_store *store, sector_t sector, void *data,
			unsigned int bytes)
{
	while (bytes) {
		unsigned long index = sector / SECTORS_PER_PAGE;
		unsigned int offset = (sector % SECTORS_PER_PAGE) * SECTOR_SIZE;
		unsigned int part = min_t(unsigned int, bytes, PAGE_SIZE - offset);
		struct page *page = xa_load(&store->cache, index);

		if (!page)
			page = xa_load(&store->durable, index);
		if (page)
			memcpy_from_page(data, page, offset, part);
		else
			memset(data, 0, part);
		sector += part / SECTOR_SIZE;
		data += part;
		bytes -= part;
	}
}

/*
 * Makes all that the cache holds durable. It is called when a flush arrives, not when it is done:
 * what is written while the flush is under way stays volatile, as the strictest disk would have it.
 */
int lagdisk_store_flush(struct lagdisk_store *store)
{
	struct page *page, *old;
	unsigned long index;

	xa_for_each (&store->cache, index, page) {
		old = xa_store(&store->durable, index, page, GFP_NOIO);
		if (xa_is_err(old))
			return xa_err(old);
		xa_erase(&store->cache, index);
		set_page_private(page, 0);
		drop_page(store, old);
	}
	return 0;
}

/* A small generator (xorshift64*), so that a seed says which sectors are kept on every kernel. */
static u32 next_random(u64 *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (*state * 0x2545F4914F6CDD1DULL) >> 32;
}

/* Power is gone: of the cache's dirty sectors keep_percent, chosen by seed, had reached the medium.
 */
int lagdisk_store_cut(struct lagdisk_store *store, unsigned int keep_percent, u64 seed)
{
	u64 state = seed * 2 + 1;
	struct page *page, *below;
	unsigned long index;
	unsigned int i;
	int error = 0;

	mutex_lock(&store->lock);
	store->kept_sectors = 0;
	store->lost_sectors = 0;
	xa_for_each (&store->cache, index, page) {
		unsigned long dirty = page_private(page);

		for_each_set_bit(i, &dirty, SECTORS_PER_PAGE)
		{
			if (next_random(&state) % 100 >= keep_percent) {
				store->lost_sectors++;
				continue;
			}
			below = page_for_write(store, &store->durable, index, NULL, false);
			if (!below) {
				error = -ENOMEM;
				break;
			}
			memcpy_page(below, i * SECTOR_SIZE, page, i * SECTOR_SIZE, SECTOR_SIZE);
			store->kept_sectors++;
		}
		cond_resched();
	}
	drop_all(store, &store->cache);
	mutex_unlock(&store->lock);
	return error;
}
