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
#include "kernel_types.h"
#include "kernel_network_types.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "event_layouts.h"
#include "map_storage.h"
#include "thread_state.h"
#include "row_batches.h"
#include "kernel_stacks.h"
#include "journal.h"
#include "hardware_counts.h"
#include "timer_interrupt.h"
#include "system_calls.h"
#include "off_cpu_waits.h"
#include "file_calls.h"
#include "block.h"
#include "file_data.h"
#include "thread_identity.h"
#include "tcp_sequence_offsets.h"
#include "sleeping_threads.h"
#include "message_rows.h"
#include "request_tokens.h"
#include "unix_sockets.h"
#include "unix_socket_tracepoints.h"
#include "unix_socket_calls.h"
#include "pipes.h"
#include "tcp_connections.h"
#include "socket_messages.h"
#include "tcp_packets.h"
#include "request_times.h"

/* Some helpers are for programs under the GPL only. */
char _license[] SEC("license") = "Dual BSD/GPL";
