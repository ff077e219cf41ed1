/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether a processor is in a timer's interrupt. A thread that it wakes seems to be
 * woken by the interrupted thread. Other interrupts are not watched: those of devices
 * end waits for devices, as their stacks show, and packets have rows.
 */
#ifndef LUC_TIMER_INTERRUPT_H
#define LUC_TIMER_INTERRUPT_H

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} in_timers SEC(".maps");

static __always_inline void note_timer(u32 is_in)
{
	u32 zero = 0, *known = bpf_map_lookup_elem(&in_timers, &zero);

	if (known)
		*known = is_in;
}

static __always_inline bool in_timer(void)
{
	u32 zero = 0, *known = bpf_map_lookup_elem(&in_timers, &zero);

	return known && *known;
}

/* Timer interrupt of x86. */
SEC("tp_btf/local_timer_entry")
int BPF_PROG(local_timer_entry, int vector)
{
	note_timer(1);
	return 0;
}

SEC("tp_btf/local_timer_exit")
int BPF_PROG(local_timer_exit, int vector)
{
	note_timer(0);
	return 0;
}

/* Elsewhere a timer's interrupt is one of many. */
SEC("tp_btf/irq_handler_entry")
int BPF_PROG(irq_handler_entry, int irq)
{
	note_timer(1);
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(irq_handler_exit, int irq)
{
	note_timer(0);
	return 0;
}

#endif /* LUC_TIMER_INTERRUPT_H */
