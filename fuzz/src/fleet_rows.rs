//! Rows of many hosts made of any bytes.

use std::net::SocketAddr;

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{
    EndAddress, SequenceAtStart, Connections, ConnectionEnd, NumberedForest, MessageRow, MatchedMessages, NameId, ConnectionOpener, PacketRow,
    Requests, ThreadIdentity, ThreadWait, FleetWaits, ByteDirection, clock_points,
};

/// Takes numbers off the input; 0 when it is at its end.
struct Bytes<'d>(&'d [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    /// Small most of the time, so that rows meet; sometimes any.
    fn number(&mut self) -> u64 {
        match self.byte() {
            255 => (0..8).fold(0, |number, _| number << 8 | u64::from(self.byte())),
            254 => u64::MAX - u64::from(self.byte()),
            253 => (1 << 32) - 64 + u64::from(self.byte()),
            small => u64::from(small),
        }
    }

    fn optional(&mut self) -> Option<u64> {
        (self.byte() & 1 == 1).then(|| self.number())
    }

    fn host(&mut self) -> HostId {
        HostId(u32::from(self.byte() % 3))
    }

    fn thread(&mut self) -> ThreadIdentity {
        ThreadIdentity { id: u32::from(self.byte() % 5), start_ns: 0 }
    }

    fn way(&mut self) -> ByteDirection {
        if self.byte() & 1 == 0 { ByteDirection::Sent } else { ByteDirection::Received }
    }

    fn address(&mut self) -> EndAddress {
        let kind = self.byte();
        let number = self.byte() % 3;
        let name = (number > 0).then_some(NameId(u32::from(number)));
        match kind % 6 {
            4 => EndAddress::Unix(name),
            5 => EndAddress::Pipe(name),
            last => SocketAddr::from(([127, 0, 0, last % 3], u16::from(number))).into(),
        }
    }
}

#[derive(Default)]
struct Rows {
    ends: Vec<ConnectionEnd>,
    messages: Vec<MessageRow>,
    packets: Vec<PacketRow>,
    waits: Vec<ThreadWait>,
}

impl Rows {
    fn of(data: &[u8]) -> Self {
        let (mut rows, mut bytes) = (Self::default(), Bytes(data));
        while !bytes.0.is_empty() {
            match bytes.byte() % 5 {
                0 => {
                    let end = rows.end(&mut bytes);
                    rows.ends.push(end);
                }
                1 => rows.packets.push(PacketRow {
                    host: bytes.host(),
                    at_ns: bytes.number(),
                    connection: u64::from(bytes.byte() % 4),
                    way: bytes.way(),
                    first_byte: bytes.number(),
                    bytes: bytes.number(),
                    ack: bytes.number(),
                }),
                2 => rows.waits.push(ThreadWait {
                    host: bytes.host(),
                    thread: bytes.thread(),
                    off_ns: bytes.number(),
                    woken_ns: bytes.optional(),
                    on_ns: bytes.number(),
                    waker: (bytes.byte() & 1 == 1).then(|| bytes.thread()),
                    may_be_input: bytes.byte() & 1 == 0,
                    may_be_hand_over: bytes.byte() & 1 == 0,
                    processor: Some(bytes.byte() & 3).filter(|at| *at < 3).map(u32::from),
                }),
                _ => rows.messages.push(MessageRow {
                    host: bytes.host(),
                    at_ns: bytes.number(),
                    thread: bytes.thread(),
                    process: u32::from(bytes.byte() % 2),
                    connection: u64::from(bytes.byte() % 4),
                    way: bytes.way(),
                    first_byte: bytes.number(),
                    bytes: bytes.number(),
                    token: bytes.optional(),
                }),
            }
        }
        rows
    }

    fn end(&self, bytes: &mut Bytes<'_>) -> ConnectionEnd {
        let start = bytes.optional().map(|number| number as u32);
        let opener = match bytes.byte() % 3 {
            0 => None,
            1 => Some(ConnectionOpener::This),
            _ => Some(ConnectionOpener::Peer),
        };
        let new = ConnectionEnd {
            host: bytes.host(),
            connection: u64::from(bytes.byte() % 4),
            namespace: u64::from(bytes.byte() % 2),
            local: bytes.address(),
            remote: bytes.address(),
            peer: bytes.optional(),
            own_isn: bytes.optional().map(|number| number as u32),
            peer_isn: bytes.optional().map(|number| number as u32),
            at_start: start.map(|number| SequenceAtStart {
                snd_nxt: number,
                rcv_nxt: number.wrapping_add(3),
                copied_seq: number,
            }),
            opener,
            opened_ns: bytes.optional(),
            closed_ns: bytes.optional(),
        };
        // The peer of the last one, or any.
        match self.ends.last().filter(|_| bytes.byte() & 1 == 1) {
            Some(last) => ConnectionEnd {
                local: last.remote,
                remote: last.local,
                own_isn: last.peer_isn,
                peer_isn: last.own_isn,
                ..new
            },
            None => new,
        }
    }
}

/// Checks that each result follows from the rows, whatever they are. An edge has both its rows, and a cause was there
/// before its call.
pub fn fleet(data: &[u8]) {
    let rows = Rows::of(data);
    let connections = Connections::pair(&rows.ends, &rows.messages, &rows.packets);
    let found = MatchedMessages::matched(&connections, &rows.messages);
    for edge in &found.edges {
        let has = |end, way, at_ns, thread| {
            let mut all = rows.messages.iter();
            all.any(|row| {
                row.end() == end && row.way == way && row.at_ns == at_ns && row.thread == thread
            })
        };
        assert!(has(edge.from, ByteDirection::Sent, edge.sent.at_ns, edge.sent.thread));
        assert!(has(edge.to, ByteDirection::Received, edge.received.at_ns, edge.received.thread));
        assert!(edge.bytes > 0);
    }
    // An error names a time that is out of range.
    let _ = clock_points(&connections, &rows.packets, |_, at_ns| (at_ns, 0));
    let Ok(waits) = FleetWaits::of(&rows.waits) else {
        return;
    };
    let requests =
        Requests::find(&rows.ends, &connections, &rows.messages, &waits, |host| host.0 != 2);
    for outgoing in &requests.outgoing {
        if let Some(cause) = outgoing.cause {
            let cause = &requests.incoming[cause.request.0].exchange;
            assert!(cause.asked.host == outgoing.exchange.asked.host);
            assert!(cause.asked.at_ns <= outgoing.exchange.asked.at_ns);
        }
    }
    // Forged causes may be a cycle.
    let _ = requests.parents().and_then(|parents| NumberedForest::new(&parents));
}
