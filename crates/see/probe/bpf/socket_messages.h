/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages: what a thread sends and receives on a connection, in the bytes of
 * its streams. A send is noted when it begins, as its packets leave before it
 * ends.
 */
#ifndef LUC_SOCKET_MESSAGES_H
#define LUC_SOCKET_MESSAGES_H

static __always_inline void note_opener(struct task_struct *task, struct connection *connection)
{
	if (connection->opener)
		return;
	connection->opener = task->pid;
	connection->opener_process = task->tgid;
}

/* TLS in the kernel and the like send other bytes than they are given. */
static __always_inline bool has_upper_protocol(struct tcp_sock *tcp)
{
	return bpf_core_field_exists(tcp->inet_conn.icsk_ulp_ops) && tcp->inet_conn.icsk_ulp_ops;
}

/* Since Linux 6.16. Called for each piece that is copied to the socket, before it is. */
SEC("tp_btf/tcp_sendmsg_locked")
int BPF_PROG(tcp_sendmsg_locked, struct sock *sk, struct msghdr *message)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 left = message->msg_iter.count, first, sent;
	struct hot *hot = hot_of(task);
	struct connection *connection;
	struct talker *talker;
	struct tcp_sock *tcp;

	if (!hot)
		return 0;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp)
		return 0;
	connection = connection_of(sk, tcp);
	talker = made_talker(task);
	if (!connection || !talker)
		return 0;
	first = offset_of(connection->base[SENT], connection->message_end[SENT], tcp->write_seq);
	connection->message_end[SENT] = first;
	/*
	 * If more is left than before, this is another call: the former one ended
	 * before recording began.
	 */
	if (talker->send_sock == (u64)sk && left <= talker->send_left) {
		sent = talker->send_left - left;
		if (talker->send_upper || first == talker->send_first + sent)
			return 0;
		/* Another thread has sent while this one waited for room. */
		if (sent)
			send_message(task, hot, SENT, talker->send_connection, talker->send_ns,
				     talker->send_first, sent);
		talker->send_done += sent;
	} else {
		talker->send_sock = (u64)sk;
		talker->send_connection = connection->id;
		talker->send_done = 0;
		talker->send_upper = has_upper_protocol(tcp);
		note_opener(task, connection);
		look_for_token(task, SENT, connection->id, first, left);
	}
	talker->send_first = first;
	talker->send_left = left;
	talker->send_ns = bpf_ktime_get_ns();
	return 0;
}

/*
 * A send whose beginning was not seen. If threads send on one connection at once,
 * their bytes may be taken for each other's.
 */
static __always_inline void sent_until_now(struct task_struct *task, struct hot *hot,
					   struct sock *sk, int result)
{
	struct connection *connection;
	struct talker *talker;
	struct tcp_sock *tcp;
	u64 end, bytes;

	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp || result <= 0)
		return;
	connection = connection_of(sk, tcp);
	talker = made_talker(task);
	if (!connection || !talker)
		return;
	note_opener(task, connection);
	end = offset_of(connection->base[SENT], connection->message_end[SENT], tcp->write_seq);
	bytes = has_upper_protocol(tcp) ? end - connection->message_end[SENT] : result;
	connection->message_end[SENT] = end;
	if (bytes && bytes <= end) {
		look_for_token(task, SENT, connection->id, end - bytes, bytes);
		send_message(task, hot, SENT, connection->id,
			     talker->send_ns ? talker->send_ns : bpf_ktime_get_ns(), end - bytes,
			     bytes);
	}
	talker->send_ns = 0;
}

/* Since Linux 6.3. The end of each send. */
SEC("tp_btf/sock_send_length")
int BPF_PROG(sock_send_length, struct sock *sk, int result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct hot *hot = hot_of(task);
	struct connection *connection;
	struct talker *talker;
	struct tcp_sock *tcp;
	u64 bytes, end;

	if (sk->__sk_common.skc_family == AF_UNIX) {
		local_sent(sk, result);
		return 0;
	}
	if (!hot)
		return 0;
	if (!config.send_begins) {
		sent_until_now(task, hot, sk, result);
		return 0;
	}
	talker = talker_of(task);
	if (!talker || talker->send_sock != (u64)sk)
		return 0;
	talker->send_sock = 0;
	if (result <= 0)
		return 0;
	bytes = result - talker->send_done;
	/* Recording began in the middle of this call. */
	if (bytes > talker->send_left)
		bytes = talker->send_left;
	if (talker->send_upper) {
		tcp = bpf_skc_to_tcp_sock(sk);
		connection = bpf_sk_storage_get(&connections, sk, NULL, 0);
		if (!connection || !tcp)
			return 0;
		end = offset_of(connection->base[SENT], talker->send_first, tcp->write_seq);
		bytes = end - talker->send_first;
	}
	if (bytes)
		send_message(task, hot, SENT, talker->send_connection, talker->send_ns,
			     talker->send_first, bytes);
	return 0;
}

/*
 * Called after each piece that was copied to the thread: one for a call, but where
 * it takes what came in several. The end of the call would tell nothing more, and
 * costs a program for each call, also for those that receive nothing. Other
 * threads than the recorded ones move the connection's end, too.
 */
SEC("tp_btf/tcp_rcv_space_adjust")
int BPF_PROG(tcp_rcv_space_adjust, struct sock *sk)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct connection *connection;
	struct tcp_sock *tcp;
	struct hot *hot;
	u64 first, end;
	u32 copied;

	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp)
		return 0;
	connection = connection_of(sk, tcp);
	if (!connection)
		return 0;
	copied = tcp->copied_seq;
	/* The end of the stream, FIN, is no byte. */
	if (copied == tcp->rcv_nxt && has_received_fin(sk))
		copied--;
	first = connection->message_end[RECEIVED];
	end = offset_of(connection->base[RECEIVED], first, copied);
	if (end <= first)
		return 0;
	connection->message_end[RECEIVED] = end;
	/* Without an owner no thread receives: the kernel reads ahead for an upper protocol. */
	hot = hot_of(task);
	if (!hot || !sk->sk_lock.owned)
		return 0;
	note_opener(task, connection);
	look_for_token(task, RECEIVED, connection->id, first, end - first);
	send_message(task, hot, RECEIVED, connection->id, bpf_ktime_get_ns(), first, end - first);
	return 0;
}

/* Before Linux 6.16: when a call that may send begins. */
SEC("tp_btf/sys_enter")
int BPF_PROG(send_enter, struct pt_regs *regs, long number)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct talker *talker;

	if (number < 0 || number >= LUC_SYSCALLS || !config.send_class[number & (LUC_SYSCALLS - 1)])
		return 0;
	if (!hot_of(task))
		return 0;
	talker = made_talker(task);
	if (talker)
		talker->send_ns = bpf_ktime_get_ns();
	return 0;
}

/* Before Linux 6.3: the end of a call whose first argument is the socket's file. */
SEC("tp_btf/sys_exit")
int BPF_PROG(send_exit, struct pt_regs *regs, long result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	long number = syscall_of_registers(regs);
	struct talker *talker;
	struct sender *sender;
	struct socket *socket;
	struct tcp_sock *tcp;
	struct file *file;
	struct sock *sk;
	struct hot *hot;
	u64 address, end, bytes;
	u32 class, receives;

	if (result <= 0 || number < 0 || number >= LUC_SYSCALLS)
		return 0;
	class = config.send_class[number & (LUC_SYSCALLS - 1)];
	receives = config.receive_class[number & (LUC_SYSCALLS - 1)];
	if (!class && !receives)
		return 0;
	hot = hot_of(task);
	if (!hot)
		return 0;
	file = file_of(task, argument(regs, 0));
	if (!file || (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFSOCK)
		return 0;
	socket = BPF_CORE_READ(file, private_data);
	sk = BPF_CORE_READ(socket, sk);
	if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_UNIX) {
		if (class == SEND_BYTES || receives_bytes(regs, receives))
			local_call(task, hot, sk, result, class);
		return 0;
	}
	talker = talker_of(task);
	if (!class || !talker)
		return 0;
	address = (u64)sk;
	sender = bpf_map_lookup_elem(&senders, &address);
	if (!sender)
		return 0;
	tcp = (void *)address;
	end = offset_of(sender->base, sender->message_end, BPF_CORE_READ(tcp, write_seq));
	bytes = class == SEND_MESSAGES ? end - sender->message_end : result;
	sender->message_end = end;
	if (bytes && bytes <= end) {
		look_for_token(task, SENT, sender->id, end - bytes, bytes);
		send_message(task, hot, SENT, sender->id, talker->send_ns, end - bytes, bytes);
	}
	return 0;
}

#endif /* LUC_SOCKET_MESSAGES_H */
