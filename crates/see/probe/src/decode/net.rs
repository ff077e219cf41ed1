//! Connections, messages and packets.

use std::net::Ipv6Addr;

use luc_events::event_kinds::{ConnectionFamily, MessageDirection, SequenceSource, SocketRole};
use luc_events::tables::{ConnectionMessage, RequestToken, SocketConnection, TcpPacket};
use luc_events::{ConnectionId, Inode, Pid, Tgid};

use crate::ring_records;

pub(crate) fn connection(raw: &ring_records::Connection) -> SocketConnection {
    let (family, local_address) = address(raw.ends.local);
    let (_, remote_address) = address(raw.ends.remote);
    let [initial_sent, initial_received] = raw.initial;
    SocketConnection {
        at_ns: raw.at_ns,
        connection: ConnectionId(raw.connection),
        cookie: raw.cookie,
        namespace: Inode(u64::from(raw.ends.namespace)),
        family,
        local_address,
        local_port: u32::from(raw.ends.local_port),
        remote_address,
        remote_port: u32::from(raw.ends.remote_port),
        side: SocketRole::from_code(raw.side).unwrap_or_default(),
        initial_sent,
        initial_received,
        sequences: SequenceSource::from_code(raw.sequences).unwrap_or_default(),
        opened_ns: raw.opened_ns,
        closed_ns: raw.closed_ns,
        opener: Pid(raw.opener),
        opener_process: Tgid(raw.opener_process),
        retransmits: raw.retransmits,
        peer: ConnectionId::default(),
    }
}

pub(crate) fn local(raw: &ring_records::Local) -> SocketConnection {
    SocketConnection {
        at_ns: raw.at_ns,
        connection: ConnectionId(raw.connection),
        cookie: raw.cookie,
        namespace: Inode(u64::from(raw.namespace)),
        family: ConnectionFamily::from_code(raw.family).unwrap_or_default(),
        local_address: bound_name(&raw.local, raw.local_length),
        remote_address: bound_name(&raw.remote, raw.remote_length),
        side: SocketRole::from_code(raw.side).unwrap_or_default(),
        sequences: SequenceSource::from_code(raw.sequences).unwrap_or_default(),
        opened_ns: raw.opened_ns,
        closed_ns: raw.closed_ns,
        opener: Pid(raw.opener),
        opener_process: Tgid(raw.opener_process),
        peer: ConnectionId(raw.peer),
        ..SocketConnection::default()
    }
}

/// Reads the name of a unix socket: a path, which may end with a zero byte, or an abstract name, which begins with one.
fn bound_name(bytes: &[u8], length: u16) -> String {
    let bytes = &bytes[..usize::from(length).min(bytes.len())];
    match bytes {
        [0, name @ ..] => format!("@{}", String::from_utf8_lossy(name)),
        path => {
            let path = path.split(|&byte| byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(path).into_owned()
        }
    }
}

/// Returns the family of an address, and its text.
pub(crate) fn address(bytes: [u8; 16]) -> (ConnectionFamily, String) {
    let address = Ipv6Addr::from(bytes);
    match address.to_ipv4_mapped() {
        Some(mapped) => (ConnectionFamily::Ipv4, mapped.to_string()),
        None => (ConnectionFamily::Ipv6, address.to_string()),
    }
}

pub(crate) fn message(raw: &ring_records::Message) -> ConnectionMessage {
    ConnectionMessage {
        at_ns: raw.at_ns,
        thread: Pid(raw.thread),
        process: Tgid(raw.process),
        connection: ConnectionId(raw.connection),
        direction: flow(raw.flow),
        first_byte: raw.first_byte,
        bytes: raw.bytes,
    }
}

pub(crate) fn token(raw: &ring_records::Token) -> RequestToken {
    RequestToken {
        at_ns: raw.at_ns,
        thread: Pid(raw.thread),
        process: Tgid(raw.process),
        connection: ConnectionId(raw.connection),
        direction: flow(raw.flow),
        byte: raw.byte,
        token: raw.token,
    }
}

pub(crate) fn packet(raw: &ring_records::Packet) -> TcpPacket {
    TcpPacket {
        at_ns: raw.at_ns,
        connection: ConnectionId(raw.connection),
        direction: flow(raw.flow),
        first_byte: raw.first_byte,
        bytes: u64::from(raw.bytes),
        ack: raw.ack,
    }
}

fn flow(code: u32) -> MessageDirection {
    MessageDirection::from_code(code as u8).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unix_sockets_have_paths_abstract_names_or_none() {
        let name = |bytes: &[u8]| bound_name(bytes, bytes.len() as u16);
        assert_eq!(name(b"/run/a.sock\0"), "/run/a.sock");
        assert_eq!(name(b"/run/a.sock"), "/run/a.sock");
        assert_eq!(name(b"\0bus\0x"), "@bus\0x");
        assert_eq!(name(b""), "");
        assert_eq!(bound_name(b"/run", u16::MAX), "/run");
    }

    #[test]
    fn mapped_addresses_are_those_of_their_packets() {
        let mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3];
        assert_eq!(address(mapped), (ConnectionFamily::Ipv4, "10.1.2.3".to_owned()));
        let mut plain = [0; 16];
        (plain[0], plain[1], plain[15]) = (0xfd, 0x11, 2);
        assert_eq!(address(plain), (ConnectionFamily::Ipv6, "fd11::2".to_owned()));
    }
}
