// SPDX-License-Identifier: GPL-2.0
/*
 * Copy-out: metadata is journaled from a frozen copy, so that the buffer itself stays writable while the
 * commit writes.
 *
 * jbd2 can do that by itself (b_frozen_data), but only if a writer comes before the commit has filed the
 * buffer for I/O. do_get_write_access() looks for a frozen copy before it looks for BH_Shadow: a copy made
 * just before jbd2 files the buffer removes the wait. jbd2 frees it when the commit ends.
 */
#include <linux/buffer_head.h>

#include "compat.h"
#include "luc.h"
#include "trace_luc.h"

/* Waiting for memory here would delay the very commit that everybody waits for. */
#define LUC_COPY_GFP (GFP_NOFS | __GFP_NOWARN | __GFP_NORETRY)

/* Whether the copy may be made; takes its bytes from the commit's limit. */
static bool luc_copy_reserve(struct luc_journal *lj, size_t bytes)
{
	bool fits;

	spin_lock(&lj->lock);
	fits = lj->copy_bytes_in_use + bytes <= (u64)lj->settings.copy_out_limit_kib << 10;
	if (fits)
		lj->copy_bytes_in_use += bytes;
	else
		lj->counts.copies_failed++;
	spin_unlock(&lj->lock);
	return fits;
}

/* Counts a copy that was made, or gives the bytes of one that was not back. */
static void luc_copy_settle(struct luc_journal *lj, size_t bytes, bool made, bool failed)
{
	spin_lock(&lj->lock);
	if (made) {
		lj->counts.copies++;
		lj->counts.copy_bytes += bytes;
	} else {
		lj->copy_bytes_in_use -= bytes;
	}
	if (failed)
		lj->counts.copies_failed++;
	spin_unlock(&lj->lock);
}

/*
 * As jbd2_freeze_jh_data() does it: the trigger fires on the buffer (ext4 has none, ocfs2 computes its
 * checksums there), then it is copied, and the copy keeps the trigger. Escaping of a block that begins
 * with jbd2's magic number is left to jbd2, which does it in the copy. Under jh->b_state_lock.
 */
static void luc_freeze(struct journal_head *jh, struct buffer_head *bh, char *copy)
{
	/* x86-64 has no high memory: b_data can be read as it is. */
	char *source = bh->b_data;

	if (jh->b_triggers && jh->b_triggers->t_frozen)
		jh->b_triggers->t_frozen(jh->b_triggers, bh, source, bh->b_size);
	memcpy(copy, source, bh->b_size);
	jh->b_frozen_data = copy;
	jh->b_frozen_triggers = jh->b_triggers;
}

/* Makes the frozen copy of a buffer that has none; without memory jbd2 journals the buffer itself. */
static void luc_copy_buffer(struct luc_journal *lj, struct journal_head *jh)
{
	struct buffer_head *bh = jh2bh(jh);
	size_t bytes = bh->b_size;
	bool made = false;
	char *copy;

	/* With b_committed_data (ocfs2's bitmaps) a frozen copy would live on as the next one. */
	if (READ_ONCE(jh->b_frozen_data) || READ_ONCE(jh->b_committed_data))
		return;
	if (!luc_copy_reserve(lj, bytes))
		return;
	copy = luc_jbd2_alloc(bytes, LUC_COPY_GFP);
	if (copy) {
		spin_lock(&jh->b_state_lock);
		if (!jh->b_frozen_data && !jh->b_committed_data) {
			luc_freeze(jh, bh, copy);
			made = true;
		}
		spin_unlock(&jh->b_state_lock);
	}
	luc_copy_settle(lj, bytes, made, !copy);
	if (copy && !made)
		luc_jbd2_free(copy, bytes);
}

/* The commit files a metadata buffer for I/O. */
int luc_wrap_write_metadata(transaction_t *transaction, struct journal_head *jh,
			    struct buffer_head **bh_out, sector_t block)
{
	struct luc_journal *lj;
	int flags;

	luc_enter();
	lj = luc_journal_get(transaction->t_journal);
	if (lj) {
		if (lj->copying)
			luc_copy_buffer(lj, jh);
		luc_journal_put(lj);
	}
	flags = luc_original_write_metadata(transaction, jh, bh_out, block);
	luc_leave();
	return flags;
}

/*
 * Whether a write of this buffer will have to wait for the commit that journals it: do_get_write_access()
 * without the locks. Journal heads are SLAB_TYPESAFE_BY_RCU; the caller is in an RCU read-side section.
 */
static bool luc_will_wait(struct buffer_head *bh)
{
	struct journal_head *jh;

	if (!test_bit(BH_Shadow, &bh->b_state))
		return false;
	jh = READ_ONCE(bh->b_private);
	return jh && !READ_ONCE(jh->b_frozen_data);
}

/* A handle wants to change a metadata buffer. */
int luc_wrap_get_write_access(handle_t *handle, struct buffer_head *bh)
{
	struct luc_journal *lj = NULL;
	u64 begin_ns;
	int error;

	luc_enter();
	rcu_read_lock();
	if (!is_handle_aborted(handle))
		lj = luc_journal_find_rcu(handle->h_transaction->t_journal);
	if (lj) {
		this_cpu_inc(lj->writes->writes);
		if (!luc_will_wait(bh) || !kobject_get_unless_zero(&lj->kobj))
			lj = NULL;
	}
	rcu_read_unlock();
	if (lj) {
		begin_ns = ktime_get_ns();
		error = jbd2_journal_get_write_access(handle, bh);
		this_cpu_inc(lj->writes->delayed);
		this_cpu_add(lj->writes->delay_ns, ktime_get_ns() - begin_ns);
		luc_journal_put(lj);
	} else {
		error = jbd2_journal_get_write_access(handle, bh);
	}
	luc_leave();
	return error;
}

/* Whether the commit that begins now is journaled from copies. */
void luc_copy_out_decide(struct luc_journal *lj)
{
	spin_lock(&lj->lock);
	lj->copying = lj->settings.copy_out == LUC_COPY_OUT_ON;
	spin_unlock(&lj->lock);
}
