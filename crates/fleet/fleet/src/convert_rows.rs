//! Converts the rows of a trace to those of the core.

mod connection_origins;
mod message_tokens;

use std::net::{IpAddr, SocketAddr};

use luc_events::event_kinds::{ConnectionFamily, MessageDirection, SequenceSource, SocketRole};
use luc_events::{Pid, WaitCause, tables};
use luc_fleet_clocks::{HostId, MAX_TIME_NS};
use luc_fleet_requests::{
    ByteDirection, ConnectionEnd, ConnectionOpener, EndAddress, FleetWaits, HostWaits, MessageRow,
    PacketRow, SequenceAtStart, SleepingThread, ThreadWait, TooManyWaits,
};
use serde::Serialize;

use crate::host_tasks::HostTasks;
use crate::read_hosts::RecordedHost;
use crate::socket_names::SocketNames;
use crate::wait_causes::may_be_input;
use connection_origins::{ConnectionOrigins, OffsetOrigin};
use message_tokens::MessageTokens;

/// Maximum delay until a loss is noticed. Usually it is about 1 s; a recorder that is later was stopped.
const LOSS_WINDOW_NS: u64 = 10_000_000_000;

/// Converted rows of many hosts.
#[derive(Debug, Default)]
pub(crate) struct ConvertedRows {
    pub(crate) ends: Vec<ConnectionEnd>,
    /// Names that unix sockets are bound to.
    pub(crate) names: SocketNames,
    /// Rows of one host after those of the one before.
    pub(crate) messages: Vec<MessageRow>,
    /// By message: time of the first packet with its last byte; 0 if no packet tells.
    pub(crate) packet_times: Vec<u64>,
    pub(crate) waits: FleetWaits,
    /// Cause of each wait, by the host's number, in the order of its waits.
    pub(crate) causes: Vec<Vec<WaitCause>>,
    pub(crate) sleepers: Vec<SleepingThread>,
    pub(crate) left_out: UnconvertedRows,
}

/// Number of rows of a trace that are left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct UnconvertedRows {
    /// Connections with unreadable addresses: the rows are damaged.
    pub unreadable_connections: u64,
    /// Messages and packets of a connection without a row: the row was lost.
    pub without_connection: u64,
    /// Packets of connections with unknown sequence numbers: their offsets are uncertain.
    pub uncertain_packets: u64,
    /// Packets of times in which packets were lost: a retransmission may pass for the first transmission.
    pub packets_beside_lost_ones: u64,
    /// Damaged rows, with impossible times or offsets.
    pub out_of_range: u64,
}

/// Adds the rows of the next host. Packets go to `packets`, as they are only needed to pair connections and to relate
/// clocks.
///
/// Capacity is reserved exactly, as doubling vectors may exhaust memory.
pub(crate) fn add(
    host: HostId,
    recorded: &RecordedHost,
    tasks: &HostTasks,
    rows: &mut ConvertedRows,
    packets: &mut Vec<PacketRow>,
) -> Result<(), TooManyWaits> {
    // 1. Connections.
    let origins = ConnectionOrigins::of(recorded);
    let lost_packets = recorded.lost.iter().filter(|row| row.place == "packet");
    let mut lost_ns: Vec<u64> = lost_packets.map(|row| row.at_ns).collect();
    lost_ns.sort_unstable();
    for row in &recorded.connections {
        match convert_end(host, row, origins.of_connection(row.connection), &mut rows.names) {
            Some(end) => rows.ends.push(end),
            None => rows.left_out.unreadable_connections += 1,
        }
    }
    // 2. Messages, with the tokens in them.
    let tokens = MessageTokens::of(&recorded.tokens);
    rows.messages.reserve_exact(recorded.messages.len());
    for row in &recorded.messages {
        let Some(origin) = origins.of_connection(row.connection) else {
            rows.left_out.without_connection += 1;
            continue;
        };
        match convert_message(host, row, origin, tasks) {
            Some(message) => {
                rows.messages.push(MessageRow { token: tokens.in_message(row), ..message })
            }
            None => rows.left_out.out_of_range += 1,
        }
    }
    // 3. Packets whose offsets are certain.
    packets.reserve_exact(recorded.packets.len());
    for row in &recorded.packets {
        match origins.of_connection(row.connection) {
            None => rows.left_out.without_connection += 1,
            Some(OffsetOrigin::FirstSeen { .. } | OffsetOrigin::Counted) => {
                rows.left_out.uncertain_packets += 1;
            }
            Some(OffsetOrigin::Initial) if is_beside_lost(row.at_ns, &lost_ns) => {
                rows.left_out.packets_beside_lost_ones += 1;
            }
            Some(OffsetOrigin::Initial) => match convert_packet(host, row) {
                Some(packet) => packets.push(packet),
                None => rows.left_out.out_of_range += 1,
            },
        }
    }
    // 4. Waits with their causes, and threads that slept.
    let mut causes = Vec::with_capacity(recorded.waits.len());
    let waits = recorded.waits.iter().filter_map(|row| {
        let wait = convert_wait(host, row, tasks);
        match wait {
            Some(_) => causes.push(row.cause),
            None => rows.left_out.out_of_range += 1,
        }
        wait
    });
    rows.waits.insert(HostWaits::new(host, waits)?);
    rows.causes.push(causes);
    for row in &recorded.asleep {
        match convert_sleeper(host, row, tasks) {
            Some(sleeper) => rows.sleepers.push(sleeper),
            None => rows.left_out.out_of_range += 1,
        }
    }
    Ok(())
}

fn is_in_range(at_ns: u64) -> bool {
    i64::try_from(at_ns).is_ok_and(|at_ns| at_ns <= MAX_TIME_NS)
}

/// Whether a loss was noticed within [`LOSS_WINDOW_NS`] after this time.
fn is_beside_lost(at_ns: u64, lost_ns: &[u64]) -> bool {
    let next = lost_ns.partition_point(|&lost_ns| lost_ns < at_ns);
    lost_ns.get(next).is_some_and(|lost_ns| lost_ns - at_ns <= LOSS_WINDOW_NS)
}

fn convert_end(
    host: HostId,
    row: &tables::SocketConnection,
    origin: Option<OffsetOrigin>,
    names: &mut SocketNames,
) -> Option<ConnectionEnd> {
    let mut address = |address: &str, port: u32| {
        Some(match row.family {
            ConnectionFamily::Ipv4 | ConnectionFamily::Ipv6 => {
                let address: IpAddr = address.parse().ok()?;
                EndAddress::Internet(SocketAddr::new(address, u16::try_from(port).ok()?))
            }
            ConnectionFamily::Unix
            | ConnectionFamily::UnixSeqpacket
            | ConnectionFamily::UnixDatagram => EndAddress::Unix(names.number(address)),
            ConnectionFamily::Pipe => EndAddress::Pipe(names.number(address)),
        })
    };
    let is_known = row.sequences != SequenceSource::Unknown && !row.family.is_within_host();
    let some = |at_ns: u64| Some(at_ns).filter(|&at_ns| at_ns > 0);
    Some(ConnectionEnd {
        host,
        connection: u64::from(row.connection.0),
        namespace: row.namespace.0,
        local: address(&row.local_address, row.local_port)?,
        remote: address(&row.remote_address, row.remote_port)?,
        peer: Some(u64::from(row.peer.0)).filter(|&peer| peer > 0 && row.family.is_within_host()),
        own_isn: is_known.then_some(row.initial_sent),
        peer_isn: is_known.then_some(row.initial_received),
        at_start: origin.and_then(at_start),
        opener: match row.side {
            SocketRole::Unknown => None,
            SocketRole::Client => Some(ConnectionOpener::This),
            SocketRole::Server => Some(ConnectionOpener::Peer),
        },
        opened_ns: some(row.opened_ns),
        closed_ns: some(row.closed_ns),
    })
}

/// Builds the start numbers from the first numbers of both directions that a message has. Bytes that were unread before
/// are not in the trace.
fn at_start(origin: OffsetOrigin) -> Option<SequenceAtStart> {
    let OffsetOrigin::FirstSeen { sent, received } = origin else {
        return None;
    };
    Some(SequenceAtStart {
        // The kernel's numbers have 32 bits, as had those that the offsets counted from.
        snd_nxt: sent? as u32,
        rcv_nxt: received? as u32,
        copied_seq: received? as u32,
    })
}

fn way(flow: MessageDirection) -> ByteDirection {
    match flow {
        MessageDirection::Sent => ByteDirection::Sent,
        MessageDirection::Received => ByteDirection::Received,
    }
}

fn convert_message(
    host: HostId,
    row: &tables::ConnectionMessage,
    origin: OffsetOrigin,
    tasks: &HostTasks,
) -> Option<MessageRow> {
    let way = way(row.direction);
    is_in_range(row.at_ns).then_some(MessageRow {
        host,
        at_ns: row.at_ns,
        thread: tasks.thread(row.thread.0, row.at_ns),
        process: row.process.0,
        connection: u64::from(row.connection.0),
        way,
        first_byte: origin.offset(way, row.first_byte)?,
        bytes: row.bytes,
        token: None,
    })
}

fn convert_packet(host: HostId, row: &tables::TcpPacket) -> Option<PacketRow> {
    let way = way(row.direction);
    // 0 acknowledges nothing new: no acknowledgement has this offset.
    let ack = if row.ack == 0 { Some(0) } else { OffsetOrigin::Initial.offset(way, row.ack) };
    is_in_range(row.at_ns).then_some(PacketRow {
        host,
        at_ns: row.at_ns,
        connection: u64::from(row.connection.0),
        way,
        first_byte: OffsetOrigin::Initial.offset(way, row.first_byte)?,
        bytes: row.bytes,
        ack: ack?,
    })
}

fn convert_wait(host: HostId, row: &tables::OffCpuWait, tasks: &HostTasks) -> Option<ThreadWait> {
    let is_good = is_in_range(row.on_ns) && row.off_ns <= row.on_ns && row.woken_ns <= row.on_ns;
    // An interrupt has the name of the thread that it interrupts.
    let has_waker = !row.waker.is_none() && !is_ended_by_interrupts(row.cause);
    is_good.then(|| ThreadWait {
        host,
        thread: tasks.thread(row.thread.0, row.on_ns),
        off_ns: row.off_ns,
        woken_ns: Some(row.woken_ns).filter(|&woken_ns| woken_ns > 0),
        on_ns: row.on_ns,
        waker: has_waker.then(|| tasks.thread(row.waker.0, row.woken_ns)),
        may_be_input: may_be_input(row.cause),
        may_be_hand_over: row.cause != WaitCause::Futex
            || tasks.process(row.waker.0, row.woken_ns) == Some(row.process.0),
        processor: row.processor.checked_sub(1),
    })
}

fn convert_sleeper(
    host: HostId,
    row: &tables::AsleepThread,
    tasks: &HostTasks,
) -> Option<SleepingThread> {
    let is_good = is_in_range(row.at_ns) && row.since_ns <= row.at_ns;
    let thread = |id: Pid| tasks.thread(id.0, row.at_ns);
    is_good.then(|| SleepingThread {
        host,
        thread: thread(row.thread),
        at_ns: row.at_ns,
        since_ns: Some(row.since_ns).filter(|&since_ns| since_ns > 0),
        connection: Some(u64::from(row.connection.0)).filter(|&connection| connection > 0),
        holder: Some(row.holder).filter(|holder| !holder.is_none()).map(thread),
    })
}

/// Whether a wait with this cause is ended by an interrupt of a timer or device.
fn is_ended_by_interrupts(cause: WaitCause) -> bool {
    matches!(
        cause,
        WaitCause::Sleep | WaitCause::Device | WaitCause::Flush | WaitCause::DataWriteback
    )
}
