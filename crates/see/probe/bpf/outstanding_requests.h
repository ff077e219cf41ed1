/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * State of each outstanding request, by its address. Most are in an array at a place
 * that follows from the address, which saves about a quarter of the time of all
 * programs of a request. Requests whose place is taken are in a hash map.
 */
#ifndef LUC_OUTSTANDING_REQUESTS_H
#define LUC_OUTSTANDING_REQUESTS_H

#define LUC_PLACE_BITS 14

struct request_state {
	u64 submit_ns;
	/* 0: the driver does not have it. */
	u64 issue_ns;
	struct owner owner;
	u32 disk;
	/* Size when it was first issued: a part may be issued again. */
	u32 bytes;
	u32 sequential;
	u32 continued;
};

struct request_place {
	/* Request of this place; 0 for none. */
	u64 key;
	struct request_state state;
} __attribute__((aligned(64)));

struct request_place places[1 << LUC_PLACE_BITS] SEC(".bss.places");

/* Number of requests in the hash map. */
u32 displaced SEC(".bss.displaced");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct request_state);
} displaced_requests SEC(".maps");

/*
 * Requests are in arrays, so that their addresses have steps: Fibonacci's hash
 * spreads these. Of an address the verifier lets only the lower half be
 * computed with.
 */
static __always_inline struct request_place *place_of(u64 key)
{
	u64 lower;

	asm volatile("r1 = %[key]; w1 = w1; %[lower] = r1"
		     : [lower] "=r"(lower)
		     : [key] "r"(key)
		     : "r1");
	return &places[(u32)lower * 0x9e3779b1 >> (32 - LUC_PLACE_BITS)];
}

static __always_inline struct request_state *find_request(u64 key)
{
	struct request_place *place = place_of(key);

	if (place->key == key)
		return &place->state;
	return displaced ? bpf_map_lookup_elem(&displaced_requests, &key) : NULL;
}

/* Fails where it is known already, or there is no room. */
static __always_inline bool put_request(u64 key, struct request_state *state)
{
	struct request_place *place = place_of(key);

	if (displaced && bpf_map_lookup_elem(&displaced_requests, &key))
		return false;
	if (!__sync_val_compare_and_swap(&place->key, 0, key)) {
		place->state = *state;
		return true;
	}
	if (place->key == key)
		return false;
	if (bpf_map_update_elem(&displaced_requests, &key, state, BPF_NOEXIST))
		return false;
	__sync_fetch_and_add(&displaced, 1);
	return true;
}

/* Removes a request. Returns whether this call did it: only one does. */
static __always_inline bool take_request(u64 key)
{
	struct request_place *place = place_of(key);

	if (place->key == key)
		return __sync_val_compare_and_swap(&place->key, key, 0) == key;
	if (!displaced || bpf_map_delete_elem(&displaced_requests, &key))
		return false;
	__sync_fetch_and_add(&displaced, -1);
	return true;
}

#endif /* LUC_OUTSTANDING_REQUESTS_H */
