/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The control laws, in integers and without a clock: times come in as arguments, decisions go out
 * as values. Compiles in user space too, where a test compares it with LUC's reference
 * (crates/decide/control), whose names and constants it shares.
 *
 * Rates are in requests per 1000 seconds, logarithms in 2^-20.
 */
#ifndef LUC_CONTROL_H
#define LUC_CONTROL_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stdint.h>
typedef int32_t s32;
typedef int64_t s64;
typedef uint32_t u32;
typedef uint64_t u64;
#endif

/* The most tasks whose returns are told apart; more still share commits. */
#define LUC_MAX_PARTICIPANTS 512

/* control.c: the LUC paper's controller (section IV.A, equation 2). */

/* Gains, in thousandths. */
struct luc_gains {
	u32 kp_milli;
	u32 ki_milli;
	u32 kd_milli;
};

extern const struct luc_gains luc_paper_gains;

/* The controller and the delay that it steers. All zeros is the initial state. */
struct luc_steered_delay {
	s64 integral;	    /* sum of errors, in requests */
	s64 previous_error; /* in requests */
	s64 delay_ps;	    /* picoseconds, so that steps in thousandths of a request are exact */
};

void luc_steered_delay_restart(struct luc_steered_delay *delay, u64 delay_ns);
u64 luc_steered_delay_ns(const struct luc_steered_delay *delay);
u64 luc_steered_delay_update(struct luc_steered_delay *delay, const struct luc_gains *gains,
			     u32 set_point, u32 measured, u64 ns_per_request, u64 low_ns,
			     u64 high_ns);

/*
 * control_returns.c: how soon callers come back after a commit, and how many are worth waiting for.
 */

/* Median return times, by order of return. All zeros: nobody known. */
struct luc_returns {
	u32 returns_ns[LUC_MAX_PARTICIPANTS];
	u32 known;
};

/* A set point and when the last of its callers is expected, after the end of a commit. */
struct luc_set_point {
	u32 callers;
	u64 return_ns;
};

void luc_returns_observe(struct luc_returns *returns, const u32 *arrivals_ns, u32 arrivals,
			 u64 span_ns);
bool luc_returns_best(const struct luc_returns *returns, u64 commit_ns, struct luc_set_point *best);
u64 luc_worth_holding_ns(u64 commit_ns, u64 since_end_ns, u32 gathered, u32 missing);

/*
 * control_trial.c: does holding pay here? Samples of commits with and without, compared in pairs.
 */

struct luc_pairs {
	u32 count;
	bool has_second_look; /* the first sample was hopeful, and did not count */
	s64 mean;	      /* of the logarithm of rate with / rate without */
	s64 squares;	      /* sum of squared distances from it */
};

enum luc_verdict {
	LUC_MORE,
	LUC_PAYS,
	LUC_DOES_NOT_PAY,
};

enum luc_verdict luc_pairs_add(struct luc_pairs *pairs, u64 rate_with, u64 rate_without);
bool luc_pairs_take_second_look(struct luc_pairs *pairs, u64 rate_with, u64 rate_without);
bool luc_pairs_pays_still(const struct luc_pairs *pairs);
bool luc_pairs_are_slower(const struct luc_pairs *pairs);
bool luc_pairs_nearly_as_fast(const struct luc_pairs *pairs);

/* Time between trials, growing while nothing changes. All zeros is the initial state. */
struct luc_backoff {
	u64 interval_ns;
};

#define LUC_BACKOFF_FIRST_NS 2000000000ULL
#define LUC_BACKOFF_LONGEST_NS 60000000000ULL

u64 luc_backoff_lengthen(struct luc_backoff *backoff, u64 factor);

/* The end of a commit. */
struct luc_epoch {
	u64 end_ns;
	u64 completions;  /* callers served before this end since the beginning of time */
	u32 participants; /* distinct callers of the last window */
	u64 commit_ns;	  /* how long the commit took; 0 if not known */
	u32 released;	  /* callers in a commit that was held by plan, 0 in one that was not */
	const u32 *arrivals_ns; /* since the end before, after it, in order; only of held commits */
	u32 arrivals;
};

/* A sample of commits over which a rate is measured. All zeros is its beginning. */
struct luc_sample {
	u32 epochs;
	u64 start_ns;
	u64 completions;
};

/* What a sample has measured. */
struct luc_measured {
	u64 rate;    /* callers served per 1000 s */
	u64 served;  /* callers, at most 2^33 */
	u32 commits; /* that served them */
};

bool luc_sample_observe(struct luc_sample *sample, const struct luc_epoch *epoch,
			struct luc_measured *measured);
bool luc_sample_has_settled(const struct luc_sample *sample, u32 more);
void luc_sample_go_on(struct luc_sample *sample);

/* control_auto.c: learn, try, engage where it pays, step aside where it does not. */

enum luc_phase {
	LUC_LEARN,
	LUC_TRY_HELD,
	LUC_TRY_UNHELD,
	LUC_ENGAGED,
	LUC_CHECK,
	LUC_ASIDE,
};

enum luc_reason {
	LUC_UNDECIDED,
	LUC_ALONE,	     /* fewer than two callers */
	LUC_NOTHING_TO_GAIN, /* commits already serve about as many as they could */
	LUC_TOO_FAR_APART,   /* callers come back too far apart */
	LUC_NO_GAIN_MEASURED,
	LUC_GAIN_MEASURED,
};

/* What to do until the next end of a commit. */
struct luc_plan {
	bool held;	 /* whether commits are held at all */
	u32 set_point;	 /* a commit with this many callers goes */
	u64 return_ns;	 /* when the last of them is expected, after the end of a commit */
	u64 patience_ns; /* how long a commit that is short of callers waits beyond that */
	u64 commit_ns;	 /* the commit time that the plan assumes */
};

/* All zeros is the initial state. */
struct luc_auto {
	enum luc_phase phase;
	enum luc_reason reason;
	u32 participants;
	struct luc_sample sample;
	u64 next_ns;
	u64 decided_ns;
	u64 held_commit_ns;
	u64 unheld_commit_ns;
	u64 last_end_ns;
	u64 held_rate;
	u64 unheld_rate;
	u64 decided_commit_ns;
	u32 decided_participants;
	u32 set_point;
	u64 return_ns;
	struct luc_steered_delay patience;
	struct luc_pairs pairs;
	struct luc_backoff check_backoff;
	struct luc_backoff trial_backoff;
	u32 trials;
	u32 engagements;
	bool is_comeback; /* the trial began because callers fell behind */
	bool confirms;	  /* a check confirms an obvious gain of a trial */
	u64 trial_ns;	  /* when the last trial began, and how many had been served then */
	u64 trial_completions;
	u64 loss_pause_ns; /* how long what it has lost rules out the next one */
	struct luc_returns returns;
};

struct luc_plan luc_auto_on_epoch(struct luc_auto *a, const struct luc_epoch *epoch);
void luc_auto_pause(struct luc_auto *a);
struct luc_plan luc_auto_plan(const struct luc_auto *a);
u64 luc_plan_deadline_ns(const struct luc_plan *plan, u64 end_ns, u64 first_ns, u64 last_ns,
			 u64 now_ns, u32 gathered);

#endif /* LUC_CONTROL_H */
