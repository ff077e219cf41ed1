/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unix sockets since Linux 6.3: tracepoints see each send and each receive.
 */
#ifndef LUC_UNIX_SOCKET_TRACEPOINTS_H
#define LUC_UNIX_SOCKET_TRACEPOINTS_H

static __always_inline struct local_end *known_end(struct sock *sk)
{
	struct local_end *end = bpf_sk_storage_get(&local_ends, sk, NULL, 0);

	return end && is_known(end) ? end : NULL;
}

/* Returns the end of `receiver` in a new pair, whose socket `sk` the current thread uses. */
static __always_inline struct local_end *met_end(struct sock *sk, struct sock *peer,
						 struct sock *receiver)
{
	if (local_visit < 3 || !is_pair(sk, peer))
		return NULL;
	pair_up(sk, peer, bpf_get_current_task_btf());
	return known_end(receiver);
}

/* Since Linux 6.3. Where something has been sent to a socket, by the thread that sends it. */
SEC("tp_btf/sk_data_ready")
int BPF_PROG(sk_data_ready, struct sock *sk)
{
	struct task_struct *task;
	struct local_end *end;
	struct talker *talker;
	u64 now;

	if (sk->__sk_common.skc_family != AF_UNIX)
		return 0;
	end = bpf_sk_storage_get(&local_ends, sk, NULL, 0);
	now = bpf_ktime_get_ns();
	if (end) {
		end->activity++;
		end->sending = 1;
		/* The receiver was faster than this program. */
		if (end->ahead_ns && end->ahead_ns < now)
			now = end->ahead_ns;
		end->ahead_ns = 0;
	}
	task = bpf_get_current_task_btf();
	if (!hot_of(task))
		return 0;
	talker = made_talker(task);
	if (!talker || talker->send_sock == (u64)sk)
		return 0;
	talker->send_sock = (u64)sk;
	talker->send_ns = now;
	return 0;
}

/*
 * Notes that a socket is closed, at the notification of its peer. A socket that only
 * stops sending is not closed.
 */
static __always_inline void local_closed(struct sock *sk, struct sock *peer)
{
	struct local_end *end = bpf_sk_storage_get(&local_ends, sk, NULL, 0);

	if (!end || !end->id || end->closed_ns || sk->sk_shutdown != SHUTDOWN_MASK)
		return;
	end->closed_ns = bpf_ktime_get_ns();
	send_local(sk, peer, end, bpf_get_socket_cookie(sk));
}

/*
 * The end of a send. If threads send on one socket at once, their bytes may be
 * taken for each other's.
 */
static __always_inline void local_sent(struct sock *sk, int result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sock *peer = local_peer(sk);
	struct local_end *end, *own;
	struct talker *talker;
	struct hot *hot;
	u64 first, at_ns;

	if (!peer)
		return;
	if (result <= 0) {
		if (result == -EPIPE)
			local_closed(peer, sk);
		return;
	}
	end = known_end(peer);
	if (!end)
		end = met_end(sk, peer, peer);
	if (!end)
		return;
	first = __sync_fetch_and_add(&end->sent, result);
	end->ahead_ns = 0;
	barrier();
	end->sending = 0;
	if (!end->settled) {
		end->activity++;
		end->was_full = 0;
		return;
	}
	hot = hot_of(task);
	if (!hot)
		return;
	if (!first) {
		own = bpf_sk_storage_get(&local_ends, sk, NULL, 0);
		if (own)
			note_user(sk, peer, own, task, bpf_get_socket_cookie(sk));
	}
	at_ns = bpf_ktime_get_ns();
	talker = talker_of(task);
	if (talker && talker->send_sock == (u64)peer) {
		at_ns = talker->send_ns;
		talker->send_sock = 0;
	}
	look_for_token(task, SENT, end->peer, first, result);
	send_message(task, hot, SENT, end->peer, at_ns, first, result);
}

/*
 * Returns whether bytes were received whose sender has not reached sk_data_ready() yet.
 * An ended send counts its bytes before it sets its flag: they are read in that order.
 */
static __always_inline bool is_ahead(struct local_end *end)
{
	bool sending = *(volatile u32 *)&end->sending;

	barrier();
	return !sending && end->received > *(volatile u64 *)&end->sent;
}

/* Since Linux 6.3. The end of each receive. */
SEC("tp_btf/sock_recv_length")
int BPF_PROG(sock_recv_length, struct sock *sk, int result, int flags)
{
	struct task_struct *task;
	struct local_end *end;
	struct sock *peer;
	struct hot *hot;
	u64 first, now;
	bool is_drained;

	if (sk->__sk_common.skc_family != AF_UNIX || flags & MSG_PEEK)
		return 0;
	if (result <= 0) {
		if (!(sk->sk_shutdown & RCV_SHUTDOWN))
			return 0;
		peer = local_peer(sk);
		if (peer)
			local_closed(peer, sk);
		return 0;
	}
	end = known_end(sk);
	if (!end) {
		peer = local_peer(sk);
		if (peer)
			end = met_end(sk, peer, sk);
	}
	if (!end)
		return 0;
	is_drained = !sk->sk_receive_queue.qlen && !end->sending;
	first = __sync_fetch_and_add(&end->received, result);
	now = bpf_ktime_get_ns();
	if (end->settled) {
		if (is_ahead(end))
			end->ahead_ns = now;
		task = bpf_get_current_task_btf();
		hot = hot_of(task);
		if (hot && !end->opener_process) {
			peer = local_peer(sk);
			if (peer)
				note_user(sk, peer, end, task, bpf_get_socket_cookie(sk));
		}
		if (hot) {
			look_for_token(task, RECEIVED, end->id, first, result);
			send_message(task, hot, RECEIVED, end->id, now, first, result);
		}
	} else {
		end->activity++;
	}
	if (is_drained)
		settle_drained(end);
	return 0;
}

#endif /* LUC_UNIX_SOCKET_TRACEPOINTS_H */
