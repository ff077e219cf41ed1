// SPDX-License-Identifier: GPL-2.0
/*
 * When a hold ends, and what the end of a commit teaches: between the journal and the control laws.
 */
#include "compat.h"
#include "luc.h"
#include "trace_luc.h"

/* Participants are counted over this many commits. */
#define LUC_WINDOW_COMMITS 4
/* After this long without an fsync everything learnt is forgotten: the load may be another. */
#define LUC_FORGOTTEN_NS (5 * NSEC_PER_SEC)
/* The load has paused when no fsync came for so long, or for so many commit times if that is
 * longer. */
#define LUC_PAUSE_NS (100 * NSEC_PER_MSEC)
#define LUC_PAUSE_COMMITS 8
/* What one more fsync costs under policy pid, in nanoseconds: the plant's slope. */
#define LUC_PID_SLOPE_NS (50 * NSEC_PER_USEC)

/* Whether the policy would hold this commit, and for how many fsyncs at most. */
bool luc_policy_wants_hold(struct luc_journal *lj, struct luc_hold *hold)
{
	lj->planned = false;
	switch (lj->settings.policy) {
	case LUC_POLICY_OFF:
		return false;
	case LUC_POLICY_DELAY:
		hold->full_at = U32_MAX;
		return true;
	case LUC_POLICY_PID:
		/* When all who are known have come there is nobody to wait for. */
		hold->full_at = max(max(lj->participants, lj->settings.set_point), 1U);
		return true;
	case LUC_POLICY_AUTO:
		hold->full_at = lj->plan.set_point;
		lj->planned = lj->plan.held;
		return lj->plan.held;
	}
	return false;
}

/* delayJC: the time starts when nothing is in the commit's way, and anew with each fsync. */
static u64 luc_delay_deadline_ns(struct luc_journal *lj, struct luc_hold *hold, u64 last_ns)
{
	if (last_ns > hold->restarted_ns && hold->restarts < lj->settings.max_restarts) {
		hold->restarts++;
		hold->restarted_ns = last_ns;
	}
	return hold->restarted_ns + lj->settings.delay_us * NSEC_PER_USEC;
}

/* When the hold ends if nobody else comes. */
u64 luc_policy_deadline_ns(struct luc_journal *lj, struct luc_hold *hold, u64 now_ns)
{
	const struct luc_round *round = &lj->rounds[hold->tid & 1];
	u64 idle_from_ns = max(round->last_ns, hold->begin_ns);

	switch (lj->settings.policy) {
	case LUC_POLICY_OFF:
		break;
	case LUC_POLICY_DELAY:
		return luc_delay_deadline_ns(lj, hold, round->last_ns);
	case LUC_POLICY_PID:
		return min(hold->begin_ns + luc_steered_delay_ns(&lj->pid),
			   idle_from_ns + lj->settings.timeout_us * NSEC_PER_USEC);
	case LUC_POLICY_AUTO:
		return luc_plan_deadline_ns(&lj->plan, lj->end_ns, round->first_ns, round->last_ns,
					    now_ns, round->requests);
	}
	return 0;
}

/* Counts the tasks of a window when it is over. */
static void luc_count_window(struct luc_journal *lj)
{
	if (++lj->window_commits < LUC_WINDOW_COMMITS)
		return;
	lj->participants = max(lj->window_tasks, lj->previous_tasks);
	lj->previous_tasks = lj->window_tasks;
	lj->window_tasks = 0;
	lj->window_commits = 0;
	lj->window++;
	lj->met_before = lj->met;
	lj->met = false;
}

static void luc_learn_pid(struct luc_journal *lj)
{
	const struct luc_settings *settings = &lj->settings;
	const struct luc_gains gains = {
		.kp_milli = settings->kp_milli,
		.ki_milli = settings->ki_milli,
		.kd_milli = settings->kd_milli,
	};
	u32 set_point = settings->set_point ?: max(lj->participants / 2, 1U);
	u64 longest_ns = min_t(u64, settings->max_hold_us, LUC_MAX_HOLD_US) * NSEC_PER_USEC;

	luc_steered_delay_update(&lj->pid, &gains, set_point, lj->released, LUC_PID_SLOPE_NS, 0,
				 longest_ns);
	lj->counts.set_point = set_point;
	lj->counts.error_milli = ((s32)set_point - (s32)lj->released) * 1000;
	lj->counts.output_us = div_u64(luc_steered_delay_ns(&lj->pid), NSEC_PER_USEC);
}

/*
 * Those who could share commits. If no fsync came while another was under way, nobody has waited
 * for anybody: different tasks were one after the other, as the programs of a shell script are.
 */
static u32 luc_sharers(const struct luc_journal *lj)
{
	return lj->met || lj->met_before ? lj->participants : min(lj->participants, 1U);
}

static void luc_learn_auto(struct luc_journal *lj)
{
	enum luc_phase before = lj->automatic.phase;
	const struct luc_epoch epoch = {
		.end_ns = lj->end_ns,
		.completions = lj->completions,
		.participants = luc_sharers(lj),
		.commit_ns = lj->commit_ns,
		.released = lj->planned ? lj->released : 0,
		.arrivals_ns = lj->arrivals_ns,
		.arrivals = lj->arrivals,
	};

	if (lj->idle_ns > max_t(u64, LUC_PAUSE_NS, LUC_PAUSE_COMMITS * lj->commit_ns))
		luc_auto_pause(&lj->automatic);
	lj->plan = luc_auto_on_epoch(&lj->automatic, &epoch);
	lj->counts.set_point = lj->plan.held ? lj->plan.set_point : 0;
	lj->counts.error_milli =
		lj->plan.held ? ((s32)lj->plan.set_point - (s32)lj->released) * 1000 : 0;
	lj->counts.output_us =
		lj->plan.held ? div_u64(lj->plan.return_ns + lj->plan.patience_ns, NSEC_PER_USEC)
			      : 0;
	if (lj->automatic.phase != before)
		trace_luc_auto_state(lj->dev, before, &lj->automatic);
}

/* Starts over, as at the first sight of the journal. */
void luc_policy_reset(struct luc_journal *lj)
{
	memset(&lj->pid, 0, sizeof(lj->pid));
	memset(&lj->automatic, 0, sizeof(lj->automatic));
	memset(&lj->plan, 0, sizeof(lj->plan));
	lj->counts.set_point = 0;
	lj->counts.error_milli = 0;
	lj->counts.output_us = 0;
}

/* Takes the end of a commit that fsync asked for. */
void luc_policy_learn(struct luc_journal *lj, u64 last_end_ns)
{
	luc_count_window(lj);
	if (lj->end_ns - last_end_ns > LUC_FORGOTTEN_NS)
		luc_policy_reset(lj);
	if (lj->settings.policy == LUC_POLICY_PID)
		luc_learn_pid(lj);
	else if (lj->settings.policy == LUC_POLICY_AUTO)
		luc_learn_auto(lj);
}

const char *luc_policy_state(struct luc_journal *lj)
{
	switch (lj->automatic.phase) {
	case LUC_LEARN:
		break;
	case LUC_TRY_HELD:
	case LUC_TRY_UNHELD:
		return "trial";
	case LUC_ENGAGED:
	case LUC_CHECK:
		return "engaged";
	case LUC_ASIDE:
		return "aside";
	}
	return "learning";
}
