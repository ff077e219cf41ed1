//! Planted connections, whose truth is known.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{
    ByteDirection, ConnectionEnd, ConnectionOpener, EndId, MessageRow, SequenceAtStart,
    ThreadIdentity,
};
use rand::{Rng, RngExt};

/// Properties of a planted connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlantedKind {
    /// Ends that lack the initial sequence numbers.
    pub(crate) is_old: [bool; 2],
    /// Whether the server sees another address than the client has.
    pub(crate) is_nat: bool,
}

/// A connection of two hosts: its ends, and the raw number of the first byte of each direction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlantedEnds {
    pub(crate) ends: [ConnectionEnd; 2],
    /// Raw number of offset 0 of each direction, by sender.
    isn: [u32; 2],
    /// Whether each end is older than its trace, and how many bytes of each direction had passed then.
    is_old: [bool; 2],
    passed: [[u64; 2]; 2],
}

fn address(host: u32, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::from(0x0a00_0001 + host)), port)
}

/// A connection from the first host to the second; `ids` are the ends' numbers, `port` is the client's.
pub(crate) fn plant(
    random: &mut impl Rng,
    hosts: [u32; 2],
    ids: [u64; 2],
    port: u16,
    kind: PlantedKind,
) -> PlantedEnds {
    // Some so near the end of 32 bits that they wrap; but numbers of a real kernel are random.
    let isn = [0, 1].map(|_| {
        let near: u32 = random.random_range(0..20_000);
        if random.random_bool(0.9) { random.random() } else { u32::MAX - near }
    });
    // The traces begin at different times, so each end has seen another part.
    let passed = [0, 1].map(|_| [0, 1].map(|_| random.random_range(1..10_000_u64)));
    let raw = |side: usize, sender: usize| isn[sender].wrapping_add(passed[side][sender] as u32);
    let (client, server) = (address(hosts[0], port), address(hosts[1], 8080));
    let seen = if kind.is_nat { address(200, port ^ 0x5555) } else { client };
    let end = |side: usize| {
        let is_old = kind.is_old[side];
        ConnectionEnd {
            host: HostId(hosts[side]),
            connection: ids[side],
            namespace: 1,
            local: if side == 0 { client } else { server }.into(),
            remote: if side == 0 { server } else { seen }.into(),
            peer: None,
            own_isn: (!is_old).then_some(isn[side]),
            peer_isn: (!is_old).then_some(isn[1 - side]),
            at_start: is_old.then(|| SequenceAtStart {
                snd_nxt: raw(side, side),
                rcv_nxt: raw(side, 1 - side),
                copied_seq: raw(side, 1 - side),
            }),
            opener: (!is_old).then_some(if side == 0 {
                ConnectionOpener::This
            } else {
                ConnectionOpener::Peer
            }),
            opened_ns: None,
            closed_ns: None,
        }
    };
    PlantedEnds { ends: [end(0), end(1)], isn, is_old: kind.is_old, passed }
}

impl PlantedEnds {
    pub(crate) fn ids(&self) -> [EndId; 2] {
        let mut ids = [self.ends[0].id(), self.ends[1].id()];
        ids.sort_unstable();
        ids
    }

    /// Returns the origin of an end's offsets in a direction, as an offset from the initial number.
    fn origin(&self, side: usize, sender: usize) -> u64 {
        if self.is_old[side] { self.passed[side][sender] } else { 0 }
    }

    /// Returns the offset from which on both ends are traced.
    pub(crate) fn passed(&self, sender: usize) -> u64 {
        self.origin(0, sender).max(self.origin(1, sender))
    }

    /// Returns the bytes of both directions, with those before the trace. In the trace one direction has `bytes`, the
    /// other a third of them.
    pub(crate) fn total(&self, bytes: u64) -> u64 {
        self.passed(0) + bytes + self.passed(1) + bytes / 3
    }

    /// Returns rows of the same 100 bytes at both ends, in both directions.
    pub(crate) fn whole(&self) -> Vec<MessageRow> {
        let places = [(0, 0), (1, 0), (0, 1), (1, 1)];
        let row = |(side, sender)| self.row(side, sender, self.passed(sender), 100, 1, 0);
        places.into_iter().filter_map(row).collect()
    }

    /// Returns a row of bytes that `sender` sent. `None` before the end's trace began.
    pub(crate) fn row(
        &self,
        side: usize,
        sender: usize,
        first: u64,
        bytes: u64,
        thread: u32,
        at_ns: u64,
    ) -> Option<MessageRow> {
        let end = &self.ends[side];
        Some(MessageRow {
            host: end.host,
            at_ns,
            thread: ThreadIdentity { id: thread, start_ns: 1 },
            process: 1,
            connection: end.connection,
            way: if side == sender { ByteDirection::Sent } else { ByteDirection::Received },
            first_byte: first.checked_sub(self.origin(side, sender))?,
            bytes,
            token: None,
        })
    }

    /// Returns the sender's offset of a byte, from the receiver's.
    pub(crate) fn shift(&self, sender: usize) -> i64 {
        let (of_receiver, of_sender) =
            (self.origin(1 - sender, sender), self.origin(sender, sender));
        of_receiver as i64 - of_sender as i64
    }

    /// Returns the raw number of a direction's first byte.
    pub(crate) fn isn(&self, sender: usize) -> u32 {
        self.isn[sender]
    }
}
