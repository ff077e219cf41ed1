/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Records of the network, as event_layouts.h has the others. src/ring_records/net.rs mirrors it. */
#ifndef LUC_NETWORK_LAYOUTS_H
#define LUC_NETWORK_LAYOUTS_H

/* Direction of bytes: luc_events::Flow. Also an index into a connection's arrays. */
enum flow {
	SENT,
	RECEIVED,
	FLOWS,
};

/* luc_events::Side */
enum side {
	SIDE_UNKNOWN,
	SIDE_CLIENT,
	SIDE_SERVER,
};

/* luc_events::Sequences */
enum sequences {
	SEQUENCES_UNKNOWN,
	SEQUENCES_SEEN,
	SEQUENCES_COUNTED,
};

/*
 * Both ends of a connection, as its socket has them, in network order but for
 * the ports. IPv4 addresses are mapped into IPv6 (::ffff:a.b.c.d).
 */
struct ends {
	u32 namespace;
	u16 local_port;
	u16 remote_port;
	u8 local[16];
	u8 remote[16];
};

struct record_connection {
	u32 kind;
	u32 connection;
	u64 at_ns;
	u64 cookie;
	u64 opened_ns;
	u64 closed_ns;
	u32 initial[FLOWS];
	u32 opener;
	u32 opener_process;
	u32 retransmits;
	u8 side;
	u8 sequences;
	u8 reserved[2];
	struct ends ends;
};

/* luc_events::Family; the first two are of `ends`. */
enum family {
	FAMILY_UNIX_STREAM = 2,
	FAMILY_UNIX_SEQPACKET,
	FAMILY_UNIX_DGRAM,
	FAMILY_PIPE,
};

/* One end of a connection whose other end is on the same host. */
struct record_local {
	u32 kind;
	u32 connection;
	/* The other end's number. */
	u32 peer;
	u32 namespace;
	u64 at_ns;
	u64 cookie;
	u64 opened_ns;
	u64 closed_ns;
	u32 opener;
	u32 opener_process;
	u8 side;
	u8 sequences;
	u8 family;
	u8 reserved;
	/* Length of the name that bind() was given; 0 for no name. */
	u16 local_length;
	u16 remote_length;
	char local[LUC_NAME];
	char remote[LUC_NAME];
};

struct record_message {
	u32 kind;
	u32 connection;
	u32 thread;
	u32 process;
	u64 at_ns;
	u64 first_byte;
	u64 bytes;
	u32 flow;
	u32 reserved;
};

/* The name of a request, in the message that has this byte. */
struct record_token {
	u32 kind;
	u32 connection;
	u32 thread;
	u32 process;
	u64 at_ns;
	u64 byte;
	u64 token;
	u32 flow;
	u32 reserved;
};

struct record_packet {
	u32 kind;
	u32 connection;
	u64 at_ns;
	u64 first_byte;
	u64 ack;
	u32 bytes;
	u32 flow;
};

/* Key of summed exchanges. */
struct exchange_key {
	u64 cgroup;
	u32 namespace;
	/* The service's. */
	u16 port;
	/* enum side */
	u8 side;
	u8 reserved;
	/* The process' name. */
	char comm[LUC_COMM];
	/* As in struct ends; 0: of all that have no slot of their own. */
	u8 peer[16];
};

struct exchange_step {
	u64 count;
	u64 total_ns;
};

/* Sums by the time of exchanges, since recording began. */
struct exchange_sum {
	struct exchange_step steps[LUC_LATENCIES];
};

#endif /* LUC_NETWORK_LAYOUTS_H */
