/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A network that loses packets, and one that translates addresses, for tc. */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

struct __sk_buff;

static u32 (*random_number)(void) = (void *)7;
static long (*store)(struct __sk_buff *, u32, const void *, u32, u64) = (void *)9;
static long (*replace_ip_sum)(struct __sk_buff *, u32, u64, u64, u64) = (void *)10;
static long (*replace_tcp_sum)(struct __sk_buff *, u32, u64, u64, u64) = (void *)11;
static long (*load)(const struct __sk_buff *, u32, void *, u32) = (void *)26;

#define SECTION(name) __attribute__((section(name), used))
#define PASS 0
#define DROP 2
/* With the size of what is replaced: it is in the pseudo header, too. */
#define IN_PSEUDO_HEADER 0x10

/* Offsets in an Ethernet frame with IPv4 without options. */
#define ETHER_TYPE 12
#define IP_SUM (14 + 10)
#define IP_FROM (14 + 12)
#define IP_TO (14 + 16)
#define TCP_FROM (14 + 20)
#define TCP_TO (14 + 22)
#define TCP_SUM (14 + 20 + 16)

#define IPV4 __builtin_bswap16(0x0800)
#define INNER __builtin_bswap32(0x0a4d0001) /* 10.77.0.1 */
#define OUTER __builtin_bswap32(0x0a4d0032) /* 10.77.0.50 */
#define SERVICE __builtin_bswap16(7001)
#define REAL __builtin_bswap16(7000)

/* One of a hundred. */
SECTION("tc_lossy") int lossy(struct __sk_buff *packet)
{
	return random_number() % 100 ? PASS : DROP;
}

SECTION("tc_lost") int lost(struct __sk_buff *packet)
{
	return DROP;
}

static inline __attribute__((always_inline)) int translate(struct __sk_buff *packet, u32 address_at,
							   u32 from, u32 to, u32 port_at,
							   u16 from_port, u16 to_port)
{
	u16 type = 0, port = 0;
	u32 address = 0;

	if (load(packet, ETHER_TYPE, &type, 2) || type != IPV4 ||
	    load(packet, address_at, &address, 4) || address != from ||
	    load(packet, port_at, &port, 2) || port != from_port)
		return PASS;
	replace_tcp_sum(packet, TCP_SUM, from, to, IN_PSEUDO_HEADER | 4);
	replace_ip_sum(packet, IP_SUM, from, to, 4);
	store(packet, address_at, &to, 4, 0);
	replace_tcp_sum(packet, TCP_SUM, from_port, to_port, 2);
	store(packet, port_at, &to_port, 2, 0);
	return PASS;
}

SECTION("tc_outward") int outward(struct __sk_buff *packet)
{
	return translate(packet, IP_FROM, INNER, OUTER, TCP_TO, SERVICE, REAL);
}

SECTION("tc_inward") int inward(struct __sk_buff *packet)
{
	return translate(packet, IP_TO, OUTER, INNER, TCP_FROM, REAL, SERVICE);
}

char _license[] SECTION("license") = "Dual BSD/GPL";
