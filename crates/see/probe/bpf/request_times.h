/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The summary mode's view of the network: times of requests until they were answered,
 * summed by service and peer.
 *
 * On a connection both ends take turns. A turn begins with its first byte; more bytes
 * of the same turn cost a look at the socket's storage. At the end that was connected
 * to, an exchange lasts from the packet that brought the request until the first byte
 * of the answer is sent. At the other end it lasts from the first byte sent until the
 * packet that brought the answer. TCP has read the time for each packet, and still has
 * it when a thread receives the data. So the time that the data waited for the thread
 * counts, too, unless another packet came in between. Requests that follow one another
 * without an answer between them are one exchange.
 */
#ifndef LUC_REQUEST_TIMES_H
#define LUC_REQUEST_TIMES_H

/*
 * Number of slots from which on a new peer's exchanges are summed with those of the
 * service's other new peers.
 */
#define LUC_OWN_PEERS (LUC_EXCHANGES / 4 * 3)

/* In place of a slot: its exchanges are not counted. */
#define NOT_COUNTED 0xffffffff

struct exchange {
	/* The number of its sums + 1; 0: not decided. */
	u32 slot;
	/* Direction of the turn: flow + 1; 0 if unknown. */
	u8 turn;
	/* The direction of requests. */
	u8 asks;
	u8 reserved[2];
	/* Up to where it had been received from. */
	u32 copied;
	u32 reserved_2;
	/* Begin of the turn; 0 if not seen. */
	u64 since_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct exchange);
} exchanges SEC(".maps");

/* The slots of pairs of service and peer. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LUC_EXCHANGES);
	__type(key, struct exchange_key);
	__type(value, u32);
} exchange_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LUC_EXCHANGES);
	__type(key, u32);
	__type(value, struct exchange_sum);
} exchange_sums SEC(".maps");

u32 last_exchange SEC(".data.exchange") = 0;

/* The step of a time: the first four have a unit each; then each power of two has four. */
static __always_inline u32 latency_step(u64 ns)
{
	u64 units = ns >> LUC_LATENCY_LOG2;
	u32 log, step;

	if (units < 4)
		return units;
	log = log2_of(units);
	step = (log - 1) * 4 + (units >> (log - 2) & 3);
	return step < LUC_LATENCIES ? step : LUC_LATENCIES - 1;
}

static __always_inline void count_exchange(u32 slot, u64 ns)
{
	struct exchange_sum *sum;
	u32 index = slot - 1;
	/* Linux 6.1 does not see that a copy of 32 bits is in bounds as well. */
	u64 step = latency_step(ns);

	sum = bpf_map_lookup_elem(&exchange_sums, &index);
	if (!sum || step >= LUC_LATENCIES)
		return;
	__sync_fetch_and_add(&sum->steps[step].total_ns, ns);
	__sync_fetch_and_add(&sum->steps[step].count, 1);
}

/* The slot of a pair, which it gets if it has none; 0: there is none left. */
static __always_inline u32 slot_of(const struct exchange_key *key)
{
	u32 *known = bpf_map_lookup_elem(&exchange_slots, key), slot;

	if (known)
		return *known;
	if (last_exchange >= LUC_EXCHANGES)
		return 0;
	slot = __sync_fetch_and_add(&last_exchange, 1) + 1;
	if (slot > LUC_EXCHANGES)
		return 0;
	if (!bpf_map_update_elem(&exchange_slots, key, &slot, BPF_NOEXIST))
		return slot;
	/* Another processor was faster. */
	known = bpf_map_lookup_elem(&exchange_slots, key);
	return known ? *known : 0;
}

static __always_inline u32 slot_for(struct sock *sk, struct task_struct *task, struct hot *hot,
				    bool asks)
{
	struct exchange_key key = { .cgroup = hot->cgroup };
	struct ends ends;
	u32 slot;

	fill_ends(sk, &ends);
	key.namespace = ends.namespace;
	key.side = asks ? SIDE_CLIENT : SIDE_SERVER;
	key.port = asks ? ends.remote_port : ends.local_port;
	__builtin_memcpy(key.peer, ends.remote, sizeof(key.peer));
	bpf_core_read_str(key.comm, LUC_COMM, &task->group_leader->comm);
	if (last_exchange >= LUC_OWN_PEERS && !bpf_map_lookup_elem(&exchange_slots, &key))
		__builtin_memset(key.peer, 0, sizeof(key.peer));
	slot = slot_of(&key);
	if (!slot)
		count_lost(LOST_MAP_EXCHANGES);
	return slot;
}

/*
 * Chooses the process whose exchanges a connection counts: the first to send or receive
 * on it. The end that connected follows from the kernel's counts, as in count_back().
 */
static __always_inline struct exchange *new_exchange(struct sock *sk, struct tcp_sock *tcp,
						     u32 flow)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct connection counted = {};
	struct exchange *exchange;
	struct hot *hot;
	u32 slot = 0;

	exchange = made_for_socket(&exchanges, sk);
	if (!exchange) {
		count_lost(LOST_MAP_EXCHANGES);
		return NULL;
	}
	/* The received data is already copied. */
	exchange->copied = tcp->copied_seq - (flow == RECEIVED);
	hot = hot_of(task);
	if (hot) {
		/* The counts may change meanwhile: the next message tries again. */
		if (!count_back(sk, tcp, &counted))
			return NULL;
		exchange->asks = counted.side == SIDE_CLIENT ? SENT : RECEIVED;
		slot = slot_for(sk, task, hot, counted.side == SIDE_CLIENT);
	}
	exchange->slot = slot ? slot : NOT_COUNTED;
	return exchange;
}

/* NULL: exchanges of this connection are not counted. */
static __always_inline struct exchange *exchange_of(struct sock *sk, struct tcp_sock *tcp, u32 flow)
{
	struct exchange *exchange = bpf_sk_storage_get(&exchanges, sk, NULL, 0);

	if (!exchange || !exchange->slot)
		exchange = new_exchange(sk, tcp, flow);
	return exchange && exchange->slot != NOT_COUNTED ? exchange : NULL;
}

static __always_inline void take_turn(struct exchange *exchange, struct tcp_sock *tcp, u32 flow,
				      u64 at_ns)
{
	u64 since_ns = exchange->since_ns;

	if (exchange->turn && flow != exchange->asks)
		count_exchange(exchange->slot, at_ns > since_ns ? at_ns - since_ns : 0);
	exchange->turn = flow + 1;
	exchange->copied = tcp->copied_seq;
	exchange->since_ns = at_ns;
}

static __always_inline void send_turn(struct sock *sk)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	struct exchange *exchange;

	if (!tcp)
		return;
	exchange = exchange_of(sk, tcp, SENT);
	if (exchange && exchange->turn != SENT + 1)
		take_turn(exchange, tcp, SENT, bpf_ktime_get_ns());
}

/* Since Linux 6.16: before a send's bytes are copied to the socket. */
SEC("tp_btf/tcp_sendmsg_locked")
int BPF_PROG(exchange_send, struct sock *sk)
{
	send_turn(sk);
	return 0;
}

/* Since Linux 6.3: the end of each send. The socket is no longer locked. */
SEC("tp_btf/sock_send_length")
int BPF_PROG(exchange_sent, struct sock *sk, int result)
{
	if (result > 0)
		send_turn(sk);
	return 0;
}

/*
 * Called after each piece that was copied to a thread, and where none was. Without
 * an owner no thread receives: the kernel reads ahead for an upper protocol.
 */
SEC("tp_btf/tcp_rcv_space_adjust")
int BPF_PROG(exchange_receive, struct sock *sk)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	struct exchange *exchange;

	if (!tcp || !sk->sk_lock.owned)
		return 0;
	exchange = exchange_of(sk, tcp, RECEIVED);
	if (exchange && exchange->turn != RECEIVED + 1 && exchange->copied != tcp->copied_seq)
		take_turn(exchange, tcp, RECEIVED, tcp->tcp_clock_cache);
	return 0;
}

#endif /* LUC_REQUEST_TIMES_H */
