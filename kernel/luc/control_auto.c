// SPDX-License-Identifier: GPL-2.0
/*
 * The default policy: learn, try, engage where it pays, step aside where it does not. Reference:
 * crates/decide/control/src/auto.rs.
 */
#include "control.h"

/*
 * In hundredths: a trial is not worth its cost when even everybody in each commit would gain less.
 */
#define PROMISING_PERCENT 105
/* Participants or commit time that change by the factor 3/2 make old findings void. */
#define CHANGED_NUMERATOR 3
#define CHANGED_DENOMINATOR 2
/* In hundredths: callers that are not held have fallen behind by this much. */
#define FALLEN_BEHIND_PERCENT 110
/* In hundredths: an obvious gain is confirmed if callers are not faster than this when let go. */
#define CONFIRMED_PERCENT 105
/*
 * A caller that is not held waits for the commit in flight and for its own. So it takes held
 * commits with this part of the callers for a rate that is obviously beyond what they could do
 * alone: 1.25, the obvious gain, of one in two.
 */
#define OBVIOUS_NUMERATOR 5
#define OBVIOUS_DENOMINATOR 8
/* How soon to look again when nothing but observation is needed, in nanoseconds. */
#define GLANCE_NS 100000000ULL
/* A trial rules the next one out for so many times what it has lost. */
#define LOST_PART 100
/* A sum of served calls is cut here, so that it can be multiplied. */
#define MOST_SERVED (1ULL << 23)
/* Patience with late callers is at least this, in nanoseconds. */
#define MIN_PATIENCE_NS 50000ULL
/* One more caller is assumed to take at least this long, in nanoseconds. */
#define MIN_SLOPE_NS 10000ULL
/* A commit time beyond this is cut, in nanoseconds. */
#define LONGEST_COMMIT_NS (1ULL << 40)

static u64 max_u64(u64 a, u64 b)
{
	return a > b ? a : b;
}

static u64 min_u64(u64 a, u64 b)
{
	return a < b ? a : b;
}

static bool is_holding(enum luc_phase phase)
{
	return phase == LUC_TRY_HELD || phase == LUC_ENGAGED;
}

/*
 * Moves a time by an eighth towards the sample; the first sample is taken as it is, and 0 is none.
 */
static void smooth(u64 *value_ns, u64 sample_ns)
{
	sample_ns = min_u64(sample_ns, LONGEST_COMMIT_NS);
	if (*value_ns == 0)
		*value_ns = sample_ns;
	else if (sample_ns != 0)
		*value_ns = *value_ns - *value_ns / 8 + sample_ns / 8;
}

static u64 commit_ns_of(const struct luc_auto *a)
{
	return a->held_commit_ns > 0 ? a->held_commit_ns : a->unheld_commit_ns;
}

static void enter(struct luc_auto *a, enum luc_phase phase)
{
	a->phase = phase;
	a->sample = (struct luc_sample){ 0 };
	if (phase != LUC_CHECK)
		a->confirms = false;
	if (phase == LUC_TRY_HELD) {
		a->set_point = a->participants;
		a->return_ns = 0;
		luc_steered_delay_restart(&a->patience, commit_ns_of(a));
	}
}

static void decide(struct luc_auto *a, u64 now_ns, enum luc_reason reason)
{
	a->decided_ns = now_ns;
	a->decided_participants = a->participants;
	a->decided_commit_ns = a->unheld_commit_ns;
	a->reason = reason;
	a->loss_pause_ns = 0;
}

static void step_aside(struct luc_auto *a, u64 now_ns, enum luc_reason reason, u64 pause_ns)
{
	decide(a, now_ns, reason);
	a->next_ns = now_ns + pause_ns;
	enter(a, LUC_ASIDE);
}

static void engage(struct luc_auto *a, u64 now_ns, u64 lengthen_by)
{
	decide(a, now_ns, LUC_GAIN_MEASURED);
	a->next_ns = now_ns + luc_backoff_lengthen(&a->check_backoff, lengthen_by);
	if (a->phase == LUC_TRY_HELD) {
		a->phase = LUC_ENGAGED;
		luc_sample_go_on(&a->sample);
	} else {
		enter(a, LUC_ENGAGED);
	}
}

static bool is_far(u64 now, u64 then)
{
	return now * CHANGED_DENOMINATOR > then * CHANGED_NUMERATOR ||
	       then * CHANGED_DENOMINATOR > now * CHANGED_NUMERATOR;
}

/* Whether participants or commit time are far from what the last decision saw. */
static bool has_changed(const struct luc_auto *a)
{
	return is_far(a->participants, a->decided_participants) ||
	       is_far(a->unheld_commit_ns, a->decided_commit_ns);
}

/* Whether the last decision is old enough to be questioned before its time. */
static bool has_rested(const struct luc_auto *a, u64 now_ns)
{
	return now_ns >= a->decided_ns + max_u64(a->loss_pause_ns, LUC_BACKOFF_FIRST_NS);
}

static void begin_trial(struct luc_auto *a, const struct luc_epoch *epoch)
{
	a->trials++;
	a->trial_ns = epoch->end_ns;
	a->trial_completions = epoch->completions;
}

/*
 * How long a trial that ends with this commit rules the next one out, by what it has lost: the time
 * beyond that in which callers that are let go would have been served as often.
 */
static u64 loss_pause_ns_of(const struct luc_auto *a, const struct luc_epoch *epoch)
{
	u64 took_ns = epoch->end_ns > a->trial_ns ? epoch->end_ns - a->trial_ns : 0;
	u64 served = min_u64(epoch->completions - a->trial_completions, MOST_SERVED);
	/* Rates are per 1000 s. */
	u64 worth_ns = served * 1000000000000ULL / max_u64(a->unheld_rate, 1);
	u64 lost_ns = took_ns > worth_ns ? took_ns - worth_ns : 0;

	return min_u64(lost_ns, LUC_BACKOFF_LONGEST_NS / LOST_PART) * LOST_PART;
}

static void start_trial(struct luc_auto *a, const struct luc_epoch *epoch)
{
	begin_trial(a, epoch);
	a->pairs = (struct luc_pairs){ 0 };
	a->is_comeback = false;
	enter(a, LUC_TRY_HELD);
}

static void consider_trial(struct luc_auto *a, const struct luc_epoch *epoch)
{
	u64 now_ns = epoch->end_ns;
	u64 at_best = a->participants * 1000000000000ULL / max_u64(a->unheld_commit_ns, 1);

	if (a->participants < 2) {
		step_aside(a, now_ns, LUC_ALONE, GLANCE_NS);
	} else if (at_best * 100 < a->unheld_rate * PROMISING_PERCENT) {
		step_aside(a, now_ns, LUC_NOTHING_TO_GAIN, GLANCE_NS);
	} else {
		start_trial(a, epoch);
	}
}

/*
 * Whether callers, left alone because that was as fast, are no longer as fast. Callers that were
 * held stay in step for a while when they no longer are, and share commits as if they were.
 */
static bool has_fallen_behind(const struct luc_auto *a, u64 now_ns, u64 rate)
{
	return a->reason == LUC_NO_GAIN_MEASURED && now_ns >= a->decided_ns + GLANCE_NS &&
	       a->trial_backoff.interval_ns <= LUC_BACKOFF_FIRST_NS &&
	       (a->loss_pause_ns == 0 || luc_pairs_nearly_as_fast(&a->pairs)) && !has_changed(a) &&
	       rate * FALLEN_BEHIND_PERCENT < a->held_rate * 100;
}

/* A trial has found that holding pays. */
static void pays(struct luc_auto *a, u64 now_ns)
{
	a->engagements++;
	a->trial_backoff.interval_ns = 0;
	if (!a->is_comeback)
		a->check_backoff.interval_ns = 0;
	engage(a, now_ns, 3);
}

static void conclude(struct luc_auto *a, const struct luc_epoch *epoch, enum luc_verdict verdict)
{
	u64 now_ns = epoch->end_ns, loss_pause_ns, pause_ns;

	switch (verdict) {
	case LUC_PAYS:
		pays(a, now_ns);
		break;
	case LUC_DOES_NOT_PAY:
		loss_pause_ns = loss_pause_ns_of(a, epoch);
		pause_ns = max_u64(luc_backoff_lengthen(&a->trial_backoff, 4), loss_pause_ns);
		step_aside(a, now_ns, LUC_NO_GAIN_MEASURED, pause_ns);
		a->loss_pause_ns = loss_pause_ns;
		break;
	case LUC_MORE:
		enter(a, LUC_TRY_UNHELD);
		break;
	}
}

/* What follows from one more pair of a trial. */
static enum luc_verdict add_pair(struct luc_auto *a)
{
	enum luc_verdict verdict = luc_pairs_add(&a->pairs, a->held_rate, a->unheld_rate);

	/* How much slower is not worth finding out. */
	if (verdict == LUC_MORE && luc_pairs_are_slower(&a->pairs))
		return LUC_DOES_NOT_PAY;
	return verdict;
}

/*
 * Whether an obvious gain may be nothing but more work that has come since the unheld sample: then
 * it takes another unheld sample to tell.
 */
static bool is_doubtful(const struct luc_auto *a, const struct luc_epoch *epoch,
			const struct luc_measured *held)
{
	return a->pairs.count <= 1 &&
	       held->served * OBVIOUS_DENOMINATOR <
		       (u64)OBVIOUS_NUMERATOR * epoch->participants * held->commits;
}

static void end_of_trial(struct luc_auto *a, const struct luc_epoch *epoch,
			 const struct luc_measured *held)
{
	enum luc_verdict verdict = add_pair(a);

	if (verdict == LUC_PAYS && is_doubtful(a, epoch, held)) {
		a->confirms = true;
		enter(a, LUC_CHECK);
	} else {
		conclude(a, epoch, verdict);
	}
}

static void end_of_confirmation(struct luc_auto *a, const struct luc_epoch *epoch)
{
	a->confirms = false;
	if (a->unheld_rate * 100 < a->held_rate * CONFIRMED_PERCENT) {
		pays(a, epoch->end_ns);
	} else {
		a->pairs = (struct luc_pairs){ 0 };
		luc_pairs_add(&a->pairs, a->held_rate, a->unheld_rate);
		conclude(a, epoch, LUC_DOES_NOT_PAY);
	}
}

static void end_of_check(struct luc_auto *a, const struct luc_epoch *epoch)
{
	a->pairs = (struct luc_pairs){ 0 };
	luc_pairs_add(&a->pairs, a->held_rate, a->unheld_rate);
	if (luc_pairs_pays_still(&a->pairs)) {
		engage(a, epoch->end_ns, 3);
	} else {
		/* One pair may be bad luck: a trial finds out. */
		begin_trial(a, epoch);
		enter(a, LUC_TRY_HELD);
	}
}

static void end_of_sample(struct luc_auto *a, const struct luc_epoch *epoch,
			  const struct luc_measured *measured)
{
	u64 now_ns = epoch->end_ns, rate = measured->rate;

	switch (a->phase) {
	case LUC_LEARN:
		a->unheld_rate = rate;
		consider_trial(a, epoch);
		break;
	case LUC_TRY_HELD:
		a->held_rate = rate;
		if (luc_pairs_take_second_look(&a->pairs, rate, a->unheld_rate))
			luc_sample_go_on(&a->sample);
		else
			end_of_trial(a, epoch, measured);
		break;
	case LUC_TRY_UNHELD:
		a->unheld_rate = rate;
		enter(a, LUC_TRY_HELD);
		break;
	case LUC_ENGAGED:
		a->held_rate = rate;
		if (now_ns >= a->next_ns ||
		    (has_rested(a, now_ns) && (rate < a->unheld_rate || has_changed(a))))
			enter(a, LUC_CHECK);
		else
			luc_sample_go_on(&a->sample);
		break;
	case LUC_CHECK:
		a->unheld_rate = rate;
		if (a->confirms)
			end_of_confirmation(a, epoch);
		else
			end_of_check(a, epoch);
		break;
	case LUC_ASIDE:
		if (has_fallen_behind(a, now_ns, rate)) {
			a->unheld_rate = rate;
			start_trial(a, epoch);
			a->is_comeback = true;
		} else {
			luc_sample_go_on(&a->sample);
		}
		break;
	}
}

static void within_sample(struct luc_auto *a, u64 now_ns)
{
	if (is_holding(a->phase) && luc_sample_has_settled(&a->sample, 0)) {
		if (a->participants <= 1)
			step_aside(a, now_ns, LUC_ALONE, GLANCE_NS);
		else if (a->set_point <= 1 && luc_sample_has_settled(&a->sample, 2))
			step_aside(a, now_ns, LUC_TOO_FAR_APART,
				   luc_backoff_lengthen(&a->trial_backoff, 4));
	} else if (a->phase == LUC_ASIDE &&
		   (now_ns >= a->next_ns || (has_rested(a, now_ns) && has_changed(a)))) {
		enter(a, LUC_LEARN);
	}
}

/* Chooses the set point and lets the PID steer how long to be patient with late callers. */
static void steer(struct luc_auto *a, u32 released)
{
	u64 commit_ns = commit_ns_of(a), slope_ns;
	struct luc_set_point best;

	if (!is_holding(a->phase) || released == 0)
		return;
	/* The first commits of a trial wait for everybody: only so can their returns be seen. */
	if ((a->phase == LUC_ENGAGED || luc_sample_has_settled(&a->sample, 0)) &&
	    luc_returns_best(&a->returns, commit_ns, &best)) {
		a->set_point = best.callers;
		a->return_ns = best.return_ns;
	}
	slope_ns = max_u64(a->return_ns / max_u64(a->set_point, 1), MIN_SLOPE_NS);
	luc_steered_delay_update(&a->patience, &luc_paper_gains, a->set_point, released, slope_ns,
				 max_u64(MIN_PATIENCE_NS, a->return_ns / 4), commit_ns);
}

/* Takes the end of a commit and says how to go on. */
struct luc_plan luc_auto_on_epoch(struct luc_auto *a, const struct luc_epoch *epoch)
{
	u64 interval_ns = epoch->end_ns > a->last_end_ns ? epoch->end_ns - a->last_end_ns : 0;
	struct luc_measured measured;

	a->last_end_ns = epoch->end_ns;
	a->participants = epoch->participants;
	if (epoch->released > 0) {
		smooth(&a->held_commit_ns, epoch->commit_ns);
		luc_returns_observe(&a->returns, epoch->arrivals_ns, epoch->arrivals, interval_ns);
	} else {
		smooth(&a->unheld_commit_ns, min_u64(epoch->commit_ns, interval_ns));
	}
	steer(a, epoch->released);
	if (luc_sample_observe(&a->sample, epoch, &measured))
		end_of_sample(a, epoch, &measured);
	else
		within_sample(a, epoch->end_ns);
	return luc_auto_plan(a);
}

/*
 * The load has paused, so the commits before and after are not of one sample: a trial between them
 * would compare one load with another, and begins again from watching. What is engaged stays so
 * until its check.
 */
void luc_auto_pause(struct luc_auto *a)
{
	if (a->phase != LUC_TRY_HELD && a->phase != LUC_TRY_UNHELD && a->phase != LUC_LEARN &&
	    !a->confirms)
		return;
	a->pairs = (struct luc_pairs){ 0 };
	enter(a, LUC_LEARN);
}

/* The plan that holds now. */
struct luc_plan luc_auto_plan(const struct luc_auto *a)
{
	return (struct luc_plan){
		.held = is_holding(a->phase),
		.set_point = a->set_point > 1 ? a->set_point : 1,
		.return_ns = a->return_ns,
		.patience_ns = luc_steered_delay_ns(&a->patience),
		.commit_ns = commit_ns_of(a),
	};
}

/*
 * When a commit goes that is short of callers: when the last one is overdue beyond the plan's
 * patience, or beyond what holding is worth. The last commit ended at end_ns; `gathered` callers
 * arrived since first_ns, the last at last_ns.
 */
u64 luc_plan_deadline_ns(const struct luc_plan *plan, u64 end_ns, u64 first_ns, u64 last_ns,
			 u64 now_ns, u32 gathered)
{
	u64 expected_ns = max_u64(first_ns, end_ns + plan->return_ns), worth_ns;
	u32 missing = plan->set_point > gathered ? plan->set_point - gathered : 0;

	if (now_ns < expected_ns)
		return expected_ns;
	worth_ns = luc_worth_holding_ns(plan->commit_ns, last_ns > end_ns ? last_ns - end_ns : 0,
					gathered, missing);
	return min_u64(expected_ns + plan->patience_ns, max_u64(last_ns, end_ns) + worth_ns);
}
