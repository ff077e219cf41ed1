//! Reassembles the bytes of connections from packets, and finds names in them.

use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use crate::named::Named;

/// Bytes before a name.
pub(super) const MARK: &[u8] = b"planted=";
/// Number of digits in a name.
const DIGITS: usize = 8;
const TCP: u8 = 6;
const SYN: u8 = 2;

#[derive(Debug, PartialEq, Eq)]
struct Segment<'p> {
    from: SocketAddrV4,
    to: SocketAddrV4,
    sequence: u32,
    is_first: bool,
    bytes: &'p [u8],
}

/// The directions of all connections whose beginning was seen.
#[derive(Debug, Default)]
pub(super) struct Streams {
    of_ends: HashMap<(SocketAddrV4, SocketAddrV4), Stream>,
    pub(super) named: Vec<Named>,
}

/// A direction of a connection.
#[derive(Debug)]
struct Stream {
    /// Sequence number of its first byte.
    first: u32,
    /// Number of bytes that were searched.
    seen: u32,
    /// Last of these bytes, which may be the begin of a name.
    tail: Vec<u8>,
    /// Bytes after a gap, by their offset.
    later: BTreeMap<u32, Vec<u8>>,
}

impl Streams {
    /// Searches an IP packet. The same packet may come several times.
    pub(super) fn packet(&mut self, packet: &[u8]) {
        let Some(segment) = segment(packet) else {
            return;
        };
        let ends = (segment.from, segment.to);
        if segment.is_first {
            let first = segment.sequence.wrapping_add(1);
            let known = self.of_ends.get(&ends);
            // The same packet comes in and goes out.
            if known.is_none_or(|stream| stream.first != first) {
                self.of_ends.insert(ends, Stream::new(first));
            }
            return;
        }
        if let Some(stream) = self.of_ends.get_mut(&ends) {
            let at = segment.sequence.wrapping_sub(stream.first);
            stream.add(at, segment.bytes, |name, first_byte| {
                self.named.push(Named {
                    name,
                    from: SocketAddr::V4(ends.0),
                    to: SocketAddr::V4(ends.1),
                    first_byte,
                });
            });
        }
    }

    /// Number of directions with bytes after a gap, for which packets were missed.
    pub(super) fn gaps(&self) -> usize {
        let streams = self.of_ends.values();
        streams.filter(|stream| !stream.later.is_empty()).count()
    }
}

impl Stream {
    fn new(first: u32) -> Self {
        Self { first, seen: 0, tail: Vec::new(), later: BTreeMap::new() }
    }

    fn add(&mut self, at: u32, bytes: &[u8], mut found: impl FnMut(u64, u64)) {
        // A keep-alive's byte is before the first.
        if bytes.is_empty() || at > u32::MAX / 2 {
            return;
        }
        let known = self.later.get(&at);
        if known.is_none_or(|known| known.len() < bytes.len()) {
            self.later.insert(at, bytes.to_vec());
        }
        while let Some(entry) = self.later.first_entry() {
            if *entry.key() > self.seen {
                return;
            }
            let (at, bytes) = entry.remove_entry();
            let fresh = bytes.get((self.seen - at) as usize..).unwrap_or_default();
            self.look(fresh, &mut found);
        }
    }

    /// Searches the next bytes.
    fn look(&mut self, bytes: &[u8], found: &mut impl FnMut(u64, u64)) {
        let begin = self.seen - self.tail.len() as u32;
        self.tail.extend_from_slice(bytes);
        self.seen += bytes.len() as u32;
        let length = MARK.len() + DIGITS;
        for (place, window) in self.tail.windows(length).enumerate() {
            let digits = window.strip_prefix(MARK);
            let name = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
            if let Some(name) = name {
                found(name, u64::from(begin) + place as u64);
            }
        }
        let done = self.tail.len().saturating_sub(length - 1);
        self.tail.drain(..done);
    }
}

/// Parses the segment in an IP packet.
fn segment(packet: &[u8]) -> Option<Segment<'_>> {
    let word = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
    let address = |at: usize| {
        let bytes: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
        Some(Ipv4Addr::from(bytes))
    };
    let version = packet.first()?;
    if version >> 4 != 4 || *packet.get(9)? != TCP {
        return None;
    }
    let tcp = usize::from(version & 15) * 4;
    let end = usize::from(word(2)?).min(packet.len());
    let sequence: [u8; 4] = packet.get(tcp + 4..tcp + 8)?.try_into().ok()?;
    let data = tcp + usize::from(packet.get(tcp + 12)? >> 4) * 4;
    Some(Segment {
        from: SocketAddrV4::new(address(12)?, word(tcp)?),
        to: SocketAddrV4::new(address(16)?, word(tcp + 2)?),
        sequence: u32::from_be_bytes(sequence),
        is_first: packet.get(tcp + 13)? & SYN != 0,
        bytes: packet.get(data..end)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: u32 = u32::MAX - 20;

    fn packet(sequence: u32, flags: u8, text: &str) -> Vec<u8> {
        let length = 40 + text.len() as u16;
        let mut packet = vec![0x45, 0];
        packet.extend(length.to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, TCP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend([0, 7, 0, 8]);
        packet.extend(sequence.to_be_bytes());
        packet.extend([0, 0, 0, 0, 5 << 4, flags, 0, 0, 0, 0, 0, 0]);
        packet.extend(text.as_bytes());
        // Padding that a link adds to short packets.
        packet.extend([0, 0]);
        packet
    }

    fn streams(packets: &[Vec<u8>]) -> Streams {
        let mut streams = Streams::default();
        for packet in packets {
            streams.packet(packet);
        }
        streams
    }

    fn places(streams: &Streams) -> Vec<(u64, u64)> {
        let named = streams.named.iter();
        named.map(|one| (one.name, one.first_byte)).collect()
    }

    #[test]
    fn names_are_found_once_in_any_order_of_packets() {
        let at = |place: u32| FIRST.wrapping_add(1 + place);
        let begin = packet(FIRST, SYN, "");
        let parts = [
            packet(at(0), 16, "GET /x?plan"),
            packet(at(11), 16, "ted=000000"),
            packet(at(21), 16, "12 HTTP planted=x planted=00000013"),
        ];
        let expected = [(12, 7), (13, 39)];
        let [a, b, c] = &parts;
        for order in [[a, b, c], [c, a, b], [b, c, a]] {
            let mut packets = vec![begin.clone(), begin.clone()];
            packets.extend(order.into_iter().cloned());
            packets.extend(order.into_iter().cloned());
            let streams = streams(&packets);
            assert_eq!(places(&streams), expected);
            assert_eq!(streams.gaps(), 0);
        }
        assert_eq!(streams(&[begin, a.clone(), c.clone()]).gaps(), 1);
    }

    #[test]
    fn what_is_no_segment_of_a_known_connection_is_passed_over() {
        let lone = packet(5, 16, "planted=00000012");
        assert!(streams(std::slice::from_ref(&lone)).named.is_empty());
        for length in 0..lone.len() {
            streams(&[lone[..length].to_vec()]);
        }
        let mut other = lone;
        other[9] = 17;
        assert_eq!(segment(&other), None);
    }
}
