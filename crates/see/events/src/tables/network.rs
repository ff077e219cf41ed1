//! The network's traffic: connections, messages, packets. Also the host's clocks, by which hosts are compared.

use super::table;
use crate::event_kinds::{ConnectionFamily, MessageDirection, SequenceSource, SocketRole};
use crate::{Cgroup, ConnectionId, Inode, Pid, Tgid};

table! {
    /// An end of an established connection: a socket of TCP, one of a pair of unix sockets, or an end of a pipe. A
    /// connection within a host has two rows. Those of TCP have the same addresses and initial sequence numbers,
    /// exchanged. Those of unix sockets and pipes have the numbers of each other.
    ///
    /// The first row is taken when the end is first seen, the last one when its socket is destroyed. TCP also has a row
    /// when the program closes the socket. Ends that a process has open when the trace ends have a row then. The last
    /// row counts.
    ///
    /// The pair of initial sequence numbers identifies a connection on both of its hosts: address translation does
    /// not change them.
    ///
    /// The address of a unix socket is the name that it was bound to: a path as the program gave it, or `@` and an
    /// abstract name; empty without a name. An accepted socket has the name of the listening one. Ports and initial
    /// sequence numbers of unix sockets are 0. Both addresses of a FIFO are its name, without its folder.
    pub struct SocketConnection in "connection" by at_ns {
        /// Time when the row was taken.
        pub at_ns: u64,
        /// Number of the connection within this trace.
        pub connection: ConnectionId,
        /// The kernel's number of the socket, as `ss -e` shows it (in hexadecimal, `sk`), or the inode of a pipe; 0 if
        /// unknown.
        pub cookie: u64,
        /// Network namespace: the inode number of `/proc/PID/ns/net`.
        pub namespace: Inode,
        /// Family of its packets, which may differ from that of the socket.
        pub family: ConnectionFamily,
        /// Address of this end.
        pub local_address: String,
        /// Port of this end.
        pub local_port: u32,
        /// Address of the other end, as this end sees it.
        pub remote_address: String,
        /// Port of the other end, as this end sees it.
        pub remote_port: u32,
        /// Whether this end connected or was connected to.
        pub side: SocketRole,
        /// Initial sequence number (that of the SYN) of the sent bytes; 0 if `sequences` is unknown.
        pub initial_sent: u32,
        /// Initial sequence number of the received bytes; 0 if `sequences` is unknown.
        pub initial_received: u32,
        /// Source of the initial sequence numbers. Unix sockets have none: here it is the origin of their byte counts.
        pub sequences: SequenceSource,
        /// Time when it was established, or first used for unix sockets; 0 before the trace.
        pub opened_ns: u64,
        /// Time when it was closed (TCP_CLOSE), for unix sockets when the other end was informed; 0 until then.
        pub closed_ns: u64,
        /// Thread that connected. If that is not this end, the first recorded thread that sent or received on it; 0 for
        /// pipes.
        pub opener: Pid,
        /// Process of that thread. For a connection older than the trace, a process that has it open.
        pub opener_process: Tgid,
        /// Number of segments sent again since it was opened.
        pub retransmits: u32,
        /// Number of the other end, if that is certainly on the same host: unix sockets and pipes. 0 if unknown, as for
        /// TCP and in traces of schema versions before 7.
        pub peer: ConnectionId,
    }
}

table! {
    /// A send or a receive of a recorded thread on a connection. A call that moved nothing (EAGAIN) or only looked
    /// (MSG_PEEK) has no row. Nor has a send that outlasts the trace. A call can have several rows: a receive has one
    /// for each piece, if the kernel has not joined the pieces. A send can have several while other threads send on
    /// the connection.
    ///
    /// Bytes are counted from the first of their direction, which is 0. The sequence number of the first byte is
    /// `first_byte` + 1 + the direction's initial sequence number, modulo 2^32. `first_byte` itself does not wrap. If
    /// a connection's initial sequence numbers are unknown, the first row's `first_byte` is the sequence number of
    /// its first byte. For unix sockets and pipes older than the trace, bytes are counted from the first unread one
    /// at its beginning. Those in use at that moment have no rows until all sent bytes have been read. The sender of
    /// a byte is in the other end's row of direction `sent` whose range has that byte.
    pub struct ConnectionMessage in "message" by at_ns {
        /// Sent: time when its first byte was handed to TCP, before any packet with it; for unix sockets when its first
        /// bytes were in the other end's queue, for pipes when the call began. Received: time when the last of its
        /// bytes had been copied to the thread.
        pub at_ns: u64,
        /// Thread that sent or received.
        pub thread: Pid,
        /// Process of the thread.
        pub process: Tgid,
        /// Connection of the message.
        pub connection: ConnectionId,
        /// Direction: sent or received.
        pub direction: MessageDirection,
        /// Number of bytes of this direction before it.
        pub first_byte: u64,
        /// Number of bytes of the message.
        pub bytes: u64,
    }
}

table! {
    /// Name of a request in a message's bytes, with `luc record --fleet --tokens`: of HTTP/1 without encryption, in the
    /// first 512 bytes of a send or a receive. It is the trace id of a `traceparent` header (W3C Trace Context), else
    /// an `X-Request-Id`. The row has a hash of the name (FNV-1a of its bytes, 64 bits), and nothing else of the
    /// message.
    pub struct RequestToken in "token" by at_ns {
        /// Time when it was seen.
        pub at_ns: u64,
        /// Thread that sends or receives.
        pub thread: Pid,
        /// Process of the thread.
        pub process: Tgid,
        /// Connection of the message.
        pub connection: ConnectionId,
        /// Direction: sent or received.
        pub direction: MessageDirection,
        /// A byte of the message, counted as in `first_byte` of `message`.
        pub byte: u64,
        /// Hash of the name.
        pub token: u64,
    }
}

table! {
    /// A TCP packet at a network device other than the loopback device, of any connection. Rows are a small sample of
    /// packets; both ends choose alike if they choose from the same packets. A packet here can be several on the wire,
    /// and the reverse: devices and the kernel split and join them.
    ///
    /// A row has only new content: bytes that no packet before had in this direction, and an acknowledgment beyond all
    /// before. So a row of `sent` is the first transmission of its bytes, and one of `received` their first arrival.
    pub struct TcpPacket in "packet" by at_ns {
        /// Sent: time when it was handed to the device's driver. Received: time when it came from there.
        pub at_ns: u64,
        /// Connection of the packet.
        pub connection: ConnectionId,
        /// Direction: sent or received.
        pub direction: MessageDirection,
        /// Number of bytes of this direction before it.
        pub first_byte: u64,
        /// Number of new bytes.
        pub bytes: u64,
        /// Number of bytes of the other direction acknowledged so far; the end of a connection (FIN) counts one. 0 if
        /// an earlier packet acknowledged as many.
        pub ack: u64,
    }
}

table! {
    /// Times of requests on TCP connections in the summary mode, by service and peer over an interval: a row per step
    /// of times. The ends of a connection take turns. For a service that was connected to, an exchange begins with
    /// the packet that brought the request. It ends when the first byte of the answer is sent. For a program that
    /// connected, it lasts from the first byte sent until the packet that brought the answer. The packet is the last
    /// one before a thread receives: if a request takes several packets, the exchange begins with a later one.
    /// Requests that follow one another without an answer between them are one. An exchange counts in the interval in
    /// which it ended.
    pub struct ExchangeSum in "exchange_sum" by at_ns {
        /// End of the interval.
        pub at_ns: u64,
        /// Length of the interval.
        pub interval_ns: u64,
        /// Cgroup of the first thread to send or receive on the connection.
        pub cgroup: Cgroup,
        /// Name of the thread's process (that of the main thread).
        pub program: String,
        /// Whether the program's end connected or was connected to.
        pub side: SocketRole,
        /// Network namespace: the inode number of `/proc/PID/ns/net`.
        pub namespace: Inode,
        /// Port of the service: this end's if it was connected to, the other end's if it connected.
        pub port: u32,
        /// Address of the other end; empty for all peers that are not counted apart.
        pub peer: String,
        /// Shortest duration of the step. Steps are 1,024 ns long up to 8,192 ns, then a quarter of a power of two. The
        /// last step has all durations from 120 s on.
        pub at_least_ns: u64,
        /// Number of exchanges.
        pub count: u64,
        /// Sum of their durations.
        pub total_ns: u64,
    }
}

table! {
    /// The host's clocks, ten times a second. They are read one after the other; the row is the narrowest of a few
    /// attempts.
    pub struct ClockSample in "clock_sample" by at_ns {
        /// CLOCK_MONOTONIC, read first.
        pub at_ns: u64,
        /// Time from reading CLOCK_MONOTONIC until CLOCK_MONOTONIC_RAW had been read.
        pub width_ns: u64,
        /// CLOCK_MONOTONIC_RAW, which nothing adjusts, read second.
        pub raw_ns: u64,
        /// CLOCK_BOOTTIME, read after the width was taken.
        pub boottime_ns: u64,
        /// CLOCK_REALTIME, read last.
        pub realtime_ns: u64,
        /// Rate of CLOCK_MONOTONIC by `adjtimex`, in parts per billion above its nominal rate: `freq` and `tick`
        /// together.
        pub rate_ppb: i64,
        /// Time that `adjtimex` still has to slew, in nanoseconds (`offset`).
        pub slew_ns: i64,
    }
}
