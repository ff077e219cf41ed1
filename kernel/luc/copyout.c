// SPDX-License-Identifier: GPL-2.0
/*
 * Copy-out: metadata is journaled from a frozen copy, so that the buffer itself stays writable
 * while the commit writes.
 *
 * jbd2 can do that by itself (b_frozen_data), but only if a writer comes before the commit has
 * filed the buffer for I/O. do_get_write_access() looks for a frozen copy before it looks for
 * BH_Shadow: a copy made just before jbd2 files the buffer removes the wait. jbd2 frees it when the
 * commit ends.
 */
#include <linux/buffer_head.h>

#include "compat.h"
#include "luc.h"
#include "trace_luc.h"

/*
 * Waiting for memory here would delay the very commit that everybody waits for, so nothing is
 * reclaimed: without free memory jbd2 journals the buffer itself.
 */
#define LUC_COPY_GFP (GFP_NOWAIT | __GFP_NOWARN)

/* Copying goes on for so many commits that it did not pay in ... */
#define LUC_PATIENT_RUNS 16
/* ... and begins anew after so long without a commit, for what comes then may be another load. */
#define LUC_RESTED_NS (100 * NSEC_PER_MSEC)

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
static void luc_copy_settle(struct luc_journal *lj, size_t bytes, bool made, bool failed,
			    u64 spent_ns)
{
	spin_lock(&lj->lock);
	if (made) {
		lj->counts.copies++;
		lj->counts.copy_bytes += bytes;
		lj->copying.buffers++;
		lj->copying.spent_ns += spent_ns;
	} else {
		lj->copy_bytes_in_use -= bytes;
	}
	if (failed)
		lj->counts.copies_failed++;
	spin_unlock(&lj->lock);
}

/*
 * As jbd2_freeze_jh_data() does it: the trigger fires on the buffer (ext4 computes the checksum of
 * a block of its orphan file there, ocfs2 those of its metadata), then it is copied, and the copy
 * keeps the trigger, which jbd2 does not fire again. Escaping of a block that
 * begins with jbd2's magic number is left to jbd2, which does it in the copy. Under
 * jh->b_state_lock.
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

/*
 * Makes the frozen copy of a buffer that has none; without memory jbd2 journals the buffer itself.
 */
static void luc_copy_buffer(struct luc_journal *lj, struct journal_head *jh)
{
	struct buffer_head *bh = jh2bh(jh);
	size_t bytes = bh->b_size;
	u64 begin_ns = luc_now_ns();
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
	luc_copy_settle(lj, bytes, made, !copy, luc_now_ns() - begin_ns);
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
		if (READ_ONCE(lj->copying.on))
			luc_copy_buffer(lj, jh);
		else
			lj->copying.buffers++;
		luc_journal_put(lj);
	}
	flags = luc_original_write_metadata(transaction, jh, bh_out, block);
	luc_leave();
	return flags;
}

/* What the commit under way means for whoever wants to change a buffer that it writes. */
enum luc_shadow {
	LUC_SHADOW_NONE,
	LUC_SHADOW_WAITS,  /* it waits until the buffer is written */
	LUC_SHADOW_SPARED, /* a copy is written instead */
};

/*
 * do_get_write_access() without the locks. Journal heads are SLAB_TYPESAFE_BY_RCU; the caller is in
 * an RCU read-side section.
 */
static enum luc_shadow luc_shadow_of(struct buffer_head *bh)
{
	struct journal_head *jh;

	if (!buffer_shadow(bh))
		return LUC_SHADOW_NONE;
	jh = READ_ONCE(bh->b_private);
	if (!jh)
		return LUC_SHADOW_NONE;
	return READ_ONCE(jh->b_frozen_data) ? LUC_SHADOW_SPARED : LUC_SHADOW_WAITS;
}

/* The journal, with a reference, if a write of this buffer will have to wait for its commit. */
static struct luc_journal *luc_journal_waited_for(journal_t *journal, struct buffer_head *bh)
{
	struct luc_journal *lj;
	enum luc_shadow shadow;

	rcu_read_lock();
	shadow = luc_shadow_of(bh);
	lj = shadow == LUC_SHADOW_NONE ? NULL : luc_journal_find_rcu(journal);
	if (lj && shadow == LUC_SHADOW_SPARED) {
		set_bit(hash_32(current->pid, 6), &lj->saved_tasks);
		lj = NULL;
	}
	if (lj && !kobject_get_unless_zero(&lj->kobj))
		lj = NULL;
	rcu_read_unlock();
	return lj;
}

/* A handle wants to change a metadata buffer that a commit writes, or did a moment ago. */
int luc_wrap_get_write_access(handle_t *handle, struct buffer_head *bh)
{
	struct luc_journal *lj = NULL;
	u64 begin_ns;
	int error;

	luc_enter();
	if (!is_handle_aborted(handle))
		lj = luc_journal_waited_for(handle->h_transaction->t_journal, bh);
	if (lj) {
		begin_ns = luc_now_ns();
		error = jbd2_journal_get_write_access(handle, bh);
		this_cpu_inc(lj->delays->delayed);
		this_cpu_add(lj->delays->delay_ns, luc_now_ns() - begin_ns);
		luc_journal_put(lj);
	} else {
		error = jbd2_journal_get_write_access(handle, bh);
	}
	luc_leave();
	return error;
}

static void luc_smooth(u64 *mean, u64 sum, u64 count)
{
	if (!count)
		return;
	*mean = *mean ? *mean - *mean / 8 + div64_u64(sum, count * 8) : div64_u64(sum, count);
}

/*
 * The paper's (section IV.B): on beyond a share of delayed writes, off after commits without any.
 */
static bool luc_heuristic(struct luc_journal *lj, const struct luc_delays *last, u32 writes)
{
	struct luc_copying *copying = &lj->copying;

	if (last->delayed * 1000 > writes * lj->settings.copy_out_threshold_permille) {
		copying->clean_runs = 0;
		return true;
	}
	if (last->delayed)
		copying->clean_runs = 0;
	else if (copying->clean_runs < U32_MAX)
		copying->clean_runs++;
	return copying->on && copying->clean_runs < lj->settings.copy_out_clean_runs;
}

/*
 * On at first, and while the waits that copying saves are longer than the waits that it makes: all
 * whose fsyncs are in the commit wait for the copies. Waits saved are tasks that came upon a copy
 * times a delayed write's mean wait (half a commit before one was seen).
 */
static bool luc_adaptive(struct luc_journal *lj, const struct luc_delays *last, u32 spared)
{
	struct luc_copying *copying = &lj->copying;
	u64 wait_ns = copying->wait_ns ?: lj->commit_ns / 2;
	u64 copy_ns = copying->copy_ns ?: NSEC_PER_USEC;
	u64 saves_ns = last->delay_ns + spared * wait_ns;
	u64 costs_ns = copying->buffers * copy_ns * (lj->released + 1);

	if (saves_ns > costs_ns || lj->idle_ns > LUC_RESTED_NS)
		copying->clean_runs = 0;
	else if (copying->clean_runs < LUC_PATIENT_RUNS)
		copying->clean_runs++;
	/*
	 * What turned it on may come again, so it waits as long as the balance needs to turn. And
	 * it does not wait for the first delays: in a burst of writers these are most of the harm,
	 * while a few copies for nothing cost microseconds.
	 */
	return copying->clean_runs < LUC_PATIENT_RUNS;
}

/* Whether the commit that begins now, of so many writes, is journaled from copies. */
void luc_copy_out_decide(struct luc_journal *lj, u32 writes)
{
	struct luc_copying *copying = &lj->copying;
	u32 spared = hweight_long(xchg(&lj->saved_tasks, 0));
	struct luc_delays sum, last;
	bool on = false;

	luc_sum_delays(lj, &sum);
	spin_lock(&lj->lock);
	last.delayed = sum.delayed - copying->before.delayed;
	last.delay_ns = sum.delay_ns - copying->before.delay_ns;
	copying->before = sum;
	luc_smooth(&copying->wait_ns, last.delay_ns, last.delayed);
	if (copying->on)
		luc_smooth(&copying->copy_ns, copying->spent_ns, copying->buffers);
	switch (lj->settings.copy_out) {
	case LUC_COPY_OUT_OFF:
		break;
	case LUC_COPY_OUT_ON:
		on = true;
		break;
	case LUC_COPY_OUT_HEURISTIC:
		on = luc_heuristic(lj, &last, writes);
		break;
	case LUC_COPY_OUT_AUTO:
		on = luc_adaptive(lj, &last, spared);
		break;
	}
	if (on != copying->on)
		trace_luc_copy_out(lj->dev, on, writes, last.delayed);
	copying->on = on;
	copying->buffers = 0;
	copying->spent_ns = 0;
	spin_unlock(&lj->lock);
}
