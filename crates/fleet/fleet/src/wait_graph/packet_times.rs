//! Times at which the bytes of messages left their hosts, or came to their sockets.

use std::collections::HashSet;

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{
    ByteDirection, ConnectionEnd, ConnectionOpener, EndId, MessageRow, PacketRow,
};

/// Maximum number of packets that are looked at for a message's last byte. More overlap only in forged rows.
const MAX_OVERLAPPING_PACKETS: usize = 16;

/// Place of bytes in one direction of an end.
type ByteOrder = (HostId, u64, ByteDirection, u64);

/// Returns the time of the first packet with each message's last byte. 0: no packet tells. Of what a server receives it
/// is the first byte: a server that is late reads the request together with the next one.
pub(crate) fn packet_times(
    ends: &[ConnectionEnd],
    messages: &[MessageRow],
    packets: &[PacketRow],
) -> Vec<u64> {
    let servers = ends.iter().filter(|end| end.opener == Some(ConnectionOpener::Peer));
    let servers: HashSet<EndId> = servers.map(ConnectionEnd::id).collect();
    let order = |at: u32| -> ByteOrder {
        let row = &packets[at as usize];
        (row.host, row.connection, row.way, row.first_byte)
    };
    // There are never more than 2^32 packets in memory.
    let numbers = (0..).take(packets.len());
    let mut sorted: Vec<u32> = numbers.filter(|&at| packets[at as usize].bytes > 0).collect();
    sorted.sort_unstable_by_key(|&at| order(at));
    let time_ns = |message: &MessageRow| {
        let last_byte = message.first_byte.saturating_add(message.bytes.checked_sub(1)?);
        let is_of_server =
            message.way == ByteDirection::Received && servers.contains(&message.end());
        let byte = if is_of_server { message.first_byte } else { last_byte };
        let stream = (message.host, message.connection, message.way);
        let key = (stream.0, stream.1, stream.2, byte);
        let next = sorted.partition_point(|&at| order(at) <= key);
        let before = sorted[..next].iter().rev().take(MAX_OVERLAPPING_PACKETS);
        let before = before.map(|&at| &packets[at as usize]);
        let has_byte = |packet: &&PacketRow| {
            (packet.host, packet.connection, packet.way) == stream
                && byte - packet.first_byte < packet.bytes
        };
        let may_be = |packet: &PacketRow| match message.way {
            ByteDirection::Sent => packet.at_ns >= message.at_ns,
            ByteDirection::Received => packet.at_ns <= message.at_ns,
        };
        let times_ns =
            before.take_while(|packet| (packet.host, packet.connection, packet.way) == stream);
        let times_ns = times_ns.filter(has_byte).filter(|packet| may_be(packet));
        times_ns.map(|packet| packet.at_ns).min()
    };
    messages.iter().map(|message| time_ns(message).unwrap_or(0)).collect()
}
