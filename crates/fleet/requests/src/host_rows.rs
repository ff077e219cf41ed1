//! Rows that hosts record, one type for each table.

use std::net::SocketAddr;

use luc_fleet_clocks::HostId;

/// A thread of a host, by the kernel's pid. The kernel reuses pids, so the start belongs to the identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadIdentity {
    pub id: u32,
    /// Time of its creation, CLOCK_MONOTONIC of its host; 0: not known.
    pub start_ns: u64,
}

/// A thread of many hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId {
    pub host: HostId,
    pub thread: ThreadIdentity,
}

/// One end of a connection: a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndId {
    pub host: HostId,
    /// Number of the socket, unique on its host.
    pub connection: u64,
}

/// The end that opened a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConnectionOpener {
    /// This end, by `connect`: it is the client.
    This,
    /// The peer; this end came from `accept`.
    Peer,
}

/// Raw sequence numbers at the start of the trace, of an older connection (`struct tcp_sock`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SequenceAtStart {
    /// The next number that this end sends.
    pub snd_nxt: u32,
    /// The next number that this end expects.
    pub rcv_nxt: u32,
    /// The next number that the program reads; not after `rcv_nxt`.
    pub copied_seq: u32,
}

/// A name of a socket or a file, as a number: equal names have equal numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

/// Address of one end of a connection, as its own host knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EndAddress {
    /// An address and port of the socket's family. An IPv4 address that is mapped into IPv6, as in Java and Go, is the
    /// IPv4 address.
    Internet(SocketAddr),
    /// The name that a unix socket is bound to, or that listened for it. Most that connect have none.
    Unix(Option<NameId>),
    /// A pipe, which goes one way, with the name of a FIFO.
    Pipe(Option<NameId>),
}

impl EndAddress {
    /// Whether both ends of the connection are on one host.
    #[must_use]
    pub fn is_within_host(self) -> bool {
        !matches!(self, Self::Internet(_))
    }
}

impl From<SocketAddr> for EndAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Internet(address)
    }
}

/// One end of a connection, a row of the table `connection`.
///
/// Offsets of messages and packets count from an origin of each direction. Within a host both ends have the same
/// origin. Of TCP it is the initial sequence number. Where that is not known, it is in `at_start`: `snd_nxt` of the
/// bytes that this end sends, `copied_seq` of those that it receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnectionEnd {
    pub host: HostId,
    /// Number of the socket on its host.
    pub connection: u64,
    /// Inode number of its network namespace.
    pub namespace: u64,
    pub local: EndAddress,
    /// The peer's address as this end sees it: NAT shows another one.
    pub remote: EndAddress,
    /// Number of the other end on the same host, of connections within a host.
    pub peer: Option<u64>,
    /// Initial sequence number of the bytes that it sends; `None` if the connection is older than the trace.
    pub own_isn: Option<u32>,
    /// Initial sequence number of the bytes that it receives.
    pub peer_isn: Option<u32>,
    pub at_start: Option<SequenceAtStart>,
    /// The end that opened it, where that was seen.
    pub opener: Option<ConnectionOpener>,
    /// Time at which it was established, where that was seen.
    pub opened_ns: Option<u64>,
    /// Time at which it was closed, where that was seen.
    pub closed_ns: Option<u64>,
}

impl ConnectionEnd {
    #[must_use]
    pub fn id(&self) -> EndId {
        EndId { host: self.host, connection: self.connection }
    }
}

/// Index of a row in the list at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowId(pub(crate) usize);

/// Direction of bytes, seen from an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ByteDirection {
    Sent,
    Received,
}

/// Bytes that a thread sent or received by one call, a row of the table `message`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageRow {
    pub host: HostId,
    /// CLOCK_MONOTONIC of that host. The begin of a call that sent, so that it is before the reception; the end of a
    /// call that received.
    pub at_ns: u64,
    pub thread: ThreadIdentity,
    pub process: u32,
    /// Number of the end on that host.
    pub connection: u64,
    pub way: ByteDirection,
    /// Offset of the first byte from the origin of that direction ([`ConnectionEnd`]).
    pub first_byte: u64,
    /// Number of bytes. The kernel counts a FIN as one received byte.
    pub bytes: u64,
    /// Hash of the bytes that name the request, where the user lets them be looked at.
    pub token: Option<u64>,
}

impl MessageRow {
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
pub struct PacketRow {
    pub host: HostId,
    /// CLOCK_MONOTONIC of that host.
    pub at_ns: u64,
    /// Number of the end on that host.
    pub connection: u64,
    pub way: ByteDirection,
    /// Offset of the first byte from the origin of that direction ([`ConnectionEnd`]).
    pub first_byte: u64,
    /// Number of bytes; 0: it only acknowledges.
    pub bytes: u64,
    /// Offset of the other direction that it acknowledges.
    pub ack: u64,
}

impl PacketRow {
    #[must_use]
    pub fn end(&self) -> EndId {
        EndId { host: self.host, connection: self.connection }
    }
}

/// One interval in which a thread was not on a processor, a row of the table `wait`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadWait {
    pub host: HostId,
    pub thread: ThreadIdentity,
    /// Time at which it left its processor, CLOCK_MONOTONIC.
    pub off_ns: u64,
    /// Time at which it was woken; `None`: it was runnable all along, or that was not seen.
    pub woken_ns: Option<u64>,
    /// Time at which it was on a processor again.
    pub on_ns: u64,
    /// Thread that woke it; `None`: not seen, or an interrupt, which only carries the name of the thread that it
    /// interrupted.
    pub waker: Option<ThreadIdentity>,
    /// Whether a message may have ended it: not a wait for a time, a disk or the like.
    pub may_be_input: bool,
    /// Whether the waker may have handed over work or a result. It has not if the wait was for a lock and the waker is
    /// of another process: an interrupt may carry the name of any thread.
    pub may_be_hand_over: bool,
    /// Processor that it then got; `None`: not known.
    pub processor: Option<u32>,
}

impl ThreadWait {
    #[must_use]
    pub fn thread_id(&self) -> ThreadId {
        ThreadId { host: self.host, thread: self.thread }
    }
}

/// A thread that slept when its trace began or ended, a row of the table `asleep`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SleepingThread {
    pub host: HostId,
    pub thread: ThreadIdentity,
    /// Time at which the recorder looked at it, CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Time at which it left its processor; `None`: not known.
    pub since_ns: Option<u64>,
    /// Number of the end that it waited on; `None`: none, or several.
    pub connection: Option<u64>,
    /// Thread that had the lock that it waited for; `None`: no lock, or the lock does not say.
    pub holder: Option<ThreadIdentity>,
}

impl SleepingThread {
    #[must_use]
    pub fn thread_id(&self) -> ThreadId {
        ThreadId { host: self.host, thread: self.thread }
    }
}
