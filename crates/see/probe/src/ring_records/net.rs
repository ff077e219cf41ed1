//! Layouts of the network's records.

use super::{COMM, LATENCIES, NAME, Plain};

plain! {
    /// Addresses of a connection's ends.
    struct Ends = "ends" {
        namespace: u32,
        local_port: u16,
        remote_port: u16,
        local: [u8; 16],
        remote: [u8; 16],
    }

    /// An end of a connection, when it is first seen or when it has ended.
    struct Connection = "record_connection" {
        kind: u32,
        connection: u32,
        at_ns: u64,
        cookie: u64,
        opened_ns: u64,
        closed_ns: u64,
        initial: [u32; 2],
        opener: u32,
        opener_process: u32,
        retransmits: u32,
        side: u8,
        sequences: u8,
        reserved: [u8; 2],
        ends: Ends,
    }

    /// An end of a connection within the host, when it is first seen or when it has ended.
    struct Local = "record_local" {
        kind: u32,
        connection: u32,
        peer: u32,
        namespace: u32,
        at_ns: u64,
        cookie: u64,
        opened_ns: u64,
        closed_ns: u64,
        opener: u32,
        opener_process: u32,
        side: u8,
        sequences: u8,
        family: u8,
        reserved: u8,
        local_length: u16,
        remote_length: u16,
        local: [u8; NAME],
        remote: [u8; NAME],
    }

    /// The name of a request.
    struct Token = "record_token" {
        kind: u32,
        connection: u32,
        thread: u32,
        process: u32,
        at_ns: u64,
        byte: u64,
        token: u64,
        flow: u32,
        reserved: u32,
    }

    /// A send or a receive.
    struct Message = "record_message" {
        kind: u32,
        connection: u32,
        thread: u32,
        process: u32,
        at_ns: u64,
        first_byte: u64,
        bytes: u64,
        flow: u32,
        reserved: u32,
    }

    /// A packet that was kept.
    struct Packet = "record_packet" {
        kind: u32,
        connection: u32,
        at_ns: u64,
        first_byte: u64,
        ack: u64,
        bytes: u32,
        flow: u32,
    }

    /// Key of summed exchanges: service and peer.
    struct ExchangeKey = "exchange_key" {
        cgroup: u64,
        namespace: u32,
        port: u16,
        side: u8,
        reserved: u8,
        comm: [u8; COMM],
        peer: [u8; 16],
    }

    /// Exchanges of one step of times.
    struct ExchangeStep = "exchange_step" {
        count: u64,
        total_ns: u64,
    }

    /// Exchanges since recording began.
    struct ExchangeSum = "exchange_sum" {
        steps: [ExchangeStep; LATENCIES],
    }
}
