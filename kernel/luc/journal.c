// SPDX-License-Identifier: GPL-2.0
/*
 * The side table: what luc.ko knows about each journal. A field added to struct journal_s would
 * change the versions of nearly all of jbd2's symbols, so the table is our own, found by the
 * journal's address.
 *
 * An entry's journal is used only inside a call that jbd2 or ext4 made with it; elsewhere it is a
 * mere number, for a journal may be freed while its entry is still held.
 */
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "luc.h"
#include "trace_luc.h"

static DEFINE_HASHTABLE(luc_journals, 6);
/* Serializes changes of the table. */
static DEFINE_MUTEX(luc_journals_lock);

/* Journals that tasks are unmounting now; under luc_journals_lock. */
struct luc_unmount {
	struct hlist_node node;
	journal_t *journal;
};
static HLIST_HEAD(luc_unmounts);

static void luc_journal_setup(struct luc_journal *lj)
{
	spin_lock_init(&lj->lock);
	lj->settings = luc_defaults;
}

/* The entry of a journal; the caller is in an RCU read-side section. */
struct luc_journal *luc_journal_find_rcu(journal_t *journal)
{
	struct luc_journal *lj;

	hash_for_each_possible_rcu (luc_journals, lj, node, (unsigned long)journal) {
		if (lj->journal == journal)
			return lj;
	}
	return NULL;
}

/* The entry of a journal with a reference; NULL if there is none. */
struct luc_journal *luc_journal_get(journal_t *journal)
{
	struct luc_journal *lj;

	rcu_read_lock();
	lj = luc_journal_find_rcu(journal);
	if (lj && !kobject_get_unless_zero(&lj->kobj))
		lj = NULL;
	rcu_read_unlock();
	return lj;
}

void luc_journal_put(struct luc_journal *lj)
{
	kobject_put(&lj->kobj);
}

/* Lets a commit that is held go on, and holds no other. */
static void luc_journal_stop(struct luc_journal *lj)
{
	spin_lock(&lj->lock);
	lj->gone = true;
	if (lj->holder)
		wake_up_process(lj->holder);
	spin_unlock(&lj->lock);
}

/* Under luc_journals_lock. */
static void luc_journal_remove(struct luc_journal *lj)
{
	hash_del_rcu(&lj->node);
	luc_journal_stop(lj);
	kobject_del(&lj->kobj);
	kobject_put(&lj->kobj);
}

static struct luc_journal *luc_journal_find_name(const char *name)
{
	struct luc_journal *lj;
	int bucket;

	hash_for_each (luc_journals, bucket, lj, node) {
		if (!strcmp(lj->name, name))
			return lj;
	}
	return NULL;
}

/*
 * Adds an entry; whatever had this address or this name before is no more. Under
 * luc_journals_lock.
 */
static void luc_journal_add_locked(journal_t *journal, const char *name, dev_t dev)
{
	struct luc_journal *lj, *old;
	int error = -ENOMEM;

	rcu_read_lock();
	old = luc_journal_find_rcu(journal);
	rcu_read_unlock();
	if (old)
		luc_journal_remove(old);
	old = luc_journal_find_name(name);
	if (old)
		luc_journal_remove(old);

	lj = kvzalloc(sizeof(*lj), GFP_KERNEL);
	if (!lj)
		goto out;
	luc_journal_setup(lj);
	lj->journal = journal;
	lj->dev = dev;
	strscpy(lj->name, name, sizeof(lj->name));
	lj->delays = alloc_percpu(struct luc_delays);
	if (!lj->delays) {
		kvfree(lj);
		goto out;
	}
	kobject_init(&lj->kobj, &luc_journal_ktype);
	error = kobject_add(&lj->kobj, luc_root, "%s", name);
	if (!error)
		error = sysfs_create_group(&lj->kobj, &luc_stats_group);
	if (error) {
		kobject_put(&lj->kobj);
		goto out;
	}
	hash_add_rcu(luc_journals, &lj->node, (unsigned long)journal);
	kobject_uevent(&lj->kobj, KOBJ_ADD);
out:
	if (error)
		pr_warn("luc: journal %s is left alone: no memory or no place in sysfs (%d)\n",
			name, error);
}

static void luc_journal_add(journal_t *journal, const char *name, dev_t dev)
{
	/* Mounting may already hold locks that reclaim would want. */
	unsigned int nofs = memalloc_nofs_save();

	mutex_lock(&luc_journals_lock);
	luc_journal_add_locked(journal, name, dev);
	mutex_unlock(&luc_journals_lock);
	memalloc_nofs_restore(nofs);
}

/* From here until luc_unmount_end() nobody adds the journal. */
static void luc_unmount_begin(struct luc_unmount *unmount, journal_t *journal)
{
	struct luc_journal *lj;

	unmount->journal = journal;
	mutex_lock(&luc_journals_lock);
	hlist_add_head(&unmount->node, &luc_unmounts);
	rcu_read_lock();
	lj = luc_journal_find_rcu(journal);
	rcu_read_unlock();
	if (lj)
		luc_journal_remove(lj);
	mutex_unlock(&luc_journals_lock);
}

static void luc_unmount_end(struct luc_unmount *unmount)
{
	mutex_lock(&luc_journals_lock);
	hlist_del(&unmount->node);
	mutex_unlock(&luc_journals_lock);
}

/* Under luc_journals_lock. */
static bool luc_is_unmounting(journal_t *journal)
{
	struct luc_unmount *unmount;

	hlist_for_each_entry(unmount, &luc_unmounts, node)
	{
		if (unmount->journal == journal)
			return true;
	}
	return false;
}

/* A journal is about to be used: its first sight. */
int luc_wrap_journal_load(journal_t *journal)
{
	int error;

	luc_enter();
	error = jbd2_journal_load(journal);
	if (!error && !luc_is_leaving())
		luc_journal_add(journal, journal->j_devname, journal->j_fs_dev->bd_dev);
	luc_leave();
	return error;
}

/* Unmount: forgotten before jbd2 makes the last commits. */
int luc_wrap_journal_destroy(journal_t *journal)
{
	struct luc_unmount unmount;
	int error;

	luc_enter();
	luc_unmount_begin(&unmount, journal);
	error = jbd2_journal_destroy(journal);
	luc_unmount_end(&unmount);
	luc_leave();
	return error;
}

/* What is needed of a journal that may be freed while it is read. */
struct luc_sight {
	journal_t *journal;
	dev_t dev;
	char name[64];
};

#define luc_peek(to, from) (!copy_from_kernel_nofault(&(to), &(from), sizeof(to)))

/*
 * A kjournald2 names its journal. It clears j_task before the journal is freed, so a journal whose
 * j_task is this task is one.
 */
static bool luc_journal_of(struct task_struct *task, struct luc_sight *sight)
{
	struct task_struct *committer;
	struct block_device *bdev;
	unsigned long flags;

	if (!(task->flags & PF_KTHREAD) || kthread_func(task) != luc_symbols.kjournald2)
		return false;
	sight->journal = kthread_data(task);
	if (!luc_peek(committer, sight->journal->j_task) || committer != task)
		return false;
	if (!luc_peek(flags, sight->journal->j_flags) || flags & JBD2_UNMOUNT)
		return false;
	if (!luc_peek(bdev, sight->journal->j_fs_dev) || !luc_peek(sight->dev, bdev->bd_dev))
		return false;
	return !copy_from_kernel_nofault(
		sight->name, sight->journal->j_devname,
		min(sizeof(sight->name) - 1, sizeof(sight->journal->j_devname)));
}

/* Whether there is an entry for this journal: it was mounted while the hooks were already there. */
static bool luc_journal_known(journal_t *journal)
{
	bool known;

	rcu_read_lock();
	known = luc_journal_find_rcu(journal);
	rcu_read_unlock();
	return known;
}

/*
 * Adds what was seen of a journal's task, unless it has been unmounted since, or is being: an
 * unmount whose wrapper has come this far is in the list or has cleared j_task.
 */
static void luc_journal_attach(struct task_struct *task, const struct luc_sight *seen)
{
	struct luc_sight now = {};
	unsigned int nofs = memalloc_nofs_save();

	mutex_lock(&luc_journals_lock);
	if (luc_journal_of(task, &now) && now.journal == seen->journal &&
	    !luc_is_unmounting(now.journal) && !luc_journal_known(now.journal))
		luc_journal_add_locked(now.journal, now.name, now.dev);
	mutex_unlock(&luc_journals_lock);
	memalloc_nofs_restore(nofs);
}

/* Finds the journals that were there before the hooks. */
void luc_journals_attach(void)
{
	unsigned int seen = 0, at, limit = 4096;
	struct luc_sight sight;
	struct task_struct *task;
	bool found;

	/* The table cannot be changed under RCU, so each journal found starts the walk anew behind
	 * it. */
	do {
		memset(&sight, 0, sizeof(sight));
		found = false;
		at = 0;
		rcu_read_lock();
		for_each_process (task) {
			if (!luc_journal_of(task, &sight) || at++ < seen)
				continue;
			found = true;
			get_task_struct(task);
			break;
		}
		rcu_read_unlock();
		seen++;
		if (found) {
			luc_journal_attach(task, &sight);
			put_task_struct(task);
		}
	} while (found && --limit);
}

/* Lets all held commits go on. */
void luc_journals_stop(void)
{
	struct luc_journal *lj;
	int bucket;

	mutex_lock(&luc_journals_lock);
	hash_for_each (luc_journals, bucket, lj, node)
		luc_journal_stop(lj);
	mutex_unlock(&luc_journals_lock);
}

/* No wrapper runs any more: empties the table and waits until the last reference is gone. */
void luc_journals_forget_all(void)
{
	struct luc_journal *lj;
	struct hlist_node *next;
	int bucket;

	mutex_lock(&luc_journals_lock);
	hash_for_each_safe (luc_journals, bucket, next, lj, node)
		luc_journal_remove(lj);
	mutex_unlock(&luc_journals_lock);
	rcu_barrier();
}
