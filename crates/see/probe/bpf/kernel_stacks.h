/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks. To unwind one takes microseconds, and a program sleeps in few
 * places; so each is first compared, as a whole and without unwinding, with
 * those that were unwound before.
 */
#ifndef LUC_KERNEL_STACKS_H
#define LUC_KERNEL_STACKS_H

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, LUC_STACKS);
	__uint(key_size, sizeof(u32));
	__uint(value_size, LUC_STACK_DEPTH * sizeof(u64));
} stacks SEC(".maps");

/* asm-generic/errno-base.h, whose macros are not in the kernel's type information */
#define EEXIST 17

/* Number of words of a stack that are read. */
#define STACK_WORDS 160

struct stack_words {
	u64 words[STACK_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stack_words);
} copied_stack SEC(".maps");

/* The index in stacks, plus 1, by the hash of the stack's words. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, LUC_STACKS);
	__type(key, u64);
	__type(value, u32);
} unwound SEC(".maps");

/* Return address of system calls in config.system_call; 0 if not known yet. */
u64 system_call_return SEC(".data.stack") = 0;

/*
 * A Bloom filter of the return addresses in stacks that were unwound. What else
 * looks like one was left there by earlier calls.
 */
#define FRAME_BITS 12
u64 frames[1 << (FRAME_BITS - 6)] SEC(".data.stack") = {};

#define HASH_FACTOR 0x9e3779b97f4a7c15

static __always_inline u32 frame_bit(u64 address)
{
	return address * HASH_FACTOR >> (64 - FRAME_BITS);
}

static __always_inline bool is_frame(u64 address)
{
	u32 bit = frame_bit(address);

	return frames[bit / 64] >> bit % 64 & 1;
}

static __always_inline struct stack_words *stack_copy(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&copied_stack, &zero);
}

/* Unwinds the running thread's stack and remembers the addresses. */
static __always_inline void learn_frames(void *ctx)
{
	struct stack_words *copy = stack_copy();
	u64 address;
	long bytes;
	u32 i, bit;

	if (!copy)
		return;
	bytes = bpf_get_stack(ctx, copy->words, sizeof(copy->words), 0);
	for (i = 0; i < STACK_WORDS; i++) {
		if ((long)(i * sizeof(address)) >= bytes)
			break;
		address = copy->words[i];
		bit = frame_bit(address);
		frames[bit / 64] |= 1ULL << bit % 64;
		if (address - config.system_call < config.system_call_bytes)
			system_call_return = address;
	}
}

/*
 * Hashes the return addresses on the running thread's stack, with their places, from
 * the tracepoint's arguments up to the return into the entry of system calls. Beyond
 * that is a gap of random length. Returns 0 without such a return. Two stacks of the
 * same calls may differ by remains of earlier calls, and are then both unwound.
 */
static __always_inline u64 hash_of_stack(void *ctx, struct task_struct *task)
{
	struct stack_words *copy;
	u64 bytes, hash = 0, word;
	u32 i;

	if (!config.system_call || task->flags & PF_KTHREAD)
		return 0;
	copy = stack_copy();
	if (!copy)
		return 0;
	bytes = (u64)bpf_task_pt_regs(task) - (u64)ctx;
	if (bytes > sizeof(copy->words))
		bytes = sizeof(copy->words);
	if (bpf_probe_read_kernel(copy->words, bytes, ctx))
		return 0;
	for (i = 0; i < STACK_WORDS; i++) {
		if (i >= bytes / sizeof(word))
			break;
		word = copy->words[i];
		if (word < KERNEL_TEXT)
			continue;
		if (word == system_call_return)
			return hash ^ hash >> 32 ^ i;
		if (is_frame(word))
			hash = (hash ^ word ^ (u64)i << 32) * HASH_FACTOR;
	}
	return 0;
}

/* The index of the running thread's stack, plus 1; 0: it could not be taken. */
static __always_inline u32 stack_of(void *ctx, struct task_struct *task)
{
	u64 hash = hash_of_stack(ctx, task);
	u32 *known = hash ? bpf_map_lookup_elem(&unwound, &hash) : NULL;
	u32 index;
	long id;

	if (known)
		return *known;
	id = bpf_get_stackid(ctx, &stacks, 0);
	/*
	 * Another stack has its place. Without its innermost frame, which is the
	 * program that asks, it goes to another one.
	 */
	if (id == -EEXIST)
		id = bpf_get_stackid(ctx, &stacks, 1);
	if (id < 0) {
		count_lost(LOST_MAP_STACKS);
		return 0;
	}
	index = id + 1;
	if (hash)
		bpf_map_update_elem(&unwound, &hash, &index, BPF_ANY);
	if (hash || !system_call_return)
		learn_frames(ctx);
	return index;
}

#endif /* LUC_KERNEL_STACKS_H */
