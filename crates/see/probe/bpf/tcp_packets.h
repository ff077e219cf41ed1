/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP packets at network devices. They bound the distance of two hosts' clocks. For
 * that a packet needs a row on both hosts, so both must choose the same ones of many,
 * without talking to each other. Packets that a host sends to itself by its loopback
 * device show nothing about another clock.
 *
 * Hosts choose by content: a packet is kept if its new bytes, or its new
 * acknowledgment, reach across a multiple of 2^level. Both ends see the same offsets,
 * however packets were split and joined on the way. If the levels of two hosts differ,
 * all multiples of the higher one are multiples of the lower. Each host sets the level
 * by the number of kept packets, for each pair of addresses of a namespace and each
 * direction. So about PEER_PACKETS remain in PEER_WINDOW_NS: the clocks' fit takes the
 * best of each 4 ms.
 */
#ifndef LUC_TCP_PACKETS_H
#define LUC_TCP_PACKETS_H

#define PEER_WINDOW_NS 16000000
#define PEER_PACKETS 16
/* 1 TiB: more than any host sends before the level goes down again. */
#define PEER_LEVELS 40

#define IP_HEADER 20
#define IP6_HEADER 40
#define TCP_HEADER 20

struct thinning {
	u64 since_ns;
	u32 kept;
	u32 level;
	/* Packets that were not kept. */
	u32 passed;
	u32 reserved;
};

struct peer {
	struct thinning flows[FLOWS];
};

/* Processors count in it at once: a packet more or less is no harm. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LUC_PEERS);
	__type(key, u32);
	__type(value, struct peer);
} peers SEC(".maps");

struct segment {
	u32 sequence;
	u32 acknowledged;
	u32 bytes;
};

static __always_inline u16 be16(const u8 *bytes)
{
	return (u16)bytes[0] << 8 | bytes[1];
}

static __always_inline u32 be32(const u8 *bytes)
{
	return (u32)be16(bytes) << 16 | be16(bytes + 2);
}

/*
 * Parses a packet's headers. Returns false if it is not TCP without IP options. With
 * ends, also returns these as the receiver sees them, without the namespace.
 */
static __always_inline bool take_apart(const unsigned char *start, u32 length,
				       struct segment *segment, struct ends *ends)
{
	u8 bytes[IP6_HEADER + TCP_HEADER];
	u32 header, total;
	u8 *tcp;

	/* Behind the data of a packet there is always its shared part, which is longer. */
	if (bpf_probe_read_kernel(bytes, sizeof(bytes), start))
		return false;
	if (bytes[0] == 0x45 && bytes[9] == IPPROTO_TCP) {
		/* Only the first fragment has a TCP header, and TCP is not sent in fragments. */
		if (be16(&bytes[6]) & 0x3fff)
			return false;
		tcp = &bytes[IP_HEADER];
		header = IP_HEADER;
		/* Frames may be padded. A packet above 64 KiB has no length. */
		total = be16(&bytes[2]);
		if (ends) {
			map_address(ends->local, *(__be32 *)&bytes[16]);
			map_address(ends->remote, *(__be32 *)&bytes[12]);
		}
	} else if (bytes[0] >> 4 == 6 && bytes[6] == IPPROTO_TCP) {
		tcp = &bytes[IP6_HEADER];
		header = IP6_HEADER;
		total = be16(&bytes[4]);
		if (total)
			total += IP6_HEADER;
		if (ends) {
			__builtin_memcpy(ends->local, &bytes[24], 16);
			__builtin_memcpy(ends->remote, &bytes[8], 16);
		}
	} else {
		return false;
	}
	if (!total)
		total = length;
	if (tcp[13] & TCPHDR_SYN)
		return false;
	if (ends) {
		ends->remote_port = be16(&tcp[0]);
		ends->local_port = be16(&tcp[2]);
	}
	segment->sequence = be32(&tcp[4]);
	segment->acknowledged = be32(&tcp[8]);
	header += (tcp[12] >> 4) * 4;
	segment->bytes = total > header ? total - header : 0;
	return true;
}

static __always_inline bool crosses(u64 from, u64 to, u32 level)
{
	return from >> level != to >> level;
}

/*
 * The time, if the packet is kept; else 0. Of packets that are not, only each
 * eighth looks at the time, which is a good part of what a packet costs.
 */
static __always_inline u64 kept_at(struct thinning *thinning, bool crossed)
{
	u64 now, windows;

	if (!crossed && ++thinning->passed & 7)
		return 0;
	now = bpf_ktime_get_ns();
	windows = (now - thinning->since_ns) / PEER_WINDOW_NS;
	if (now > thinning->since_ns && windows) {
		/* The window that has ended may have been a full one. */
		if (thinning->kept >= PEER_PACKETS / 4)
			windows--;
		thinning->level = windows < thinning->level ? thinning->level - windows : 0;
		thinning->since_ns = now;
		thinning->kept = 0;
	}
	if (!crossed)
		return 0;
	if (++thinning->kept > PEER_PACKETS && thinning->level < PEER_LEVELS)
		thinning->level++;
	return now;
}

/*
 * Sends a row for what is new in a packet, if it is one to keep. `end` and `ack`
 * are how far the packets before it went.
 */
static __always_inline void look_at(const struct segment *segment, u32 flow, u32 id, u32 peer_index,
				    const u32 base[FLOWS], u64 *end, u64 *ack)
{
	u64 first, last, acknowledged, now;
	u64 old_end = *end, old_ack = *ack;
	struct record_packet *record;
	struct thinning *thinning;
	bool new_bytes, new_ack;
	struct peer *peer;
	u32 level;

	first = offset_of(base[flow], old_end, segment->sequence);
	last = first + segment->bytes;
	acknowledged = offset_of(base[!flow], old_ack, segment->acknowledged);
	new_bytes = segment->bytes && last > old_end;
	new_ack = acknowledged > old_ack;
	if (first < old_end)
		first = old_end;
	if (new_bytes)
		*end = last;
	if (new_ack)
		*ack = acknowledged;
	if (!new_bytes && !new_ack)
		return;
	peer = bpf_map_lookup_elem(&peers, &peer_index);
	if (!peer)
		return;
	thinning = &peer->flows[flow & 1];
	level = thinning->level & 63;
	now = kept_at(thinning, (new_bytes && crosses(first, last, level)) ||
					(new_ack && crosses(old_ack, acknowledged, level)));
	if (!now)
		return;
	record = reserve(record_packet, LOST_PACKET);
	if (!record)
		return;
	record->kind = RECORD_PACKET;
	record->connection = id;
	record->at_ns = now;
	record->first_byte = first;
	record->ack = new_ack ? acknowledged : 0;
	record->bytes = new_bytes ? last - first : 0;
	record->flow = flow;
	submit(record);
}

static __always_inline bool is_loopback(struct sk_buff *skb)
{
	return skb->dev->flags & IFF_LOOPBACK;
}

/*
 * A packet that passes several devices, say of a container and of its host, is
 * seen at each, and new at the first only.
 */
SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(net_dev_start_xmit, struct sk_buff *skb)
{
	struct connection *connection;
	struct segment segment;
	struct sock *sk = skb->sk;

	if (!sk || is_loopback(skb))
		return 0;
	connection = bpf_sk_storage_get(&connections, sk, NULL, 0);
	if (!connection || !connection->id)
		return 0;
	if (take_apart(skb->head + skb->network_header,
		       skb->len - (u32)(skb->head + skb->network_header - skb->data), &segment,
		       NULL))
		look_at(&segment, SENT, connection->id, connection->peer, connection->base,
			&connection->packet_end, &connection->packet_ack);
	return 0;
}

/* The network header is not set yet; the data begins with it. */
SEC("tp_btf/netif_receive_skb")
int BPF_PROG(netif_receive_skb, struct sk_buff *skb)
{
	struct inbound *inbound;
	struct segment segment;
	struct ends ends = {};

	if (is_loopback(skb) || skb->len - skb->data_len < IP_HEADER + TCP_HEADER)
		return 0;
	if (!take_apart(skb->data, skb->len, &segment, &ends))
		return 0;
	ends.namespace = skb->dev->nd_net.net->ns.inum;
	inbound = bpf_map_lookup_elem(&inbounds, &ends);
	if (!inbound)
		return 0;
	look_at(&segment, RECEIVED, inbound->id, inbound->peer, inbound->base, &inbound->packet_end,
		&inbound->packet_ack);
	return 0;
}

#endif /* LUC_TCP_PACKETS_H */
