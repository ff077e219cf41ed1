/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parts of kernel types that have to do with the network; see kernel_types.h. */
#ifndef LUC_KERNEL_NETWORK_TYPES_H
#define LUC_KERNEL_NETWORK_TYPES_H

#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define IPPROTO_TCP 6
#define SOCK_STREAM 1
#define SOCK_DGRAM 2
#define SOCK_SEQPACKET 5
#define RCV_SHUTDOWN 1
#define SHUTDOWN_MASK 3
#define MSG_PEEK 2
#define EPIPE 32
#define IFF_LOOPBACK 0x8
#define TCPHDR_FIN 0x01
#define TCPHDR_SYN 0x02
/* Values of sk_state; they are the user-space interface's, too. */
#define TCP_ESTABLISHED 1
#define TCP_SYN_SENT 2
#define TCP_FIN_WAIT1 4
#define TCP_CLOSE 7
#define TCP_CLOSE_WAIT 8
#define TCP_LAST_ACK 9

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct net_device {
	unsigned int flags;
	possible_net_t nd_net;
};

struct in6_addr {
	union {
		u8 u6_addr8[16];
	} in6_u;
};

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	atomic_t refs;
} refcount_t;

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	/* sk_refcnt */
	refcount_t skc_refcnt;
	/* sk_flags */
	unsigned long skc_flags;
};

typedef struct {
	int owned;
} socket_lock_t;

enum sock_flags {
	SOCK_DEAD = 0,
	SOCK_DONE = 1,
};

struct socket;

struct sk_buff_head {
	struct sk_buff *next;
	u32 qlen;
};

struct sock {
	struct sock_common __sk_common;
	socket_lock_t sk_lock;
	struct sk_buff_head sk_receive_queue;
	u16 sk_protocol;
	u16 sk_type;
	u8 sk_shutdown;
	int sk_sndbuf;
	struct socket *sk_socket;
	refcount_t sk_wmem_alloc;
};

struct sockaddr_un {
	char sun_path[108];
};

struct unix_address {
	int len;
	struct sockaddr_un name[0];
};

struct unix_sock {
	struct sock sk;
	struct unix_address *addr;
	struct sock *peer;
	/* Since Linux 6.17: bytes of a stream that are unread. */
	int inq_len;
};

/* In `cb` of a packet of a unix socket. */
struct unix_skb_parms {
	u32 consumed;
};

struct socket {
	struct sock *sk;
};

struct socket_alloc {
	struct inode vfs_inode;
};

struct inet_connection_sock {
	const void *icsk_ulp_ops;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 copied_seq;
	u32 rcv_nxt;
	u32 snd_nxt;
	u32 snd_una;
	u32 write_seq;
	u64 bytes_sent;
	u64 bytes_retrans;
	u64 bytes_acked;
	u64 bytes_received;
	u32 total_retrans;
	/* Time of the last packet sent or received, ns of CLOCK_MONOTONIC. */
	u64 tcp_clock_cache;
};

struct iov_iter {
	unsigned long count;
};

struct msghdr {
	struct iov_iter msg_iter;
};

struct iovec {
	void *iov_base;
	unsigned long iov_len;
};

/* As a program gives it to sendmsg and recvmsg. */
struct user_msghdr {
	void *msg_name;
	int msg_namelen;
	struct iovec *msg_iov;
};

struct sk_buff {
	struct sk_buff *next;
	struct net_device *dev;
	struct sock *sk;
	char cb[48];
	unsigned int len;
	unsigned int data_len;
	u16 network_header;
	unsigned char *head;
	unsigned char *data;
};

#pragma clang attribute pop

#endif /* LUC_KERNEL_NETWORK_TYPES_H */
