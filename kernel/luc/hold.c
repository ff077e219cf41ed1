// SPDX-License-Identifier: GPL-2.0
/*
 * The commit: held for company before it, measured after it.
 *
 * kjournald2 sleeps before jbd2_journal_commit_transaction(), while the transaction is still
 * T_RUNNING, so new handles join it and further fsyncs find their changes in it.
 */
#include <linux/hrtimer.h>
#include <linux/sched.h>

#include "compat.h"
#include "luc.h"
#include "trace_luc.h"

/* While it holds, kjournald2 looks this often whether somebody is in need of the commit. */
#define LUC_LOOK_NS (1 * NSEC_PER_MSEC)

/*
 * Somebody needs this commit to start, or the journal is in trouble. A journal in steady use always
 * has little more than j_max_transaction_buffers free, for only what is needed is checkpointed:
 * half of that is little. A checkpoint may wait for this very commit, and tasks that wait for a
 * checkpoint will not come soon.
 */
static bool luc_under_pressure(const struct luc_hold *hold)
{
	journal_t *journal = hold->journal;
	int most = journal->j_max_transaction_buffers;

	return READ_ONCE(journal->j_free) < (unsigned long)most / 2 ||
	       atomic_read(&hold->transaction->t_outstanding_credits) > most / 2 ||
	       mutex_is_locked(&journal->j_checkpoint_mutex) ||
	       waitqueue_active(&journal->j_wait_transaction_locked);
}

/* Unmount, freeze, a dead journal, or our own end. */
static bool luc_must_stop(struct luc_journal *lj, journal_t *journal)
{
	return lj->gone || luc_is_leaving() || READ_ONCE(journal->j_barrier_count) ||
	       READ_ONCE(journal->j_flags) & (JBD2_UNMOUNT | JBD2_ABORT);
}

/* Whether the hold is over, and why; otherwise when to look again. Under lj->lock. */
static bool luc_hold_is_over(struct luc_journal *lj, struct luc_hold *hold, u64 *look_ns)
{
	u64 now_ns = luc_now_ns(), deadline_ns = luc_policy_deadline_ns(lj, hold, now_ns);

	*look_ns = min3(deadline_ns, hold->bound_ns, now_ns + LUC_LOOK_NS);
	if (luc_must_stop(lj, hold->journal))
		hold->end = LUC_HOLD_STOPPED;
	else if (luc_requests(lj, hold->tid) >= hold->full_at)
		hold->end = LUC_HOLD_FULL;
	else if (luc_is_awaited(lj, hold->tid))
		hold->end = LUC_HOLD_AWAITED;
	else if (luc_under_pressure(hold))
		hold->end = LUC_HOLD_PRESSURE;
	else if (now_ns >= deadline_ns)
		hold->end = LUC_HOLD_EXPIRED;
	else if (now_ns >= hold->bound_ns)
		hold->end = LUC_HOLD_BOUND;
	else
		return false;
	return true;
}

/* Sleeps until the n-th request, the deadline or a reason to stop. */
static void luc_hold_commit(struct luc_journal *lj, struct luc_hold *hold)
{
	u64 look_ns, held_ns;
	u32 requests;
	ktime_t wake;

	trace_luc_hold_begin(lj->dev, hold->tid, luc_requests(lj, hold->tid), hold->full_at);
	spin_lock(&lj->lock);
	lj->holder = current;
	lj->held_tid = hold->tid;
	lj->held_for = hold->full_at;
	while (!luc_hold_is_over(lj, hold, &look_ns)) {
		/* Set under the lock: whoever wakes us takes it first. */
		set_current_state(TASK_IDLE);
		spin_unlock(&lj->lock);
		wake = luc_when(look_ns);
		schedule_hrtimeout_range(&wake, 0, HRTIMER_MODE_ABS);
		spin_lock(&lj->lock);
	}
	lj->holder = NULL;
	held_ns = luc_now_ns() - hold->begin_ns;
	lj->counts.holds++;
	lj->counts.hold_ns += held_ns;
	lj->counts.holds_awaited += hold->end == LUC_HOLD_AWAITED;
	requests = luc_requests(lj, hold->tid);
	spin_unlock(&lj->lock);
	trace_luc_hold_end(lj->dev, hold->tid, requests, held_ns, hold->end);
}

/* The transaction that will be committed; only kjournald2 replaces it. */
static transaction_t *luc_next_transaction(journal_t *journal)
{
	transaction_t *transaction;

	read_lock(&journal->j_state_lock);
	transaction = journal->j_running_transaction;
	read_unlock(&journal->j_state_lock);
	return transaction;
}

/*
 * Holds the commit if policy and circumstances want it, and decides whether it is journaled from
 * copies. Returns its transaction's number.
 */
static tid_t luc_before_commit(struct luc_journal *lj, journal_t *journal)
{
	struct luc_hold hold = { .journal = journal, .begin_ns = luc_now_ns() };
	bool wanted;
	u64 look_ns;
	u32 writes;

	hold.transaction = luc_next_transaction(journal);
	if (!hold.transaction)
		return 0;
	hold.tid = hold.transaction->t_tid;
	hold.restarted_ns = hold.begin_ns;
	hold.full_at = U32_MAX;

	spin_lock(&lj->lock);
	lj->idle_ns = hold.begin_ns - lj->end_ns;
	hold.bound_ns = hold.begin_ns +
			min_t(u64, lj->settings.max_hold_us, LUC_MAX_HOLD_US) * NSEC_PER_USEC;
	wanted = luc_requests(lj, hold.tid) && luc_policy_wants_hold(lj, &hold) &&
		 !luc_hold_is_over(lj, &hold, &look_ns);
	spin_unlock(&lj->lock);
	if (wanted)
		luc_hold_commit(lj, &hold);
	writes = atomic_read(&hold.transaction->t_handle_count);
	spin_lock(&lj->lock);
	lj->released = luc_requests(lj, hold.tid);
	lj->counts.writes += writes;
	spin_unlock(&lj->lock);
	luc_copy_out_decide(lj, writes);
	return hold.tid;
}

/* Counts the commit that has just ended, learns from it, and begins to listen for those who come
 * back. */
static void luc_after_commit(struct luc_journal *lj, tid_t tid, u64 began_ns)
{
	u64 now_ns = luc_now_ns(), last_end_ns;
	u32 requests, waiting;

	spin_lock(&lj->lock);
	requests = luc_requests(lj, tid);
	waiting = min_t(u32, luc_requests(lj, tid + 1), LUC_MAX_PARTICIPANTS);
	last_end_ns = lj->end_ns;
	lj->end_ns = now_ns;
	lj->commit_ns = now_ns - began_ns;
	lj->copy_bytes_in_use = 0;
	lj->completions += requests;
	lj->counts.commits++;
	if (requests) {
		lj->counts.commits_by_fsync++;
		lj->counts.fsyncs_last_commit = requests;
		luc_policy_learn(lj, last_end_ns);
	}
	memset(lj->arrivals_ns, 0, waiting * sizeof(lj->arrivals_ns[0]));
	lj->arrivals = waiting;
	spin_unlock(&lj->lock);
}

void luc_wrap_commit(journal_t *journal)
{
	struct luc_journal *lj;
	u64 began_ns;
	tid_t tid;

	luc_enter();
	lj = luc_journal_get(journal);
	/* Unmount commits from the task that unmounts; it is not to be held, and its journal is
	 * forgotten. */
	if (lj && current == READ_ONCE(journal->j_task)) {
		tid = luc_before_commit(lj, journal);
		began_ns = luc_now_ns();
		luc_original_commit(journal);
		luc_after_commit(lj, tid, began_ns);
	} else {
		luc_original_commit(journal);
	}
	if (lj)
		luc_journal_put(lj);
	luc_leave();
}
