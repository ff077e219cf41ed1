/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections within the host: pairs of unix sockets. They have no sequence
 * numbers, so bytes are counted here, in the storage of the socket that they are
 * sent to. What lies unread when recording begins has been sent already.
 */
#ifndef LUC_UNIX_SOCKETS_H
#define LUC_UNIX_SOCKETS_H

/* Maximum number of packets that are counted in the queue of a socket without a byte count. */
#define LUC_MOST_UNREAD 64

/* One end, and the bytes that go to it. */
struct local_end {
	/* The connection's number; 0: not known yet. */
	u32 id;
	/* The other end's. */
	u32 peer;
	/* Sent to it, and received at it. */
	u64 sent;
	u64 received;
	/* Both counts are known to begin at one byte. */
	u32 settled;
	/* A thread has begun to send to it, and has not ended. */
	u32 sending;
	/* Counts what happens to an end that is not settled. */
	u32 activity;
	/* It had unread data, or no room, when it was first seen. */
	u32 unread;
	u32 was_full;
	u32 claimed;
	/* Distance by which `received` was ahead when all had been read. */
	s64 ahead;
	/* Time when bytes were received whose send was not seen yet. */
	u64 ahead_ns;
	u64 opened_ns;
	u64 closed_ns;
	u32 opener;
	u32 opener_process;
	u8 side;
	u8 sequences;
	u8 reserved[2];
	/* Last visit of all files in which it had a row: files_end. */
	u32 visited;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct local_end);
} local_ends SEC(".maps");

/* Number of user space's visit of all files: 1 and 2 during the visits, 3 from then on. */
u32 local_visit SEC(".data.visit") = 0;

/* Number of visits of all files at an end, which report the state of connections. */
u32 end_visit SEC(".data.end_visit") = 0;

/* The other end; NULL: there is none that sends to this one alone. */
static __always_inline struct sock *local_peer(struct sock *sk)
{
	struct unix_sock *local = bpf_skc_to_unix_sock(sk), *other;
	struct sock *peer;

	if (!local)
		return NULL;
	peer = local->peer;
	if (!peer)
		return NULL;
	other = bpf_skc_to_unix_sock(peer);
	/* One that is closed has no peer any more. */
	if (!other || (other->peer && other->peer != sk))
		return NULL;
	return peer;
}

static __always_inline u8 local_family(struct sock *sk)
{
	switch (BPF_CORE_READ(sk, sk_type)) {
	case SOCK_STREAM:
		return FAMILY_UNIX_STREAM;
	case SOCK_SEQPACKET:
		return FAMILY_UNIX_SEQPACKET;
	default:
		return FAMILY_UNIX_DGRAM;
	}
}

/* The length of a socket's name, which is put in `name`. */
static __always_inline u16 local_name(struct sock *sk, char name[LUC_NAME])
{
	struct unix_address *address = BPF_CORE_READ((struct unix_sock *)sk, addr);
	int length;

	if (!address)
		return 0;
	/* Before it is the address family. */
	length = BPF_CORE_READ(address, len) - 2;
	if (length <= 0 || length > LUC_NAME - 1)
		return 0;
	length &= LUC_NAME - 1;
	if (bpf_probe_read_kernel(name, length, &address->name[0].sun_path))
		return 0;
	return length;
}

static __always_inline void send_local(struct sock *sk, struct sock *peer,
				       const struct local_end *end, u64 cookie)
{
	struct record_local *record = reserve(record_local, LOST_CONNECTION);

	if (!record)
		return;
	record->kind = RECORD_LOCAL;
	record->connection = end->id;
	record->peer = end->peer;
	record->namespace = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	record->at_ns = bpf_ktime_get_ns();
	record->cookie = cookie;
	record->opened_ns = end->opened_ns;
	record->closed_ns = end->closed_ns;
	record->opener = end->opener;
	record->opener_process = end->opener_process;
	record->side = end->side;
	record->sequences = end->sequences;
	record->family = local_family(sk);
	record->reserved = 0;
	__builtin_memset(record->local, 0, sizeof(record->local));
	__builtin_memset(record->remote, 0, sizeof(record->remote));
	record->local_length = local_name(sk, record->local);
	record->remote_length = local_name(peer, record->remote);
	submit(record);
}

static __always_inline bool has_name(struct sock *sk)
{
	return BPF_CORE_READ((struct unix_sock *)sk, addr);
}

/* A connected socket has the name of that which listened; one that connects mostly has none. */
static __always_inline u8 local_side(struct sock *sk, struct sock *peer)
{
	bool own = has_name(sk), others = has_name(peer);

	if (own == others)
		return SIDE_UNKNOWN;
	return own ? SIDE_SERVER : SIDE_CLIENT;
}

/* An end's number, and where its count begins, are known before its peer is: make_known(). */
static __always_inline bool is_known(const struct local_end *end)
{
	return end->peer;
}

static __always_inline void number(struct local_end *end)
{
	if (!end->id)
		__sync_val_compare_and_swap(&end->id, 0,
					    __sync_fetch_and_add(&last_connection, 1) + 1);
}

/*
 * Makes a pair known, whose first end `opener` uses. The other end may be used for the
 * first time at once. The second thread does not wait, but goes on to count bytes. So
 * both number the ends and note that their counts begin here.
 */
static __always_inline void make_known(struct sock *sk, struct sock *peer, struct local_end *own,
				       struct local_end *other, struct task_struct *opener,
				       const u64 cookies[2])
{
	struct local_end *first;
	bool is_old = local_visit < 3;

	if (!is_old) {
		own->settled = 1;
		other->settled = 1;
	}
	number(own);
	number(other);
	barrier();
	own->peer = other->id;
	other->peer = own->id;
	/* Both ends agree on whose word decides. */
	first = (u64)sk < (u64)peer ? own : other;
	if (__sync_val_compare_and_swap(&first->claimed, 0, 1))
		return;
	own->opened_ns = is_old ? 0 : bpf_ktime_get_ns();
	other->opened_ns = own->opened_ns;
	own->sequences = is_old ? SEQUENCES_COUNTED : SEQUENCES_SEEN;
	other->sequences = own->sequences;
	own->side = local_side(sk, peer);
	other->side = local_side(peer, sk);
	own->opener_process = opener->tgid;
	own->opener = is_old ? 0 : opener->pid;
	send_local(sk, peer, own, cookies[0]);
	send_local(peer, sk, other, cookies[1]);
}

static __always_inline void pair_up(struct sock *sk, struct sock *peer, struct task_struct *opener)
{
	struct local_end *own, *other;
	u64 cookies[2];

	own = made_for_socket(&local_ends, sk);
	other = made_for_socket(&local_ends, peer);
	if (!own || !other) {
		count_lost_socket(own ? peer : sk);
		return;
	}
	cookies[0] = bpf_get_socket_cookie(sk);
	cookies[1] = bpf_get_socket_cookie(peer);
	make_known(sk, peer, own, other, opener, cookies);
}

/* Returns whether two sockets send to each other, and to no other. */
static __always_inline bool is_pair(struct sock *sk, struct sock *peer)
{
	struct unix_sock *other = bpf_skc_to_unix_sock(peer);

	return other && other->peer == sk;
}

/* Notes that a recorded thread uses an end, if it is the first. */
static __always_inline void note_user(struct sock *sk, struct sock *peer, struct local_end *end,
				      struct task_struct *task, u64 cookie)
{
	if (end->opener_process || !end->id)
		return;
	end->opener = task->pid;
	end->opener_process = task->tgid;
	send_local(sk, peer, end, cookie);
}

/*
 * Notes that all sent bytes have been received: both counts are the same, or one of
 * them missed something.
 */
static __always_inline void settle_drained(struct local_end *end)
{
	s64 ahead = end->received - end->sent;

	if (!end->settled) {
		/* A send may have begun before recording. */
		if (end->was_full)
			return;
		end->received = end->sent;
		end->settled = 1;
	} else if (ahead && ahead == end->ahead) {
		if (ahead > 0)
			end->sent = end->received;
		else
			end->received = end->sent;
		ahead = 0;
	}
	end->ahead = ahead;
}

/*
 * Returns the number of bytes in a socket's queue; negative if there are too many
 * packets to count.
 */
static __always_inline s64 unread_of(struct sock *sk)
{
	struct unix_sock *local = bpf_skc_to_unix_sock(sk);
	struct unix_skb_parms *parms;
	struct sk_buff *packet;
	u32 length, consumed;
	s64 unread = 0;
	u32 i, packets;

	packets = sk->sk_receive_queue.qlen;
	if (!packets || !local)
		return 0;
	if (sk->sk_type == SOCK_STREAM && bpf_core_field_exists(local->inq_len))
		return local->inq_len;
	if (packets > LUC_MOST_UNREAD)
		return -1;
	packet = sk->sk_receive_queue.next;
	for (i = 0; i < LUC_MOST_UNREAD; i++) {
		if (i >= packets)
			break;
		length = BPF_CORE_READ(packet, len);
		parms = (void *)packet + bpf_core_field_offset(packet->cb);
		consumed = BPF_CORE_READ(parms, consumed);
		unread += length - consumed;
		packet = BPF_CORE_READ(packet, next);
	}
	return unread;
}

/* Returns whether a send on the socket may wait for room after sending a part. */
static __always_inline bool is_full(struct sock *sender)
{
	return sender->sk_wmem_alloc.refs.counter >= sender->sk_sndbuf;
}

/*
 * Looks at the unread bytes twice. If nothing happens in between, they have been sent,
 * and will be received. Else both counts begin when all has been read.
 */
static __always_inline void look_at_unread(struct local_end *end, s64 unread, bool full)
{
	if (end->settled)
		return;
	if (local_visit == 1) {
		if (!end->unread)
			end->unread = unread;
		end->was_full |= full;
	} else if (!end->activity && !full && !end->was_full && unread >= 0 &&
		   unread == end->unread) {
		end->sent = unread;
		end->received = 0;
		end->settled = 1;
	}
}

/*
 * Visits a pair that exists when recording begins. A process has this end open. Returns
 * the end's number.
 */
static __always_inline u32 look_at_pair(struct sock *sk, struct task_struct *owner)
{
	struct local_end *own, *other;
	struct sock *peer;

	peer = local_peer(sk);
	if (!peer)
		return 0;
	own = bpf_sk_storage_get(&local_ends, sk, NULL, 0);
	if (!own || !is_known(own)) {
		if (!is_pair(sk, peer))
			return 0;
		pair_up(sk, peer, owner);
		own = bpf_sk_storage_get(&local_ends, sk, NULL, 0);
	}
	other = bpf_sk_storage_get(&local_ends, peer, NULL, 0);
	if (!own || !other)
		return 0;
	if (!own->opener_process)
		own->opener_process = owner->tgid;
	look_at_unread(own, unread_of(sk), is_full(peer));
	look_at_unread(other, unread_of(peer), is_full(sk));
	return own->id;
}

static __always_inline u32 local_number(struct sock *sk)
{
	struct local_end *end = bpf_sk_storage_get(&local_ends, sk, NULL, 0);

	return end ? end->id : 0;
}

/* Sends the state of an end, once in a visit. */
static __always_inline void send_at_visit(struct sock *sk, struct sock *peer)
{
	struct local_end *end = bpf_sk_storage_get(&local_ends, sk, NULL, 0);

	if (!end || !end->id || end->visited == end_visit)
		return;
	end->visited = end_visit;
	send_local(sk, peer, end, bpf_get_socket_cookie(sk));
}

/*
 * Sends the state of a pair when recording ends. A process has this end open. The other
 * end may have no file: a closed end exists as long as this one is open, and an end may
 * not be accepted yet. Returns this end's number.
 */
static __always_inline u32 pair_at_end(struct sock *sk)
{
	struct sock *peer = local_peer(sk);

	if (peer) {
		send_at_visit(sk, peer);
		send_at_visit(peer, sk);
	}
	return local_number(sk);
}

#endif /* LUC_UNIX_SOCKETS_H */
