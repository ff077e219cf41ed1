//! What hosts record of their messages, one type for each table.

use std::net::SocketAddr;

use luc_fleet_clocks::HostId;

/// A thread of a host. The kernel uses an id again, so the start belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thread {
    /// Its id (the kernel's pid).
    pub id: u32,
    /// When it was created, CLOCK_MONOTONIC of its host; 0: not known.
    pub start_ns: u64,
}

/// A thread of many hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId {
    pub host: HostId,
    /// Which of that host.
    pub thread: Thread,
}

/// One end of a connection: a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndId {
    /// Where the socket is.
    pub host: HostId,
    /// Its number on that host, of which no other socket has the same.
    pub connection: u64,
}

/// Which end asked for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Opener {
    /// This one, by `connect`: it is the client.
    This,
    /// The peer; this one came from `accept`.
    Peer,
}

/// Raw sequence numbers of a connection that is older than the trace, when the trace starts (`struct tcp_sock`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AtStart {
    /// The next that this end sends.
    pub snd_nxt: u32,
    /// The next that this end expects.
    pub rcv_nxt: u32,
    /// The next that the program reads; not after `rcv_nxt`.
    pub copied_seq: u32,
}

/// A name of a socket or a file, as a number: equal ones have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

/// Where an end of a connection is, as its socket has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// An address and port of the socket's family. An IPv4 address that is mapped into IPv6, as Java and Go have it, is
    /// the IPv4 address.
    Internet(SocketAddr),
    /// The name that a unix socket is bound to, or that listened for it; `None`: it has none, as most that connect.
    Unix(Option<NameId>),
    /// A pipe, which goes one way, and its name if it is a FIFO.
    Pipe(Option<NameId>),
}

impl Address {
    /// Whether both ends of such a connection are on one host.
    #[must_use]
    pub fn is_within_host(self) -> bool {
        !matches!(self, Self::Internet(_))
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Internet(address)
    }
}

/// One end of a connection, a row of the table `connection`.
///
/// Within a host both ends count the bytes of a direction from the same one. Of TCP offsets of messages and packets count from an origin of each direction: the initial sequence number, or, where it is
/// not known, what `at_start` has: `snd_nxt` of what this end sends, `copied_seq` of what it receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct End {
    pub host: HostId,
    /// Its number on that host.
    pub connection: u64,
    /// Its network namespace, the inode's number.
    pub namespace: u64,
    pub local: Address,
    /// The peer's address as this end sees it: NAT shows another.
    pub remote: Address,
    /// The other end's number on the same host, of connections within a host.
    pub peer: Option<u64>,
    /// The initial sequence number of what it sends; `None` if the connection is older than the trace.
    pub own_isn: Option<u32>,
    /// The initial sequence number of what it receives.
    pub peer_isn: Option<u32>,
    /// The numbers at the start of the trace, of an older connection.
    pub at_start: Option<AtStart>,
    /// Who opened it, where that was seen.
    pub opener: Option<Opener>,
    /// When it was established, where that was seen.
    pub opened_ns: Option<u64>,
    /// When it was closed, where that was seen.
    pub closed_ns: Option<u64>,
}

impl End {
    /// Which end it is.
    #[must_use]
    pub fn id(&self) -> EndId {
        EndId { host: self.host, connection: self.connection }
    }
}

/// Which way bytes go, seen from an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Way {
    Sent,
    Received,
}

/// Bytes that a thread sent or received by one call, a row of the table `message`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Message {
    pub host: HostId,
    /// CLOCK_MONOTONIC of that host. Of what was sent the begin of the call, so that it is before the reception; of
    /// what was received its end.
    pub at_ns: u64,
    /// Which thread made the call.
    pub thread: Thread,
    pub process: u32,
    /// The end's number on that host.
    pub connection: u64,
    pub way: Way,
    /// The first byte's offset from the origin of that direction ([`End`]).
    pub first_byte: u64,
    /// How many. The kernel counts a FIN as one byte of what is received.
    pub bytes: u64,
    /// What names the request in the bytes themselves, hashed, where the user lets them be looked at.
    pub token: Option<u64>,
}

impl Message {
    #[must_use]
    pub fn end(&self) -> EndId {
        EndId { host: self.host, connection: self.connection }
    }

    #[must_use]
    pub fn thread_id(&self) -> ThreadId {
        ThreadId { host: self.host, thread: self.thread }
    }
}

/// A packet that a host sent or received, a row of the table `packet`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Packet {
    pub host: HostId,
    /// CLOCK_MONOTONIC of that host.
    pub at_ns: u64,
    /// The end's number on that host.
    pub connection: u64,
    pub way: Way,
    /// The first byte's offset from the origin of that direction ([`End`]).
    pub first_byte: u64,
    /// How many; 0: it only acknowledges.
    pub bytes: u64,
    /// What it acknowledges, an offset of the other direction.
    pub ack: u64,
}

impl Packet {
    #[must_use]
    pub fn end(&self) -> EndId {
        EndId { host: self.host, connection: self.connection }
    }
}

/// One interval in which a thread was not on a processor, a row of the table `wait`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Wait {
    pub host: HostId,
    pub thread: Thread,
    /// When it left its processor, CLOCK_MONOTONIC.
    pub off_ns: u64,
    /// When it was woken; `None`: it was runnable all along, or that was not seen.
    pub woken_ns: Option<u64>,
    /// When it was on a processor again.
    pub on_ns: u64,
    /// Who woke it; `None`: not seen, or an interrupt, which only carries the name of whom it interrupted.
    pub waker: Option<Thread>,
    /// Whether a message may have ended it: not if it was for a time, a disk or the like.
    pub may_be_input: bool,
    /// Whether the waker may have given it something to do, or a result: not if it waited for a lock and the waker is of
    /// another process, as an interrupt may carry the name of any thread.
    pub may_be_hand_over: bool,
    /// On which processor it was then; `None`: not known.
    pub processor: Option<u32>,
}

impl Wait {
    #[must_use]
    pub fn thread_id(&self) -> ThreadId {
        ThreadId { host: self.host, thread: self.thread }
    }
}

/// A thread that slept when its trace began or ended, a row of the table `asleep`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sleeper {
    pub host: HostId,
    pub thread: Thread,
    /// When it was looked at, CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// When it left its processor; `None`: not known.
    pub since_ns: Option<u64>,
    /// The end that it waited on; `None`: on none, or on several.
    pub connection: Option<u64>,
    /// Who had the lock that it waited for; `None`: it waited for no lock, or the lock does not say.
    pub holder: Option<Thread>,
}

impl Sleeper {
    #[must_use]
    pub fn thread_id(&self) -> ThreadId {
        ThreadId { host: self.host, thread: self.thread }
    }
}
