/* SPDX-License-Identifier: GPL-2.0 */
/* Tracepoints: one for each decision. Under events/luc in tracefs. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM luc

#if !defined(TRACE_LUC_H) || defined(TRACE_HEADER_MULTI_READ)
#define TRACE_LUC_H

#include <linux/tracepoint.h>

TRACE_DEFINE_ENUM(LUC_HOLD_FULL);
TRACE_DEFINE_ENUM(LUC_HOLD_EXPIRED);
TRACE_DEFINE_ENUM(LUC_HOLD_BOUND);
TRACE_DEFINE_ENUM(LUC_HOLD_PRESSURE);
TRACE_DEFINE_ENUM(LUC_HOLD_STOPPED);
TRACE_DEFINE_ENUM(LUC_HOLD_AWAITED);

#define luc_show_hold_end(end)                                                                     \
	__print_symbolic(end, { LUC_HOLD_FULL, "full" }, { LUC_HOLD_EXPIRED, "expired" },          \
			 { LUC_HOLD_BOUND, "bound" }, { LUC_HOLD_PRESSURE, "pressure" },           \
			 { LUC_HOLD_STOPPED, "stopped" }, { LUC_HOLD_AWAITED, "awaited" })

/* A commit that fsync asked for is being held. */
TRACE_EVENT(luc_hold_begin,
	TP_PROTO(dev_t dev, unsigned int tid, unsigned int requests, unsigned int set_point),
	TP_ARGS(dev, tid, requests, set_point),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(unsigned int, tid)
		__field(unsigned int, requests)
		__field(unsigned int, set_point)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->tid = tid;
		__entry->requests = requests;
		__entry->set_point = set_point;
	),
	TP_printk("dev %d,%d tid %u requests %u set_point %u", MAJOR(__entry->dev),
		  MINOR(__entry->dev), __entry->tid, __entry->requests, __entry->set_point)
);

/* The commit goes on. */
TRACE_EVENT(luc_hold_end,
	TP_PROTO(dev_t dev, unsigned int tid, unsigned int requests, u64 held_ns, int end),
	TP_ARGS(dev, tid, requests, held_ns, end),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(unsigned int, tid)
		__field(unsigned int, requests)
		__field(u64, held_ns)
		__field(int, end)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->tid = tid;
		__entry->requests = requests;
		__entry->held_ns = held_ns;
		__entry->end = end;
	),
	TP_printk("dev %d,%d tid %u requests %u held_ns %llu end %s", MAJOR(__entry->dev),
		  MINOR(__entry->dev), __entry->tid, __entry->requests, __entry->held_ns,
		  luc_show_hold_end(__entry->end))
);

TRACE_DEFINE_ENUM(LUC_LEARN);
TRACE_DEFINE_ENUM(LUC_TRY_HELD);
TRACE_DEFINE_ENUM(LUC_TRY_UNHELD);
TRACE_DEFINE_ENUM(LUC_ENGAGED);
TRACE_DEFINE_ENUM(LUC_CHECK);
TRACE_DEFINE_ENUM(LUC_ASIDE);
TRACE_DEFINE_ENUM(LUC_UNDECIDED);
TRACE_DEFINE_ENUM(LUC_ALONE);
TRACE_DEFINE_ENUM(LUC_NOTHING_TO_GAIN);
TRACE_DEFINE_ENUM(LUC_TOO_FAR_APART);
TRACE_DEFINE_ENUM(LUC_NO_GAIN_MEASURED);
TRACE_DEFINE_ENUM(LUC_GAIN_MEASURED);

#define luc_show_phase(phase)                                                                      \
	__print_symbolic(phase, { LUC_LEARN, "learn" }, { LUC_TRY_HELD, "try held" },              \
			 { LUC_TRY_UNHELD, "try unheld" }, { LUC_ENGAGED, "engaged" },             \
			 { LUC_CHECK, "check" }, { LUC_ASIDE, "aside" })

#define luc_show_reason(reason)                                                                    \
	__print_symbolic(reason, { LUC_UNDECIDED, "undecided" }, { LUC_ALONE, "alone" },           \
			 { LUC_NOTHING_TO_GAIN, "nothing to gain" },                               \
			 { LUC_TOO_FAR_APART, "too far apart" },                                   \
			 { LUC_NO_GAIN_MEASURED, "no gain measured" },                             \
			 { LUC_GAIN_MEASURED, "gain measured" })

/* Policy auto goes from one phase to another; rates in fsyncs per 1000 s. */
TRACE_EVENT(luc_auto_state,
	TP_PROTO(dev_t dev, int from, const struct luc_auto *a),
	TP_ARGS(dev, from, a),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(int, from)
		__field(int, to)
		__field(int, reason)
		__field(u32, participants)
		__field(u32, set_point)
		__field(u64, held_rate)
		__field(u64, unheld_rate)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->from = from;
		__entry->to = a->phase;
		__entry->reason = a->reason;
		__entry->participants = a->participants;
		__entry->set_point = a->set_point;
		__entry->held_rate = a->held_rate;
		__entry->unheld_rate = a->unheld_rate;
	),
	TP_printk("dev %d,%d from %s to %s reason %s participants %u set_point %u held_rate %llu unheld_rate %llu",
		  MAJOR(__entry->dev), MINOR(__entry->dev), luc_show_phase(__entry->from),
		  luc_show_phase(__entry->to), luc_show_reason(__entry->reason),
		  __entry->participants, __entry->set_point, __entry->held_rate,
		  __entry->unheld_rate)
);

/* Journaling from copies begins or ends. */
TRACE_EVENT(luc_copy_out,
	TP_PROTO(dev_t dev, bool on, u64 writes, u64 delayed),
	TP_ARGS(dev, on, writes, delayed),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(bool, on)
		__field(u64, writes)
		__field(u64, delayed)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->on = on;
		__entry->writes = writes;
		__entry->delayed = delayed;
	),
	TP_printk("dev %d,%d %s writes %llu delayed %llu", MAJOR(__entry->dev),
		  MINOR(__entry->dev), __entry->on ? "on" : "off", __entry->writes,
		  __entry->delayed)
);

#endif /* TRACE_LUC_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace_luc
#include <trace/define_trace.h>
