// SPDX-License-Identifier: GPL-2.0
/*
 * Who asks for commits: the two functions by which ext4's fsync waits for one, and whoever else
 * waits for one. An fsync is company that a hold is for. sync(2), syncfs, a synchronous handle or
 * an allocation that retries after ENOSPC gains nothing from company: it ends the hold.
 */
#include <linux/sched.h>

#include "compat.h"
#include "luc.h"

/* Where the transaction of an fsync is when it asks. */
enum luc_place {
	LUC_DONE,
	LUC_COMMITTING,
	LUC_RUNNING,
	LUC_RUNNING_BEHIND, /* running, while its predecessor commits */
};

static enum luc_place luc_place_of(journal_t *journal, tid_t tid)
{
	enum luc_place place = LUC_DONE;

	read_lock(&journal->j_state_lock);
	if (journal->j_running_transaction && journal->j_running_transaction->t_tid == tid)
		place = journal->j_committing_transaction ? LUC_RUNNING_BEHIND : LUC_RUNNING;
	else if (journal->j_committing_transaction &&
		 journal->j_committing_transaction->t_tid == tid)
		place = LUC_COMMITTING;
	read_unlock(&journal->j_state_lock);
	return place;
}

static tid_t luc_running_tid(journal_t *journal)
{
	tid_t tid = 0;

	read_lock(&journal->j_state_lock);
	if (journal->j_running_transaction)
		tid = journal->j_running_transaction->t_tid;
	else if (journal->j_committing_transaction)
		tid = journal->j_committing_transaction->t_tid;
	read_unlock(&journal->j_state_lock);
	return tid;
}

/* Notes that the current task took part in this window; under lj->lock. */
static void luc_note_task(struct luc_journal *lj)
{
	u32 first = hash_32(current->pid, 32) % LUC_TASKS, i;
	struct luc_task *oldest = &lj->tasks[first];

	for (i = 0; i < 8; i++) {
		struct luc_task *task = &lj->tasks[(first + i) % LUC_TASKS];

		if (task->tid == current->pid) {
			oldest = task;
			break;
		}
		if (task->window < oldest->window)
			oldest = task;
	}
	if (oldest->tid == current->pid && oldest->window == lj->window)
		return;
	oldest->tid = current->pid;
	oldest->window = lj->window;
	lj->window_tasks++;
}

/* The round of transaction tid, begun if it has none yet; under lj->lock. */
static struct luc_round *luc_round_of(struct luc_journal *lj, tid_t tid, u64 now_ns)
{
	struct luc_round *round = &lj->rounds[tid & 1];

	if (round->tid != tid) {
		round->tid = tid;
		round->requests = 0;
		round->first_ns = now_ns;
		round->awaited = false;
	}
	return round;
}

/* How many fsyncs have asked for transaction tid; under lj->lock. */
u32 luc_requests(struct luc_journal *lj, tid_t tid)
{
	return lj->rounds[tid & 1].tid == tid ? lj->rounds[tid & 1].requests : 0;
}

/* Whether somebody waits for transaction tid who is no fsync; under lj->lock. */
bool luc_is_awaited(struct luc_journal *lj, tid_t tid)
{
	return lj->rounds[tid & 1].tid == tid && lj->rounds[tid & 1].awaited;
}

static struct hlist_head *luc_askers_like(struct luc_journal *lj, struct task_struct *task)
{
	return &lj->askers[hash_ptr(task, ilog2(LUC_ASKER_BUCKETS))];
}

/* Whether the current task is inside an fsync that was counted; under lj->lock. */
static bool luc_is_asker(struct luc_journal *lj)
{
	struct luc_asker *asker;

	hlist_for_each_entry(asker, luc_askers_like(lj, current), node)
	{
		if (asker->task == current)
			return true;
	}
	return false;
}

static void luc_note_request(struct luc_journal *lj, tid_t tid, enum luc_place place,
			     struct luc_asker *asker)
{
	u64 now_ns = luc_now_ns();
	struct luc_round *round;

	spin_lock(&lj->lock);
	asker->task = current;
	hlist_add_head(&asker->node, luc_askers_like(lj, current));
	lj->counts.fsyncs++;
	if (place == LUC_DONE)
		goto out;
	if (place == LUC_RUNNING_BEHIND)
		lj->counts.fsyncs_waited_two++;
	round = luc_round_of(lj, tid, now_ns);
	round->requests++;
	round->last_ns = now_ns;
	if (place == LUC_RUNNING_BEHIND || round->requests > 1)
		lj->met = true;
	luc_note_task(lj);
	if (lj->arrivals < LUC_MAX_PARTICIPANTS)
		lj->arrivals_ns[lj->arrivals++] = min_t(u64, now_ns - lj->end_ns, U32_MAX);
	if (lj->holder && lj->held_tid == tid && round->requests >= lj->held_for)
		wake_up_process(lj->holder);
out:
	spin_unlock(&lj->lock);
}

/* The fsync returns. */
static void luc_forget_asker(struct luc_journal *lj, struct luc_asker *asker)
{
	spin_lock(&lj->lock);
	hlist_del(&asker->node);
	spin_unlock(&lj->lock);
}

/* Ends the hold of transaction tid, or keeps it from being held. */
static void luc_note_waiter(struct luc_journal *lj, tid_t tid, enum luc_place place)
{
	spin_lock(&lj->lock);
	if ((place == LUC_RUNNING || place == LUC_RUNNING_BEHIND) && !luc_is_asker(lj)) {
		luc_round_of(lj, tid, luc_now_ns())->awaited = true;
		if (lj->holder && lj->held_tid == tid)
			wake_up_process(lj->holder);
	}
	spin_unlock(&lj->lock);
}

/* fsync: waits until the transaction that has the file's changes is committed. */
int luc_wrap_complete_transaction(journal_t *journal, tid_t tid)
{
	struct luc_asker asker;
	struct luc_journal *lj;
	int error;

	luc_enter();
	lj = luc_journal_get(journal);
	if (lj)
		luc_note_request(lj, tid, luc_place_of(journal, tid), &asker);
	error = jbd2_complete_transaction(journal, tid);
	if (lj) {
		luc_forget_asker(lj, &asker);
		luc_journal_put(lj);
	}
	luc_leave();
	return error;
}

/* fsync of a folder, and up to 6.3 of a file with journaled data: commits whatever is running. */
int luc_wrap_force_commit(journal_t *journal)
{
	struct luc_asker asker;
	struct luc_journal *lj;
	tid_t tid;
	int error;

	luc_enter();
	lj = luc_journal_get(journal);
	if (lj) {
		tid = luc_running_tid(journal);
		luc_note_request(lj, tid, luc_place_of(journal, tid), &asker);
	}
	error = jbd2_journal_force_commit(journal);
	if (lj) {
		luc_forget_asker(lj, &asker);
		luc_journal_put(lj);
	}
	luc_leave();
	return error;
}

/*
 * Whoever waits for a commit comes here, an fsync from within the two above. What jbd2 calls at the
 * end of a wrapper, by a jump, looks like the wrapper's own call and is let through: that is an
 * fsync as well.
 */
int luc_wrap_wait_commit(journal_t *journal, tid_t tid)
{
	struct luc_journal *lj;
	int error;

	luc_enter();
	lj = luc_journal_get(journal);
	if (lj) {
		luc_note_waiter(lj, tid, luc_place_of(journal, tid));
		luc_journal_put(lj);
	}
	error = jbd2_log_wait_commit(journal, tid);
	luc_leave();
	return error;
}
