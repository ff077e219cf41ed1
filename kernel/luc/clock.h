/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The module's clock: all that it waits for, decides by and counts in time is in this clock's
 * nanoseconds. It is CLOCK_MONOTONIC, unless parameter stretch_permille makes it slower: in a guest
 * in virtual time that stands for a faster processor, everything else lasts longer, too.
 */
#ifndef LUC_CLOCK_H
#define LUC_CLOCK_H

#include <linux/ktime.h>
#include <linux/math64.h>

/* As it is; what the parameter may be. */
#define LUC_UNSTRETCHED 1000
#define LUC_LEAST_STRETCH 10
#define LUC_MOST_STRETCH 100000

/* main.c: how many nanoseconds of CLOCK_MONOTONIC are a thousand of this clock. */
extern unsigned int luc_stretch_permille;

static inline u64 luc_now_ns(void)
{
	u64 now_ns = ktime_get_ns();

	if (likely(luc_stretch_permille == LUC_UNSTRETCHED))
		return now_ns;
	return mul_u64_u64_div_u64(now_ns, LUC_UNSTRETCHED, luc_stretch_permille);
}

/* When this clock shows then_ns, in CLOCK_MONOTONIC; a nanosecond later at most, never earlier. */
static inline ktime_t luc_when(u64 then_ns)
{
	u64 whole_ns;

	if (likely(luc_stretch_permille == LUC_UNSTRETCHED))
		return ns_to_ktime(then_ns);
	whole_ns = mul_u64_u64_div_u64(then_ns, luc_stretch_permille, LUC_UNSTRETCHED);
	return ns_to_ktime(whole_ns + 1);
}

#endif /* LUC_CLOCK_H */
