/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * State that is kept with a socket or a task, made if there is none. The kernel
 * refuses where two make the first state of a socket at once, as two recorders do,
 * or where a recorder that ends gives back the last one (bpf_local_storage_update).
 * A processor's stock of free states is filled again by an interrupt that the
 * allocation itself asks for, and which comes before the next attempt where
 * interrupts are on.
 */
#ifndef LUC_STORAGE_H
#define LUC_STORAGE_H

#define STORAGE_ATTEMPTS 4

static __always_inline void *made_for_socket(void *map, struct sock *sk)
{
	void *state = NULL;
	int attempt;

	for (attempt = 0; attempt < STORAGE_ATTEMPTS && !state; attempt++)
		state = bpf_sk_storage_get(map, sk, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	return state;
}

static __always_inline void *made_for_task(void *map, struct task_struct *task)
{
	void *state = NULL;
	int attempt;

	for (attempt = 0; attempt < STORAGE_ATTEMPTS && !state; attempt++)
		state = bpf_task_storage_get(map, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	return state;
}

#endif /* LUC_STORAGE_H */
