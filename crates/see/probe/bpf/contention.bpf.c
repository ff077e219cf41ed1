/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Adds up the use of disks by watched tasks: cgroups with all below them, and
 * single threads. An object of its own beside the recorder's, with no events but
 * those that are asked for.
 *
 * A program that is interrupted by another run of itself on the same processor
 * misses that one (recursion is refused), and while somebody changes what hangs on
 * a tracepoint, it was seen to be silent for a millisecond. What only costs
 * accuracy may be missed; ends must not be, as a task would seem to wait for ever.
 * So each end has two programs, on tracepoints of their own where there are two:
 * the second finds nothing left to do unless the first was missed.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "contention.h"
#include "owner.h"
#include "writeback.h"
#include "requests.h"
#include "usage.h"
#include "wait.h"
#include "locks.h"

/* Some helpers are for programs under the GPL only. */
char _license[] SEC("license") = "Dual BSD/GPL";
