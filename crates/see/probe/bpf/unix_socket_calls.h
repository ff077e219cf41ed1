/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unix sockets before Linux 6.3, where sends and receives are seen as system calls
 * only: from a file no program may go on to a socket's storage, so that what is
 * remembered is found by the socket's address.
 */
#ifndef LUC_UNIX_SOCKET_CALLS_H
#define LUC_UNIX_SOCKET_CALLS_H

/*
 * Socket of a place. The kernel reuses the memory of closed sockets. The inodes of the
 * socket (low half) and of the one that sends to it (high half) are those at the first
 * use of either. An inode is 0 if the socket was not accepted yet, and below 2^32
 * (get_next_ino).
 */
struct local_key {
	u64 address;
	u64 inodes;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, u64);
} local_inodes SEC(".maps");

/*
 * The place of an older socket stays until it is the least used one. If one thread
 * deleted it and made the new one, another would count bytes in neither between the
 * two, or delete the new one.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct local_key);
	__type(value, struct local_end);
} local_places SEC(".maps");

static __always_inline struct sock *peer_at(struct sock *sk)
{
	return BPF_CORE_READ((struct unix_sock *)sk, peer);
}

/* The other end; NULL: there is none that sends to this one alone. */
static __always_inline struct sock *only_peer_at(struct sock *sk)
{
	struct sock *peer = peer_at(sk), *back;

	if (!peer)
		return NULL;
	back = peer_at(peer);
	return back && back != sk ? NULL : peer;
}

/* Returns the inode of a socket; 0 if it is not accepted yet. */
static __always_inline u64 inode_at(struct sock *sk)
{
	struct socket *socket = BPF_CORE_READ(sk, sk_socket);

	return socket ? BPF_CORE_READ((struct socket_alloc *)socket, vfs_inode.i_ino) : 0;
}

/* A closed socket has no inode any more, and its memory is not used again while its peer is there.
 */
static __always_inline bool is_closed(struct sock *sk)
{
	unsigned long flags = BPF_CORE_READ(sk, __sk_common.skc_flags);

	return flags >> bpf_core_enum_value(enum sock_flags, SOCK_DEAD) & 1;
}

/* Returns whether these are the inodes of an older pair than `sk`, to which `peer` sends. */
static __always_inline bool is_older(u64 inodes, struct sock *sk, struct sock *peer)
{
	u32 own = inodes, sender = inodes >> 32;

	if (own && own != inode_at(sk))
		return true;
	if (sender && sender != inode_at(peer) && !is_closed(peer))
		return true;
	return !inodes;
}

/* Returns the place of `sk`, to which `peer` sends; NULL without one. */
static __always_inline struct local_end *own_place(struct sock *sk, struct sock *peer)
{
	struct local_key key = { .address = (u64)sk };
	u64 *inodes = bpf_map_lookup_elem(&local_inodes, &key.address);

	if (!inodes)
		return NULL;
	key.inodes = *inodes;
	if (is_older(key.inodes, sk, peer))
		return NULL;
	return bpf_map_lookup_elem(&local_places, &key);
}

/* Makes a place. Both ends of a pair may do so at once, and agree on one. */
static __always_inline struct local_end *made_place(struct sock *sk, struct sock *peer)
{
	u64 now = inode_at(peer) << 32 | (u32)inode_at(sk), older, *inodes;
	struct local_key key = { .address = (u64)sk };
	struct local_end new = {};

	bpf_map_update_elem(&local_inodes, &key.address, &now, BPF_NOEXIST);
	inodes = bpf_map_lookup_elem(&local_inodes, &key.address);
	if (!inodes)
		return NULL;
	older = *inodes;
	if (is_older(older, sk, peer))
		__sync_val_compare_and_swap(inodes, older, now);
	key.inodes = *inodes;
	bpf_map_update_elem(&local_places, &key, &new, BPF_NOEXIST);
	return bpf_map_lookup_elem(&local_places, &key);
}

/* Makes the places of a pair, whose socket `sk` the current thread uses, and makes it known. */
static __always_inline void place_pair(struct sock *sk, struct sock *peer,
				       struct task_struct *opener)
{
	struct local_end *own = made_place(sk, peer), *other = made_place(peer, sk);
	u64 cookies[2] = {};

	if (!own || !other) {
		count_lost(LOST_MAP_CONNECTIONS);
		return;
	}
	make_known(sk, peer, own, other, opener, cookies);
}

/* A call has sent on a socket, or received from it. */
static __always_inline void local_call(struct task_struct *task, struct hot *hot, struct sock *sk,
				       u64 bytes, bool sends)
{
	struct sock *peer = only_peer_at(sk), *receiver = sends ? peer : sk;
	struct local_end *end, *own;
	struct talker *talker;
	u64 first, at_ns;

	if (!peer)
		return;
	end = own_place(receiver, sends ? sk : peer);
	if (!end || !is_known(end)) {
		if (local_visit < 3 || peer_at(peer) != sk)
			return;
		place_pair(sk, peer, task);
		end = own_place(receiver, sends ? sk : peer);
		if (!end)
			return;
	}
	own = sends ? own_place(sk, peer) : end;
	if (own)
		note_user(sk, peer, own, task, 0);
	first = __sync_fetch_and_add(sends ? &end->sent : &end->received, bytes);
	if (!end->settled) {
		end->activity++;
		if (sends)
			end->was_full = 0;
	} else if (sends) {
		talker = talker_of(task);
		at_ns = talker && talker->send_ns ? talker->send_ns : bpf_ktime_get_ns();
		send_message(task, hot, SENT, end->peer, at_ns, first, bytes);
	} else {
		send_message(task, hot, RECEIVED, end->id, bpf_ktime_get_ns(), first, bytes);
	}
	if (!sends && !BPF_CORE_READ(sk, sk_receive_queue.qlen))
		settle_drained(end);
}

static __always_inline bool receives_bytes(struct pt_regs *regs, u32 class)
{
	switch (class) {
	case RECEIVE_PLAIN:
		return true;
	case RECEIVE_FLAGS_3:
		return !(argument(regs, 2) & MSG_PEEK);
	case RECEIVE_FLAGS_4:
		return !(argument(regs, 3) & MSG_PEEK);
	default:
		return false;
	}
}

/* As look_at_pair(). */
static __always_inline u32 look_at_places(struct sock *sk, struct task_struct *owner)
{
	struct local_end *own, *other;
	struct sock *peer = local_peer(sk);

	if (!peer)
		return 0;
	own = own_place(sk, peer);
	if (!own || !is_known(own)) {
		if (!is_pair(sk, peer))
			return 0;
		place_pair(sk, peer, owner);
	}
	own = own_place(sk, peer);
	other = own_place(peer, sk);
	if (!own || !other)
		return 0;
	look_at_unread(own, unread_of(sk), is_full(peer));
	look_at_unread(other, unread_of(peer), is_full(sk));
	return own->id;
}

static __always_inline u32 number_at(struct sock *sk)
{
	struct sock *peer = peer_at(sk);
	struct local_end *end = peer ? own_place(sk, peer) : NULL;

	return end ? end->id : 0;
}

/* Pairs that are still there when recording ends: those whose inodes are the same. The memory of a
 * closed socket may be of anything by now. */
static long send_place(struct bpf_map *map, struct local_key *key, struct local_end *end, void *ctx)
{
	u64 address = key->address, *inodes = bpf_map_lookup_elem(&local_inodes, &address);
	struct sock *sk = (void *)address, *peer;
	struct local_end copy = *end;

	if (!inodes || *inodes != key->inodes)
		return 0;
	peer = peer_at(sk);
	if (peer && inode_at(sk) && !is_older(key->inodes, sk, peer))
		send_local(sk, peer, &copy, 0);
	return 0;
}

/* User space runs it once: an iterator over a map is not allowed everywhere. */
SEC("raw_tp")
int place_end(void *ctx)
{
	bpf_for_each_map_elem(&local_places, send_place, NULL, 0);
	return 0;
}

#endif /* LUC_UNIX_SOCKET_CALLS_H */
