/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The recorder's programs, one header per topic, in one object: they share the state of
 * threads, and the compiler sees all of it.
 *
 * All are on tracepoints by their type information (tp_btf). These load on every kernel
 * with BTF, also where kprobes and fentry are refused.
 *
 * Since Linux 6.12.5 and 6.13 the verifier treats every pointer of a module's
 * tracepoint as possibly NULL (raw_tp_null_args), and ext4 and jbd2 may be modules. So
 * all of theirs are compared with NULL, though they never are.
 */
#include "kernel.h"
#include "kernel_net.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "events.h"
#include "storage.h"
#include "thread.h"
#include "batch.h"
#include "stack.h"
#include "journal.h"
#include "counter.h"
#include "interrupt.h"
#include "sched.h"
#include "syscall.h"
#include "block.h"
#include "data.h"
#include "task.h"
#include "connection.h"
#include "asleep.h"
#include "talker.h"
#include "token.h"
#include "local.h"
#include "local_trace.h"
#include "local_call.h"
#include "pipe.h"
#include "net.h"
#include "message.h"
#include "packet.h"
#include "exchange.h"

/* Some helpers are for programs under the GPL only. */
char _license[] SEC("license") = "Dual BSD/GPL";
