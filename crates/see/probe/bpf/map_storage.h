/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Storage of a socket or a task, made if there is none. The kernel refuses it where two
 * make a socket's first storage at once, as two recorders do, or where an ending
 * recorder frees the last one (bpf_local_storage_update). A processor's stock of free
 * storage is refilled by an interrupt that the allocation itself requests. If
 * interrupts are on, it comes before the next attempt.
 */
#ifndef LUC_MAP_STORAGE_H
#define LUC_MAP_STORAGE_H

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

#endif /* LUC_MAP_STORAGE_H */
