/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The control laws, in integers and without a clock: times come in as arguments, decisions go out as
 * values. Compiles in user space too, where a test compares it with LUC's reference (crates/control).
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

/* Gains of the PID controller, in thousandths. */
struct luc_gains {
	u32 kp_milli;
	u32 ki_milli;
	u32 kd_milli;
};

/*
 * The PID controller of the LUC paper (section IV.A, equation 2) and the delay that it steers. All zeros
 * is the initial state.
 */
struct luc_steered_delay {
	s64 integral;		/* sum of errors, in requests */
	s64 previous_error;	/* in requests */
	s64 delay_ps;		/* picoseconds, so that steps in thousandths of a request are exact */
};

void luc_steered_delay_restart(struct luc_steered_delay *delay, u64 delay_ns);
u64 luc_steered_delay_ns(const struct luc_steered_delay *delay);
u64 luc_steered_delay_update(struct luc_steered_delay *delay, const struct luc_gains *gains,
			     u32 set_point, u32 measured, u64 ns_per_request, u64 low_ns, u64 high_ns);

#endif /* LUC_CONTROL_H */
