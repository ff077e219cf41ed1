// SPDX-License-Identifier: GPL-2.0
/*
 * Does holding pay? Samples of held commits are compared with samples of commits that are not.
 * Reference: crates/decide/control/src/engagement.rs and sample.rs.
 */
#include "control.h"

/* Natural logarithms in 2^-20. */
#define LN_WORTHWHILE 20765   /* 1.02: a gain below this is not worth engaging for */
#define LN_OBVIOUS 233983     /* 1.25: a first pair at least this good engages at once */
#define LN_HOPEFUL 99940      /* 1.1: a first sample this good is measured once more */
#define LN_HOPELESS (-110478) /* 0.9: a first pair this bad ends the trial at once */
#define LN_NEARLY (-53785)    /* 0.95: held callers may have been as fast as others */
#define SPREAD_FLOOR 52429    /* 0.05: assumed at least, however well the pairs agree */
/* A trial that has not convinced after this many pairs is given up. */
#define MOST_PAIRS 12

/* Ends of commits that a sample leaves out after a switch: callers regroup. */
#define SETTLE_EPOCHS 2
/*
 * Ends of commits that a sample measures at least: half of what the gate needs, for all is seen
 * here (`exact` in the reference).
 */
#define MIN_EPOCHS 4
/* A sample measures at least this long, in nanoseconds. */
#define MIN_NS 10000000ULL
/* A sample this long ends with what it has, in nanoseconds. */
#define LONGEST_NS 1000000000ULL

#define ONE (1LL << 20)
#define LN_2 726817LL

/* Base-2 logarithm of a positive number, in 2^-20. */
static s64 log2_of(u64 value)
{
	u32 exponent = 63 - __builtin_clzll(value), bit;
	/* The mantissa, from 1 to 2, in 2^-31. */
	u64 mantissa = exponent > 31 ? value >> (exponent - 31) : value << (31 - exponent);
	s64 log = (s64)exponent << 20;

	for (bit = 1 << 19; bit; bit >>= 1) {
		mantissa = (mantissa * mantissa) >> 31;
		if (mantissa >> 32) {
			mantissa >>= 1;
			log += bit;
		}
	}
	return log;
}

static s64 ln_ratio(u64 a, u64 b)
{
	return (log2_of(a) - log2_of(b)) * LN_2 / ONE;
}

static u64 square_root(u64 value)
{
	u64 root = 0, bit = 1ULL << 62;

	while (bit > value)
		bit >>= 2;
	for (; bit; bit >>= 2) {
		if (value >= root + bit) {
			value -= root + bit;
			root = (root >> 1) + bit;
		} else {
			root >>= 1;
		}
	}
	return root;
}

static enum luc_verdict verdict(const struct luc_pairs *pairs)
{
	u64 n = pairs->count, spread, error;

	if (n <= 1) {
		if (pairs->mean >= LN_OBVIOUS)
			return LUC_PAYS;
		return pairs->mean <= LN_HOPELESS ? LUC_DOES_NOT_PAY : LUC_MORE;
	}
	spread = square_root((u64)(pairs->squares > 0 ? pairs->squares : 0) * ONE / (n - 1));
	if (spread < SPREAD_FLOOR)
		spread = SPREAD_FLOOR;
	error = spread * ONE / square_root(n * ONE * ONE);
	if (pairs->mean - 2 * (s64)error > LN_WORTHWHILE)
		return LUC_PAYS;
	if (pairs->mean + (s64)error < LN_WORTHWHILE || n >= MOST_PAIRS)
		return LUC_DOES_NOT_PAY;
	return LUC_MORE;
}

/* Adds a pair of rates and says what follows. A rate of 0 counts as no gain. */
enum luc_verdict luc_pairs_add(struct luc_pairs *pairs, u64 rate_with, u64 rate_without)
{
	s64 log = rate_with && rate_without ? ln_ratio(rate_with, rate_without) : 0, difference;

	if (pairs->count < ~0U)
		pairs->count++;
	difference = log - pairs->mean;
	pairs->mean += difference / (s64)pairs->count;
	pairs->squares += difference * (log - pairs->mean) / ONE;
	return verdict(pairs);
}

/*
 * Whether the first held sample of a trial should be measured once more before it counts. Says so
 * once.
 */
bool luc_pairs_take_second_look(struct luc_pairs *pairs, u64 rate_with, u64 rate_without)
{
	s64 log = rate_with && rate_without ? ln_ratio(rate_with, rate_without) : 0;

	if (pairs->count || pairs->has_second_look || log < LN_HOPEFUL || log >= LN_OBVIOUS)
		return false;
	pairs->has_second_look = true;
	return true;
}

/* A lower bar than for engaging, so that holding does not come and go. */
bool luc_pairs_pays_still(const struct luc_pairs *pairs)
{
	return pairs->mean >= LN_WORTHWHILE;
}

/* Whether callers were slower when they were held, and not only once. */
bool luc_pairs_are_slower(const struct luc_pairs *pairs)
{
	return pairs->count >= 2 && pairs->mean < 0;
}

/* Whether held callers may have been as fast as others. */
bool luc_pairs_nearly_as_fast(const struct luc_pairs *pairs)
{
	return pairs->mean > LN_NEARLY;
}

/* The next interval, factor times the last one. */
u64 luc_backoff_lengthen(struct luc_backoff *backoff, u64 factor)
{
	if (backoff->interval_ns == 0)
		backoff->interval_ns = LUC_BACKOFF_FIRST_NS;
	else if (backoff->interval_ns > LUC_BACKOFF_LONGEST_NS / (factor ? factor : 1))
		backoff->interval_ns = LUC_BACKOFF_LONGEST_NS;
	else
		backoff->interval_ns *= factor;
	return backoff->interval_ns;
}

/* Counts the epoch in; true and what was measured once the sample is complete. */
bool luc_sample_observe(struct luc_sample *sample, const struct luc_epoch *epoch,
			struct luc_measured *measured)
{
	u64 elapsed_ns, served;
	bool enough, overdue;

	if (sample->epochs < ~0U)
		sample->epochs++;
	if (sample->epochs <= SETTLE_EPOCHS) {
		sample->start_ns = epoch->end_ns;
		sample->completions = epoch->completions;
		return false;
	}
	elapsed_ns = epoch->end_ns > sample->start_ns ? epoch->end_ns - sample->start_ns : 0;
	served = epoch->completions - sample->completions;
	enough = sample->epochs >= SETTLE_EPOCHS + MIN_EPOCHS && elapsed_ns >= MIN_NS &&
		 served >= (u64)MIN_EPOCHS / 2 * epoch->participants;
	overdue = elapsed_ns >= LONGEST_NS && sample->epochs >= SETTLE_EPOCHS + 3;
	if (!enough && !overdue)
		return false;
	if (served > 1ULL << 33)
		served = 1ULL << 33;
	measured->rate = served * 1000000000ULL / (elapsed_ns / 1000 + 1);
	measured->served = served;
	measured->commits = sample->epochs - SETTLE_EPOCHS;
	return true;
}

/* Whether callers have regrouped after the switch, and `more` commits have ended since. */
bool luc_sample_has_settled(const struct luc_sample *sample, u32 more)
{
	return sample->epochs > SETTLE_EPOCHS + more;
}

/* Starts the next sample of the same kind: nothing to settle. */
void luc_sample_go_on(struct luc_sample *sample)
{
	sample->epochs = SETTLE_EPOCHS - 1;
}
