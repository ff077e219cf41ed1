// SPDX-License-Identifier: GPL-2.0
/* The LUC paper's PID controller, and the delay that it steers. Reference:
 * crates/decide/control/src/pid.rs. */
#include "control.h"

const struct luc_gains luc_paper_gains = { .kp_milli = 800, .ki_milli = 250, .kd_milli = 250 };

/* The error and its sum stay within this many requests, so that an unreachable set point does not
 * wind up. */
#define ERROR_BOUND 1024
/* A slope or a bound beyond this is cut, in nanoseconds, so that no product overflows. */
#define LONGEST_NS 1000000000ULL

static s64 clamp_s64(s64 value, s64 low, s64 high)
{
	if (value < low)
		return low;
	return value > high ? high : value;
}

static u64 min_u64(u64 a, u64 b)
{
	return a < b ? a : b;
}

/* Starts over from delay_ns. */
void luc_steered_delay_restart(struct luc_steered_delay *delay, u64 delay_ns)
{
	delay->integral = 0;
	delay->previous_error = 0;
	delay->delay_ps = (s64)min_u64(delay_ns, LONGEST_NS) * 1000;
}

/* The delay now, in nanoseconds. */
u64 luc_steered_delay_ns(const struct luc_steered_delay *delay)
{
	return delay->delay_ps > 0 ? (u64)(delay->delay_ps / 1000) : 0;
}

/*
 * Feeds the size of the commit that has just ended and returns the delay for the next one.
 * ns_per_request is the plant's slope: how much longer one must wait for one more request.
 */
u64 luc_steered_delay_update(struct luc_steered_delay *delay, const struct luc_gains *gains,
			     u32 set_point, u32 measured, u64 ns_per_request, u64 low_ns,
			     u64 high_ns)
{
	s64 error = clamp_s64((s64)set_point - (s64)measured, -ERROR_BOUND, ERROR_BOUND);
	s64 derivative = error - delay->previous_error;
	s64 low_ps = (s64)min_u64(low_ns, LONGEST_NS) * 1000;
	s64 high_ps = (s64)min_u64(high_ns > low_ns ? high_ns : low_ns, LONGEST_NS) * 1000;
	s64 u_milli, wanted_ps;

	delay->integral = clamp_s64(delay->integral + error, -ERROR_BOUND, ERROR_BOUND);
	delay->previous_error = error;
	u_milli = (s64)gains->kp_milli * error + (s64)gains->ki_milli * delay->integral +
		  (s64)gains->kd_milli * derivative;
	wanted_ps = delay->delay_ps + u_milli * (s64)min_u64(ns_per_request, LONGEST_NS);
	delay->delay_ps = clamp_s64(wanted_ps, low_ps, high_ps);
	/* The delay has hit its bound and cannot follow: forget the accumulated error. */
	if (delay->delay_ps != wanted_ps)
		delay->integral = 0;
	return luc_steered_delay_ns(delay);
}
