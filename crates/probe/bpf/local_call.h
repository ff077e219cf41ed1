/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unix sockets before Linux 6.3, where sends and receives are seen as system calls
 * only: from a file no program may go on to a socket's storage, so that what is
 * remembered is found by the socket's address.
 */
#ifndef LUC_LOCAL_CALL_H
#define LUC_LOCAL_CALL_H

struct local_place {
	/* The inodes of this socket and of the other one, as the kernel uses their memory again; 0:
	 * not known yet. */
	u64 inode;
	u64 sender;
	struct local_end end;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct local_place);
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

static __always_inline struct local_place *place_at(struct sock *sk)
{
	u64 address = (u64)sk;

	return bpf_map_lookup_elem(&local_places, &address);
}

/* 0: nobody has accepted it yet. */
static __always_inline u64 inode_at(struct sock *sk)
{
	struct socket *socket = BPF_CORE_READ(sk, sk_socket);

	return socket ? BPF_CORE_READ((struct socket_alloc *)socket, vfs_inode.i_ino) : 0;
}

/* The place of `sk`, to which `peer` sends; NULL: there is none, or it is of another socket that
 * had this memory before. */
static __always_inline struct local_place *own_place(struct sock *sk, struct sock *peer)
{
	struct local_place *place = place_at(sk);

	if (!place || (place->inode && place->inode != inode_at(sk)) ||
	    (place->sender && place->sender != inode_at(peer)))
		return NULL;
	return place;
}

static __always_inline struct local_place *made_place(struct sock *sk, struct sock *peer)
{
	struct local_place *place = own_place(sk, peer), new = {};
	u64 address = (u64)sk;

	if (!place) {
		if (place_at(sk))
			bpf_map_delete_elem(&local_places, &address);
		new.inode = inode_at(sk);
		new.sender = inode_at(peer);
		/* The other end may have made it meanwhile. */
		bpf_map_update_elem(&local_places, &address, &new, BPF_NOEXIST);
		place = place_at(sk);
	}
	return place;
}

/* Makes the places of a pair of which the current thread uses `sk`, and makes it known. */
static __always_inline void place_pair(struct sock *sk, struct sock *peer,
				       struct task_struct *opener)
{
	struct local_place *own = made_place(sk, peer), *other = made_place(peer, sk);
	u64 cookies[2] = {};

	if (!own || !other)
		return;
	make_known(sk, peer, &own->end, &other->end, opener, cookies);
}

/* A call has sent on a socket, or received from it. */
static __always_inline void local_call(struct task_struct *task, struct hot *hot, struct sock *sk,
				       u64 bytes, bool sends)
{
	struct sock *peer = only_peer_at(sk), *receiver = sends ? peer : sk;
	struct local_place *place, *own;
	struct local_end *end;
	struct talker *talker;
	u64 first, at_ns;

	if (!peer)
		return;
	place = own_place(receiver, sends ? sk : peer);
	if (!place || !place->end.id) {
		if (local_visit < 3 || peer_at(peer) != sk)
			return;
		place_pair(sk, peer, task);
		place = own_place(receiver, sends ? sk : peer);
		if (!place)
			return;
	}
	if (!sends && !place->inode)
		place->inode = inode_at(sk);
	end = &place->end;
	own = sends ? own_place(sk, peer) : place;
	if (own)
		note_user(sk, peer, &own->end, task, 0);
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
	struct local_place *own, *other;
	struct sock *peer = local_peer(sk);

	if (!peer)
		return 0;
	own = own_place(sk, peer);
	if (!own || !own->end.id) {
		if (!is_pair(sk, peer))
			return 0;
		place_pair(sk, peer, owner);
	}
	own = own_place(sk, peer);
	other = own_place(peer, sk);
	if (!own || !other)
		return 0;
	look_at_unread(&own->end, unread_of(sk), is_full(peer));
	look_at_unread(&other->end, unread_of(peer), is_full(sk));
	return own->end.id;
}

static __always_inline u32 number_at(struct sock *sk)
{
	struct local_place *place = place_at(sk);

	return place ? place->end.id : 0;
}

/* Pairs that are still there when recording ends: those whose inode is the same. */
static long send_place(struct bpf_map *map, u64 *address, struct local_place *place, void *ctx)
{
	struct local_place copy = *place;
	struct sock *sk = (void *)*address, *peer = peer_at(sk);

	if (peer && copy.inode && inode_at(sk) == copy.inode)
		send_local(sk, peer, &copy.end, 0);
	return 0;
}

/* User space runs it once: an iterator over a map is not allowed everywhere. */
SEC("raw_tp")
int place_end(void *ctx)
{
	bpf_for_each_map_elem(&local_places, send_place, NULL, 0);
	return 0;
}

#endif /* LUC_LOCAL_CALL_H */
