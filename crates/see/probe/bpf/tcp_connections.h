/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Begin and end of TCP connections, and those that exist before and after the recording. */
#ifndef LUC_TCP_CONNECTIONS_H
#define LUC_TCP_CONNECTIONS_H

/*
 * Notes a socket that begins to connect. When a connection is established, nothing has
 * been sent or received on it. So both initial sequence numbers are one less than the
 * next ones.
 */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(inet_sock_set_state, struct sock *sk, int old_state, int new_state)
{
	struct connection *connection;
	struct task_struct *task;
	struct tcp_sock *tcp;

	switch (new_state) {
	case TCP_SYN_SENT:
	case TCP_ESTABLISHED:
	case TCP_FIN_WAIT1:
	case TCP_LAST_ACK:
	case TCP_CLOSE:
		break;
	default:
		return 0;
	}
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp)
		return 0;
	if (new_state == TCP_FIN_WAIT1 || new_state == TCP_LAST_ACK) {
		/* Its program has closed it. It may outlive the recording without a file. */
		connection = bpf_sk_storage_get(&connections, sk, NULL, 0);
		if (connection && connection->id)
			send_connection(connection, tcp->total_retrans);
		return 0;
	}
	if (new_state == TCP_CLOSE) {
		connection = bpf_sk_storage_get(&connections, sk, NULL, 0);
		if (connection && connection->id)
			connection->closed_ns = bpf_ktime_get_ns();
		return 0;
	}
	connection = made_for_socket(&connections, sk);
	if (!connection) {
		count_lost_socket(sk);
		return 0;
	}
	if (new_state == TCP_SYN_SENT) {
		/* A socket can connect again, after it was disconnected. */
		if (connection->id)
			forget(sk, tcp, connection);
		__builtin_memset(connection, 0, sizeof(*connection));
		task = bpf_get_current_task_btf();
		connection->side = SIDE_CLIENT;
		connection->opener = task->pid;
		connection->opener_process = task->tgid;
		return 0;
	}
	if (__sync_val_compare_and_swap(&connection->claimed, 0, 1))
		return 0;
	if (!connection->side)
		connection->side = SIDE_SERVER;
	connection->sequences = SEQUENCES_SEEN;
	connection->opened_ns = bpf_ktime_get_ns();
	connection->base[SENT] = tcp->snd_una;
	connection->base[RECEIVED] = tcp->rcv_nxt;
	announce(sk, connection, tcp->total_retrans);
	return 0;
}

SEC("tp_btf/tcp_destroy_sock")
int BPF_PROG(tcp_destroy_sock, struct sock *sk)
{
	struct connection *connection = bpf_sk_storage_get(&connections, sk, NULL, 0);
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

	if (connection && connection->id && tcp)
		forget(sk, tcp, connection);
	return 0;
}

/* NULL: the file is no socket. */
static __always_inline struct sock *socket_of(struct file *file)
{
	struct socket *socket = bpf_sock_from_file(file);

	return socket ? socket->sk : NULL;
}

/*
 * Visits the connections that exist when recording begins, through the files of all
 * processes. An iterator over TCP sockets would see one network namespace only, and
 * does not know their owners. The socket is not locked here: the next send or receive
 * handles changes meanwhile.
 */
SEC("iter/task_file")
int net_begin(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct connection *connection;
	struct tcp_sock *tcp;
	struct sock *sk;
	u32 local;
	u8 state;

	if (!task || !file)
		return 0;
	if (config.pipes) {
		local = look_at_pipe(file);
		if (local)
			note_descriptor(task, ctx->fd, local, false);
	}
	sk = socket_of(file);
	if (!sk)
		return 0;
	if (sk->__sk_common.skc_family == AF_UNIX) {
		local = config.send_ends ? look_at_pair(sk, task) : look_at_places(sk, task);
		if (local)
			note_descriptor(task, ctx->fd, local, false);
		return 0;
	}
	tcp = bpf_skc_to_tcp_sock(sk);
	state = sk->__sk_common.skc_state;
	/* Sockets that listen, or are not connected yet, do not count. */
	if (!tcp || state == TCP_CLOSE || !sk->__sk_common.skc_dport)
		return 0;
	if (state == TCP_SYN_SENT)
		return 0;
	connection = made_for_socket(&connections, sk);
	if (!connection) {
		count_lost_socket(sk);
		return 0;
	}
	if (!connection->opener_process)
		connection->opener_process = task->tgid;
	if (__sync_val_compare_and_swap(&connection->claimed, 0, 1)) {
		/* Another descriptor of the same socket, or one that has been used already. */
		if (connection->id)
			note_descriptor(task, ctx->fd, connection->id, false);
		return 0;
	}
	if (count_back(sk, tcp, connection)) {
		announce(sk, connection, tcp->total_retrans);
		note_descriptor(task, ctx->fd, connection->id, false);
		return 0;
	}
	connection->copied = tcp->copied_seq - has_received_fin(sk);
	connection->has_copied = 1;
	barrier();
	connection->claimed = 0;
	return 0;
}

/*
 * Reports connections and their files when recording ends. A connection without a file
 * has had its row: a socket that was not accepted yet when it was established, and one
 * whose program has closed it when it was closed.
 */
SEC("iter/task_file")
int files_end(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct connection *connection;
	struct tcp_sock *tcp;
	struct sock *sk;
	u32 number;

	if (!task || !file)
		return 0;
	if (config.pipes) {
		number = pipe_end_of(file);
		if (number)
			note_descriptor(task, ctx->fd, number, true);
	}
	sk = socket_of(file);
	if (!sk)
		return 0;
	if (sk->__sk_common.skc_family == AF_UNIX) {
		number = config.send_ends ? pair_at_end(sk) : number_at(sk);
		if (number)
			note_descriptor(task, ctx->fd, number, true);
		return 0;
	}
	connection = bpf_sk_storage_get(&connections, sk, NULL, 0);
	if (!connection || !connection->id)
		return 0;
	note_descriptor(task, ctx->fd, connection->id, true);
	tcp = bpf_skc_to_tcp_sock(sk);
	if (tcp && connection->visited != end_visit) {
		connection->visited = end_visit;
		send_connection(connection, tcp->total_retrans);
	}
	return 0;
}

#endif /* LUC_TCP_CONNECTIONS_H */
