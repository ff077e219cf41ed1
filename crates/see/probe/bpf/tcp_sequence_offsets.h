/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * State of a TCP connection, and the conversion of its sequence numbers to offsets.
 *
 * An offset is the number of earlier bytes of a direction. A connection's first byte
 * has the sequence number after that of the SYN.
 */
#ifndef LUC_TCP_SEQUENCE_OFFSETS_H
#define LUC_TCP_SEQUENCE_OFFSETS_H

/* Number of pairs of addresses with counters, by which packets are sampled; see tcp_packets.h. */
#define LUC_PEERS 16384

struct connection {
	/* 0: not established yet, or being set up on another processor. */
	u32 id;
	u32 claimed;
	/* Index of the counters for packets. */
	u32 peer;
	/* The sequence number of offset 0, by direction. */
	u32 base[FLOWS];
	/* With `has_copied`: up to here it had been received from. */
	u32 copied;
	/* Up to where messages were sent and received. */
	u64 message_end[FLOWS];
	/* Up to where data was sent in packets, and acknowledged by them. */
	u64 packet_end;
	u64 packet_ack;
	u64 opened_ns;
	u64 closed_ns;
	u64 cookie;
	u32 opener;
	u32 opener_process;
	u8 side;
	u8 sequences;
	/* Its sequence numbers were still unknown when recording began. */
	u8 has_copied;
	u8 reserved;
	/* Last visit of all files in which it had a row: files_end. */
	u32 visited;
	/* Kept, because a socket that is destroyed has no port any more. */
	struct ends ends;
};

/* State of the packets that a connection receives: they belong to no socket yet. */
struct inbound {
	u32 id;
	u32 peer;
	u32 base[FLOWS];
	u64 packet_end;
	u64 packet_ack;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct connection);
} connections SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct ends);
	__type(value, struct inbound);
} inbounds SEC(".maps");

/*
 * State of sends by socket, where a send is only seen as a system call: from a file no
 * program may reach a socket's own storage.
 */
struct sender {
	u32 id;
	u32 base;
	u64 message_end;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct sender);
} senders SEC(".maps");

u32 last_connection SEC(".data.connection") = 0;

/*
 * The offset of a sequence number, the one that is nearest to an offset of this
 * direction that is known: they are never 2^31 apart.
 */
static __always_inline u64 offset_of(u32 base, u64 near, u32 sequence)
{
	s64 distance = (s32)(sequence - (base + (u32)near));

	if (distance < 0 && (u64)-distance > near)
		return 0;
	return near + distance;
}

static __always_inline u32 peer_of(const struct ends *ends)
{
	u32 hash = ends->namespace, word, i;

#pragma unroll
	for (i = 0; i < 16; i += 4) {
		__builtin_memcpy(&word, &ends->local[i], 4);
		hash = (hash ^ word) * 0x9e3779b1;
		__builtin_memcpy(&word, &ends->remote[i], 4);
		hash = (hash ^ word) * 0x9e3779b1;
	}
	return hash >> 16 & (LUC_PEERS - 1);
}

static __always_inline void map_address(u8 address[16], __be32 v4)
{
	__builtin_memset(address, 0, 10);
	address[10] = 0xff;
	address[11] = 0xff;
	__builtin_memcpy(&address[12], &v4, 4);
}

static __always_inline u16 swap16(u16 value)
{
	return __builtin_bswap16(value);
}

static __always_inline void fill_ends(struct sock *sk, struct ends *ends)
{
	ends->namespace = sk->__sk_common.skc_net.net->ns.inum;
	ends->local_port = sk->__sk_common.skc_num;
	ends->remote_port = swap16(sk->__sk_common.skc_dport);
	if (sk->__sk_common.skc_family == AF_INET6 &&
	    bpf_core_field_exists(sk->__sk_common.skc_v6_daddr)) {
		bpf_core_read(ends->local, 16, &sk->__sk_common.skc_v6_rcv_saddr);
		bpf_core_read(ends->remote, 16, &sk->__sk_common.skc_v6_daddr);
	} else {
		map_address(ends->local, sk->__sk_common.skc_rcv_saddr);
		map_address(ends->remote, sk->__sk_common.skc_daddr);
	}
}

static __always_inline void send_connection(const struct connection *connection, u32 retransmits)
{
	struct record_connection *record = reserve(record_connection, LOST_CONNECTION);
	bool known = connection->sequences != SEQUENCES_UNKNOWN;

	if (!record)
		return;
	record->kind = RECORD_CONNECTION;
	record->connection = connection->id;
	record->at_ns = bpf_ktime_get_ns();
	record->cookie = connection->cookie;
	record->opened_ns = connection->opened_ns;
	record->closed_ns = connection->closed_ns;
	record->initial[SENT] = known ? connection->base[SENT] - 1 : 0;
	record->initial[RECEIVED] = known ? connection->base[RECEIVED] - 1 : 0;
	record->opener = connection->opener;
	record->opener_process = connection->opener_process;
	record->retransmits = retransmits;
	record->side = connection->side;
	record->sequences = connection->sequences;
	record->reserved[0] = 0;
	record->reserved[1] = 0;
	record->ends = connection->ends;
	submit(record);
}

/* Gives a connection whose sequence numbers are in place its number, and makes it known. */
static __always_inline void announce(struct sock *sk, struct connection *connection,
				     u32 retransmits)
{
	struct inbound inbound = {};
	struct sender sender = {};
	u64 address = (u64)sk;

	connection->cookie = bpf_get_socket_cookie(sk);
	fill_ends(sk, &connection->ends);
	connection->peer = peer_of(&connection->ends);
	inbound.id = __sync_fetch_and_add(&last_connection, 1) + 1;
	inbound.peer = connection->peer;
	inbound.base[SENT] = connection->base[SENT];
	inbound.base[RECEIVED] = connection->base[RECEIVED];
	inbound.packet_end = connection->message_end[RECEIVED];
	inbound.packet_ack = connection->message_end[SENT];
	connection->packet_end = connection->message_end[SENT];
	connection->packet_ack = connection->message_end[RECEIVED];
	if (bpf_map_update_elem(&inbounds, &connection->ends, &inbound, BPF_ANY))
		count_lost(LOST_MAP_CONNECTIONS);
	if (!config.send_ends) {
		sender.id = inbound.id;
		sender.base = connection->base[SENT];
		sender.message_end = connection->message_end[SENT];
		if (bpf_map_update_elem(&senders, &address, &sender, BPF_ANY))
			count_lost(LOST_MAP_CONNECTIONS);
	}
	connection->id = inbound.id;
	send_connection(connection, retransmits);
}

/* Returns whether the other end's FIN has arrived: rcv_nxt and copied_seq count one for it. */
static __always_inline bool has_received_fin(struct sock *sk)
{
	return sk->__sk_common.skc_flags >> bpf_core_enum_value(enum sock_flags, SOCK_DONE) & 1;
}

/*
 * The initial sequence numbers of a connection that was established before it was
 * watched follow from what the kernel counts: bytes received; bytes sent, less
 * those sent again. The count of acknowledged bytes, which at the end that
 * connected has one for the SYN, must say the same of those sent. It does not
 * where data came with the SYN, or where the counts change meanwhile.
 */
static __always_inline bool count_back(struct sock *sk, struct tcp_sock *tcp,
				       struct connection *connection)
{
	u8 state = sk->__sk_common.skc_state;
	u32 fin = has_received_fin(sk);
	u64 bytes_sent = tcp->bytes_sent - tcp->bytes_retrans;
	u32 base_sent = tcp->snd_nxt - (u32)bytes_sent;
	u32 by_acknowledged = tcp->snd_una - (u32)tcp->bytes_acked;
	u64 bytes_received = tcp->bytes_received;
	u32 received = tcp->rcv_nxt;

	barrier();
	if (tcp->bytes_received != bytes_received || tcp->rcv_nxt != received)
		return false;
	if (state != TCP_ESTABLISHED && state != TCP_CLOSE_WAIT)
		return false;
	if (by_acknowledged == base_sent)
		connection->side = SIDE_SERVER;
	else if (by_acknowledged + 1 == base_sent)
		connection->side = SIDE_CLIENT;
	else
		return false;
	connection->sequences = SEQUENCES_COUNTED;
	connection->base[SENT] = base_sent;
	/* FIN is in both counts. */
	connection->base[RECEIVED] = received - (u32)bytes_received;
	connection->message_end[SENT] = offset_of(base_sent, bytes_sent, tcp->write_seq);
	connection->message_end[RECEIVED] =
		offset_of(connection->base[RECEIVED], bytes_received - fin, tcp->copied_seq);
	return true;
}

/*
 * Counts a socket without room for storage. A socket that is going away gets none
 * either, but has no more traffic.
 */
static __always_inline void count_lost_socket(struct sock *sk)
{
	if (BPF_CORE_READ(sk, __sk_common.skc_refcnt.refs.counter))
		count_lost(LOST_MAP_CONNECTIONS);
}

/*
 * Returns the connection of a socket, and sets it up if it is unknown. The socket is
 * locked, so that its counts do not change.
 */
static __always_inline struct connection *connection_of(struct sock *sk, struct tcp_sock *tcp)
{
	struct connection *connection = bpf_sk_storage_get(&connections, sk, NULL, 0);

	if (connection && connection->id)
		return connection;
	connection = made_for_socket(&connections, sk);
	if (!connection) {
		count_lost_socket(sk);
		return NULL;
	}
	if (__sync_val_compare_and_swap(&connection->claimed, 0, 1))
		return connection->id ? connection : NULL;
	if (!count_back(sk, tcp, connection)) {
		connection->message_end[SENT] = tcp->write_seq;
		connection->message_end[RECEIVED] = tcp->copied_seq - has_received_fin(sk);
	}
	if (connection->has_copied)
		connection->message_end[RECEIVED] =
			offset_of(connection->base[RECEIVED], connection->message_end[RECEIVED],
				  connection->copied);
	announce(sk, connection, tcp->total_retrans);
	return connection;
}

/* Sends the last row of a connection, and drops its state. */
static __always_inline void forget(struct sock *sk, struct tcp_sock *tcp,
				   struct connection *connection)
{
	u64 address = (u64)sk;
	struct inbound *inbound;

	if (!connection->closed_ns)
		connection->closed_ns = bpf_ktime_get_ns();
	send_connection(connection, tcp->total_retrans);
	/* A new connection may have the same ends already. */
	inbound = bpf_map_lookup_elem(&inbounds, &connection->ends);
	if (inbound && inbound->id == connection->id)
		bpf_map_delete_elem(&inbounds, &connection->ends);
	if (!config.send_ends)
		bpf_map_delete_elem(&senders, &address);
	connection->id = 0;
}

#endif /* LUC_TCP_SEQUENCE_OFFSETS_H */
