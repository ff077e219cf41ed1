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

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use luc_fleet_requests::{EndAddress, ThreadIdentity};

    use super::*;

    const HERE: HostId = HostId(0);

    fn end(opener: ConnectionOpener) -> ConnectionEnd {
        let address = EndAddress::Internet(SocketAddr::from((Ipv4Addr::LOCALHOST, 80)));
        ConnectionEnd {
            host: HERE,
            connection: 1,
            namespace: 1,
            local: address,
            remote: address,
            peer: None,
            own_isn: Some(1),
            peer_isn: Some(2),
            at_start: None,
            opener: Some(opener),
            opened_ns: None,
            closed_ns: None,
        }
    }

    fn message(at_ns: u64, way: ByteDirection, first_byte: u64, bytes: u64) -> MessageRow {
        MessageRow {
            host: HERE,
            at_ns,
            thread: ThreadIdentity { id: 7, start_ns: 1 },
            process: 7,
            connection: 1,
            way,
            first_byte,
            bytes,
            token: None,
        }
    }

    fn packet(at_ns: u64, way: ByteDirection, first_byte: u64, bytes: u64) -> PacketRow {
        PacketRow { host: HERE, at_ns, connection: 1, way, first_byte, bytes, ack: 0 }
    }

    #[test]
    fn a_message_moved_with_its_last_byte_and_a_request_with_its_first() {
        let (sent, received) = (ByteDirection::Sent, ByteDirection::Received);
        let packets = [
            packet(20, received, 1, 40),
            packet(50, received, 41, 40),
            // Sent again, and bytes of a later message.
            packet(55, received, 41, 40),
            packet(15, sent, 1, 100),
            packet(60, sent, 101, 100),
        ];
        let messages = [
            message(90, received, 1, 80),
            message(10, sent, 1, 100),
            message(70, sent, 101, 100),
            message(80, received, 500, 1),
            message(80, received, 1, 0),
        ];
        let of = |opener| packet_times(&[end(opener)], &messages, &packets);
        // No packet is before its send.
        assert_eq!(of(ConnectionOpener::This), [50, 15, 0, 0, 0]);
        assert_eq!(of(ConnectionOpener::Peer), [20, 15, 0, 0, 0]);
    }

    #[test]
    fn forged_rows_have_no_time() {
        let (sent, received) = (ByteDirection::Sent, ByteDirection::Received);
        let messages = [message(1, received, u64::MAX, u64::MAX), message(0, sent, 0, u64::MAX)];
        let packets = [packet(0, received, u64::MAX, 1), packet(u64::MAX, sent, 0, u64::MAX)];
        let times = packet_times(&[], &messages, &packets);
        assert_eq!(times, [0, u64::MAX]);
    }
}
