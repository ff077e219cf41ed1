// SPDX-License-Identifier: GPL-2.0
/*
 * How soon callers come back after a commit. Reference: crates/decide/control/src/setpoint.rs,
 * which also says why.
 *
 * Let a_k be the time from a commit's end until the k-th caller has arrived for the next one. A
 * commit that waits for k callers serves k per T_commit + a_k; the best set point is the k that
 * maximizes this.
 */
#include "control.h"

/* A return time moves towards a sample by this part of itself, and so settles on the median ... */
#define STEP_PART 8
/* ... and by at least this much, in nanoseconds. */
#define MIN_STEP_NS 5000
/* Who stays away this long after a commit is no longer waited for, in nanoseconds. */
#define FORGOTTEN_NS 1000000000U
/* No sum of times goes beyond this, so that it can be multiplied by any number of callers. */
#define LONGEST_NS (1ULL << 54)

static u64 add_ns(u64 a, u64 b)
{
	u64 sum = a + b;

	return sum < a || sum > LONGEST_NS ? LONGEST_NS : sum;
}

static u64 mul_sat(u64 a, u64 b)
{
	u64 product;

	return __builtin_mul_overflow(a, b, &product) ? ~0ULL : product;
}

static u64 add_sat(u64 a, u64 b)
{
	u64 sum = a + b;

	return sum < a ? ~0ULL : sum;
}

static u32 min_u32(u32 a, u32 b)
{
	return a < b ? a : b;
}

static u32 smoothed(u32 value, u32 sample)
{
	u32 distance = value > sample ? value - sample : sample - value;
	u32 step = value / STEP_PART;

	if (step < MIN_STEP_NS)
		step = MIN_STEP_NS;
	if (step > distance)
		step = distance;
	return sample > value ? value + step : value - step;
}

/*
 * What a caller costs that is left behind although it is close: it finds its changes committed and
 * flushes the device once more, for itself alone. A commit flushes twice, so that is about half of
 * its time.
 */
static u64 flush_ns(u64 commit_ns)
{
	return commit_ns / 2;
}

/*
 * Takes the arrivals between two ends of commits, after the first end, in order of arrival; span_ns
 * is the time between the ends: whoever was known and did not come in it comes later than that.
 */
void luc_returns_observe(struct luc_returns *returns, const u32 *arrivals_ns, u32 arrivals,
			 u64 span_ns)
{
	u32 known = min_u32(returns->known, LUC_MAX_PARTICIPANTS), i;
	u64 doubled = mul_sat(span_ns, 2);
	u32 missing = doubled > ~0U ? ~0U : (u32)doubled;

	arrivals = min_u32(arrivals, LUC_MAX_PARTICIPANTS);
	for (i = 0; i < arrivals; i++)
		returns->returns_ns[i] = i < known
						 ? smoothed(returns->returns_ns[i], arrivals_ns[i])
						 : arrivals_ns[i];
	for (i = arrivals; i < known; i++) {
		if (missing > returns->returns_ns[i])
			returns->returns_ns[i] += (missing - returns->returns_ns[i]) / STEP_PART;
	}
	if (known < arrivals)
		known = arrivals;
	while (known > arrivals && returns->returns_ns[known - 1] > FORGOTTEN_NS)
		known--;
	returns->known = known;
}

/* The set point that serves the most callers per time, for a commit of commit_ns; false if nobody
 * is known. */
bool luc_returns_best(const struct luc_returns *returns, u64 commit_ns, struct luc_set_point *best)
{
	u32 known = min_u32(returns->known, LUC_MAX_PARTICIPANTS), callers;
	u64 reached_ns = 0, best_cycle_ns = 1;

	best->callers = 0;
	for (callers = 1; callers <= known; callers++) {
		u64 next_ns = callers < known ? returns->returns_ns[callers] : ~0ULL, cycle_ns;

		/* Smoothing each rank by itself can leave neighbours out of order. */
		if (reached_ns < returns->returns_ns[callers - 1])
			reached_ns = returns->returns_ns[callers - 1];
		cycle_ns = add_ns(commit_ns, reached_ns);
		/* The next one is so close that leaving it behind costs a flush. */
		if (next_ns <= add_sat(reached_ns, flush_ns(commit_ns)))
			cycle_ns = add_ns(cycle_ns, flush_ns(commit_ns));
		if (cycle_ns == 0)
			cycle_ns = 1;
		/* callers / cycle >= best callers / best cycle */
		if (best->callers == 0 ||
		    callers * best_cycle_ns >= (u64)best->callers * cycle_ns) {
			best->callers = callers;
			best->return_ns = reached_ns;
			best_cycle_ns = cycle_ns;
		}
	}
	return known > 0;
}

/*
 * How long a commit is worth holding for callers that are late, after its last arrival: holding
 * pays for x < (T_commit + t) missing / gathered + T_flush (gathered + missing) / gathered.
 */
u64 luc_worth_holding_ns(u64 commit_ns, u64 since_end_ns, u32 gathered, u32 missing)
{
	u64 served, flushed;

	if (missing == 0)
		return 0;
	if (gathered == 0)
		gathered = 1;
	served = mul_sat(add_sat(commit_ns, since_end_ns), missing);
	flushed = mul_sat(flush_ns(commit_ns), (u64)gathered + missing);
	return add_sat(served, flushed) / gathered;
}
