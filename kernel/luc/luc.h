/* SPDX-License-Identifier: GPL-2.0 */
/*
 * luc.ko: holds ext4's journal commits for company, and journals metadata from copies, on a kernel
 * that knows nothing of it. What the files share.
 */
#ifndef LUC_H
#define LUC_H

#include <linux/hashtable.h>
#include <linux/jbd2.h>
#include <linux/kobject.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>

#include "clock.h"
#include "control.h"

#define LUC_VERSION "0.1.0"
/* Raised when a file below /sys/kernel/luc changes its meaning. */
#define LUC_INTERFACE 1

/* No commit is held longer than this, whatever is configured. */
#define LUC_MAX_HOLD_US 50000

enum luc_policy {
	LUC_POLICY_OFF,
	LUC_POLICY_DELAY,
	LUC_POLICY_PID,
	LUC_POLICY_AUTO,
};

enum luc_copy_out {
	LUC_COPY_OUT_OFF,
	LUC_COPY_OUT_ON,
	LUC_COPY_OUT_HEURISTIC,
	LUC_COPY_OUT_AUTO,
};

/* Why a hold ended, or was not begun. */
enum luc_hold_end {
	LUC_HOLD_FULL,	   /* as many requests as the set point */
	LUC_HOLD_EXPIRED,  /* nobody came in time */
	LUC_HOLD_BOUND,	   /* the bound on any hold */
	LUC_HOLD_PRESSURE, /* no space in the journal, or somebody waits for the commit to start */
	LUC_HOLD_STOPPED,  /* unmount, freeze or unload */
	LUC_HOLD_AWAITED,  /* somebody waits for the commit who is no fsync */
};

/* What can be set for a journal, in the units of its sysfs files. Under luc_journal.lock. */
struct luc_settings {
	enum luc_policy policy;
	enum luc_copy_out copy_out;
	u32 delay_us;
	u32 max_restarts;
	u32 timeout_us;
	u32 max_hold_us;
	u32 set_point;
	u32 kp_milli;
	u32 ki_milli;
	u32 kd_milli;
	u32 copy_out_threshold_permille;
	u32 copy_out_clean_runs;
	u32 copy_out_limit_kib;
};

/* The fsyncs that asked for one transaction. Under luc_journal.lock. */
struct luc_round {
	tid_t tid;
	u32 requests;
	u64 first_ns;
	u64 last_ns;
	bool awaited; /* somebody waits for it who is no fsync */
};

/* Writes that had to wait; by any task at any time, so per processor. */
struct luc_delays {
	u64 delayed;
	u64 delay_ns;
};

/* Under luc_journal.lock. */
struct luc_counts {
	u64 commits;
	u64 commits_by_fsync;
	u64 fsyncs;
	u64 fsyncs_waited_two;
	u64 holds;
	u64 hold_ns;
	u64 holds_awaited;
	u64 writes;
	u64 copies;
	u64 copy_bytes;
	u64 copies_failed;
	u32 fsyncs_last_commit;
	u32 set_point;
	s32 error_milli;
	u32 output_us;
};

/* A task that calls fsync is recognized by its thread id. */
#define LUC_TASKS 512

struct luc_task {
	pid_t tid;
	u32 window; /* the last window in which it was seen */
};

/* A task inside an fsync that was counted, from the count to its return; on its stack. */
struct luc_asker {
	struct hlist_node node;
	struct task_struct *task;
};

#define LUC_ASKER_BUCKETS 32

/*
 * Whether commits are journaled from copies, and what that is decided by. Under luc_journal.lock.
 */
struct luc_copying {
	bool on;
	u32 clean_runs;		  /* commits in a row that gave no reason to copy */
	u32 buffers;		  /* metadata buffers of the commit under way */
	u64 spent_ns;		  /* on copying them */
	struct luc_delays before; /* sums when the last commit began */
	u64 wait_ns;		  /* mean wait of a delayed write; 0: none seen */
	u64 copy_ns;		  /* mean time of a copy; 0: none made */
};

/* One hold, from the decision to its end. */
struct luc_hold {
	journal_t *journal;
	transaction_t *transaction;
	tid_t tid;
	u64 begin_ns;
	u64 bound_ns;
	u32 full_at; /* go with so many requests */
	u32 restarts;
	u64 restarted_ns;
	enum luc_hold_end end;
};

/* What luc.ko knows about a journal: an entry of the side table, from load or mount to unmount. */
struct luc_journal {
	struct hlist_node node; /* in the side table, RCU */
	journal_t *
		journal; /* compared, and used only inside a call of jbd2 that got it as argument */
	dev_t dev;
	char name[64];
	struct kobject kobj; /* also counts the references */
	struct rcu_head rcu;
	struct luc_delays __percpu *delays;

	spinlock_t lock;
	struct luc_settings settings;
	struct luc_counts counts;
	bool gone;		    /* unmounted, or the module is leaving: hold no more */
	struct task_struct *holder; /* kjournald2 while it holds a commit */
	tid_t held_tid;
	u32 held_for; /* wake the holder at this many requests */

	struct luc_round rounds[2]; /* by the transaction's parity: running and committing */
	struct hlist_head askers[LUC_ASKER_BUCKETS]; /* by task */

	/* Arrivals since the last commit's end, after it; 0 for whoever waited then. */
	u32 arrivals_ns[LUC_MAX_PARTICIPANTS];
	u32 arrivals;
	u64 end_ns; /* of the last commit */
	u64 completions;
	u32 released; /* fsyncs in the commit under way when it began */
	bool planned; /* and it went by a plan of `auto` to hold commits */

	u64 commit_ns; /* how long the last one took */
	u64 idle_ns;   /* from the end before to this one's begin, or its hold's */

	struct luc_task tasks[LUC_TASKS];
	u32 window;
	u32 window_commits;
	u32 window_tasks;
	u32 previous_tasks;
	u32 participants;
	bool met, met_before; /* two fsyncs were under way at a time, in this window and the last */

	struct luc_steered_delay pid;
	struct luc_auto automatic;
	struct luc_plan plan;

	struct luc_copying copying;
	u64 copy_bytes_in_use;	   /* all of them belong to the commit under way */
	unsigned long saved_tasks; /* a bit for each task (or several) that a copy spared a wait */
};

/* main.c: defaults of new journals, and whether the running kernel is one of those tested. */
extern struct luc_settings luc_defaults;
extern bool luc_is_tested;

/* symbols.c */
int luc_find_symbols(void);
void *luc_lookup(const char *name);
struct luc_symbols {
	void *commit_transaction;
	void *write_metadata_buffer;
	void *kjournald2;
};
extern struct luc_symbols luc_symbols;
void luc_original_commit(journal_t *journal);
int luc_original_write_metadata(transaction_t *transaction, struct journal_head *jh,
				struct buffer_head **bh_out, sector_t block);
void *luc_jbd2_alloc(size_t size, gfp_t flags);
void luc_jbd2_free(void *ptr, size_t size);
/* layout.c: whether the running kernel's type information has vouched for jbd2's structures. */
int luc_check_layout(void);
extern bool luc_layout_is_checked;

/* hook.c */
int luc_hooks_install(void);
void luc_hooks_remove(void);
bool luc_is_leaving(void);
void luc_enter(void);
void luc_leave(void);

/* journal.c */
void luc_journals_attach(void);
void luc_journals_stop(void);
void luc_journals_forget_all(void);
struct luc_journal *luc_journal_get(journal_t *journal);
struct luc_journal *luc_journal_find_rcu(journal_t *journal);
void luc_journal_put(struct luc_journal *lj);
int luc_wrap_journal_load(journal_t *journal);
int luc_wrap_journal_destroy(journal_t *journal);

/* fsync.c: who asks for commits */
int luc_wrap_complete_transaction(journal_t *journal, tid_t tid);
int luc_wrap_force_commit(journal_t *journal);
int luc_wrap_wait_commit(journal_t *journal, tid_t tid);
u32 luc_requests(struct luc_journal *lj, tid_t tid);
bool luc_is_awaited(struct luc_journal *lj, tid_t tid);

/* hold.c: the commit */
void luc_wrap_commit(journal_t *journal);

/* policy.c: when a hold ends, and what a commit teaches; all under lj->lock */
bool luc_policy_wants_hold(struct luc_journal *lj, struct luc_hold *hold);
u64 luc_policy_deadline_ns(struct luc_journal *lj, struct luc_hold *hold, u64 now_ns);
void luc_policy_learn(struct luc_journal *lj, u64 last_end_ns);
void luc_policy_reset(struct luc_journal *lj);
const char *luc_policy_state(struct luc_journal *lj);

/* copyout.c */
int luc_wrap_write_metadata(transaction_t *transaction, struct journal_head *jh,
			    struct buffer_head **bh_out, sector_t block);
int luc_wrap_get_write_access(handle_t *handle, struct buffer_head *bh);
void luc_copy_out_decide(struct luc_journal *lj, u32 writes);

/* sysfs.c and stats.c */
extern struct kobj_type luc_journal_ktype;
extern const struct attribute_group luc_stats_group;
int luc_sysfs_init(void);
void luc_sysfs_exit(void);
int luc_parse_policy(const char *text, enum luc_policy *policy);
int luc_parse_copy_out(const char *text, enum luc_copy_out *copy_out);
extern struct kobject *luc_root;
void luc_sum_delays(struct luc_journal *lj, struct luc_delays *sum);

#endif /* LUC_H */
