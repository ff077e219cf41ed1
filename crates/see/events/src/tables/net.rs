//! What the network carried: connections, messages, packets; and the host's clocks, by which hosts are compared.

use super::table;
use crate::codes::{Family, Flow, Sequences, Side};
use crate::{Cgroup, ConnectionId, Inode, Pid, Tgid};

table! {
    /// One end of a connection that was established: a socket of TCP, one of a pair of unix sockets, or an end of a pipe.
    /// A connection within one host has two rows: of TCP with the same addresses and initial sequence numbers, exchanged,
    /// of unix sockets and pipes with the numbers of each other.
    ///
    /// The first row is taken when it is first seen, the last one when its socket is destroyed. TCP has a row when the
    /// program closes the socket. What a process has open when the trace ends has a row then. The last row counts.
    ///
    /// The pair of initial sequence numbers names a connection on both of its hosts, because address translation does
    /// not change them.
    ///
    /// The address of a unix socket is the name that it was bound to: a path as the program gave it, or `@` and an
    /// abstract name; empty: it has none. One that was accepted has the name of the one that listened. Its ports and
    /// initial sequence numbers are 0. Of a FIFO both addresses are its name, without its folder.
    pub struct Connection in "connection" by at_ns {
        /// When the row was taken.
        pub at_ns: u64,
        /// The connection's number within this trace.
        pub connection: ConnectionId,
        /// The kernel's own number of the socket, as `ss -e` shows it (in hexadecimal, `sk`); of a pipe its inode; 0: not
        /// known.
        pub cookie: u64,
        /// Its network namespace: the inode number of `/proc/PID/ns/net`.
        pub namespace: Inode,
        /// What its packets are, whatever the family of the socket.
        pub family: Family,
        /// This end's address.
        pub local_address: String,
        /// This end's port.
        pub local_port: u32,
        /// The other end's address, as this end sees it.
        pub remote_address: String,
        /// The other end's port, as this end sees it.
        pub remote_port: u32,
        /// Whether this end connected or was connected to.
        pub side: Side,
        /// The initial sequence number (that of the SYN) of what this end sends; 0 if `sequences` is unknown.
        pub initial_sent: u32,
        /// The initial sequence number of what this end receives; 0 if `sequences` is unknown.
        pub initial_received: u32,
        /// How the initial sequence numbers are known; of unix sockets, which have none, from where bytes are counted.
        pub sequences: Sequences,
        /// When it was established, of unix sockets when it was first used; 0: before the trace.
        pub opened_ns: u64,
        /// When it was closed (TCP_CLOSE), of unix sockets when the other end was told so; 0: it had not been.
        pub closed_ns: u64,
        /// The thread that connected; at other connections the first recorded thread that sent or received on it; of
        /// pipes nobody.
        pub opener: Pid,
        /// Its process; of a connection that is older than the trace a process that has it open.
        pub opener_process: Tgid,
        /// Segments that it has sent again, since it was opened.
        pub retransmits: u32,
        /// The number of the other end, where that is on the same host for sure: of unix sockets and pipes; 0: not known, as of TCP
        /// and in traces of schema versions before 7.
        pub peer: ConnectionId,
    }
}

table! {
    /// One send or receive of one recorded thread on one connection; a call that moved nothing (EAGAIN) and one that
    /// only looked (MSG_PEEK) have no row, nor has a send that has not ended when the trace does. A call can have several
    /// rows: a receive of what came in several pieces, which the kernel has not joined, and a send while other threads
    /// send on the connection.
    ///
    /// Bytes are counted from the first of their direction, as 0: sequence number `first_byte` + 1 + the direction's
    /// initial sequence number, modulo 2^32, without the end of wrapping. Of a connection whose initial sequence
    /// numbers are unknown `first_byte` begins with the sequence number itself. Of unix sockets and pipes that are older than the
    /// trace bytes are counted from the first that was unread when it began; those that were in use just then have no
    /// rows until all had been read that was sent. Who sent a byte is told by the row of the other end, direction
    /// `sent`, whose range has that byte.
    pub struct Message in "message" by at_ns {
        /// Sent: when its first byte was handed to TCP, which is before any packet with it; of unix sockets when its first
        /// bytes were in the other one's queue, of pipes when the call began. Received: when the last of its bytes had been copied to the thread.
        pub at_ns: u64,
        /// The thread.
        pub thread: Pid,
        /// Its process.
        pub process: Tgid,
        /// The connection.
        pub connection: ConnectionId,
        /// Sent or received.
        pub direction: Flow,
        /// How many bytes of this direction came before it.
        pub first_byte: u64,
        /// How many bytes it has.
        pub bytes: u64,
    }
}

table! {
    /// The name of a request in a message's bytes, with `luc record --fleet --tokens`: of HTTP/1 in the clear, in the
    /// first 512 bytes of a send or a receive. It is the trace id of a `traceparent` header (W3C Trace Context), else an
    /// `X-Request-Id`. Of the name a hash is here (FNV-1a of its bytes, 64 bits), and nothing else of the message.
    pub struct Token in "token" by at_ns {
        /// When it was seen.
        pub at_ns: u64,
        /// The thread that sends or receives.
        pub thread: Pid,
        /// Its process.
        pub process: Tgid,
        /// The connection.
        pub connection: ConnectionId,
        /// Sent or received.
        pub direction: Flow,
        /// A byte of the message, counted as `message`'s `first_byte`.
        pub byte: u64,
        /// The hash.
        pub token: u64,
    }
}

table! {
    /// A TCP packet at a network device other than the loopback device, of whoever's connection; few of many, which
    /// both ends choose alike where they choose from the same packets. A packet here can be several on the wire, and the
    /// reverse: devices and the kernel cut and join them.
    ///
    /// Only what is new is in a row: bytes that no packet before had in this direction, and an acknowledgment beyond
    /// all before. So a row of `sent` has the first transmission of its bytes, and one of `received` their first
    /// arrival.
    pub struct Packet in "packet" by at_ns {
        /// Sent: when it was handed to the device's driver. Received: when it came from there.
        pub at_ns: u64,
        /// The connection.
        pub connection: ConnectionId,
        /// Sent or received.
        pub direction: Flow,
        /// How many bytes of this direction came before it.
        pub first_byte: u64,
        /// How many bytes it has; 0: no new ones.
        pub bytes: u64,
        /// How many bytes of the other direction it is the first to acknowledge all of (the end of a connection, FIN,
        /// counts one); 0: nothing new.
        pub ack: u64,
    }
}

table! {
    /// How long requests on TCP connections took, by service and peer over one interval, in the summary mode: one row
    /// per step of times. The ends of a connection take turns. Where a service was connected to, an exchange lasts from
    /// the packet that brought the request until the first byte of the answer is sent; where a program has connected,
    /// from the first byte sent until the packet that brought the answer. A packet is the last one before a thread
    /// receives: where a request takes several, the exchange begins with a later one. Requests that follow one another
    /// without an answer between them are one. An exchange counts in the interval in which it ended.
    pub struct ExchangeSum in "exchange_sum" by at_ns {
        /// The end of the interval.
        pub at_ns: u64,
        /// Its length.
        pub interval_ns: u64,
        /// The cgroup of the thread that was the first to send or receive on the connection.
        pub cgroup: Cgroup,
        /// The name of its process (that of the main thread).
        pub program: String,
        /// Whether its end connected or was connected to.
        pub side: Side,
        /// The network namespace: the inode number of `/proc/PID/ns/net`.
        pub namespace: Inode,
        /// The service's port: this end's where it was connected to, the other end's where it has connected.
        pub port: u32,
        /// The other end's address; empty: those of all peers that are not counted apart.
        pub peer: String,
        /// Durations from here on, up to the next step. Steps are 1,024 ns long up to 8,192 ns, then a quarter of a power
        /// of two; the last has all from 120 s on.
        pub at_least_ns: u64,
        /// How many.
        pub count: u64,
        /// The sum of their durations.
        pub total_ns: u64,
    }
}

table! {
    /// The host's clocks, ten times a second. They are read one after the other; the reading is as narrow as the best of
    /// a few attempts.
    pub struct ClockSample in "clock_sample" by at_ns {
        /// CLOCK_MONOTONIC, read first.
        pub at_ns: u64,
        /// How long later it was when CLOCK_MONOTONIC_RAW had been read.
        pub width_ns: u64,
        /// CLOCK_MONOTONIC_RAW, which nothing adjusts, read second.
        pub raw_ns: u64,
        /// CLOCK_BOOTTIME, read after the width was taken.
        pub boottime_ns: u64,
        /// CLOCK_REALTIME, read last.
        pub realtime_ns: u64,
        /// The rate at which `adjtimex` has CLOCK_MONOTONIC run, in parts per billion of its nominal rate, less that:
        /// `freq` and `tick` together.
        pub rate_ppb: i64,
        /// What `adjtimex` still slews by, in nanoseconds (`offset`).
        pub slew_ns: i64,
    }
}
