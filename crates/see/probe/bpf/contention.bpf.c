/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Adds up the use of disks by watched tasks: cgroups with everything below them, and
 * single threads. This is a separate object from the recorder's, with no events except
 * those that are asked for.
 *
 * A program that is interrupted by another run of itself on the same processor misses
 * that one (recursion is refused). While somebody changes the programs of a tracepoint,
 * it was seen to be silent for a millisecond. Events that only cost accuracy may be
 * missed. Ends must not be missed, because a task would then seem to wait for ever. So
 * each end has two programs, on different tracepoints if there are two: the second
 * finds nothing left to do unless the first was missed.
 */
#include "kernel_types.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "contention.h"
#include "watched_owner.h"
#include "writeback.h"
#include "outstanding_requests.h"
#include "disk_use.h"
#include "sync_waits.h"
#include "refused_locks.h"

/* Some helpers are for programs under the GPL only. */
char _license[] SEC("license") = "Dual BSD/GPL";
