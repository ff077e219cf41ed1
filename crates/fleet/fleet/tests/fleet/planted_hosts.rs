//! Hosts with clocks of their own, and connections between them.

use luc_events::event_kinds::{MessageDirection, SequenceSource, SocketRole};
use luc_events::store::SCHEMA_VERSION;
use luc_events::tables::{
    ClockSample, ConnectionMessage, SocketConnection, TcpPacket, ThreadInfo, TraceDescription,
};
use luc_events::{ConnectionId, Pid, Tgid};
use luc_fleet::{ExplanationOptions, FleetExplanation, JoinedTraces, RecordedHost, explain};

/// True time at which all traces begin.
pub(crate) const BEGIN_NS: i64 = 1_000_000_000_000;
const SECOND: i64 = 1_000_000_000;

/// Clocks of a host as functions of the true time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PlantedClock {
    pub(crate) offset_ns: i64,
    pub(crate) drift_ppb: i64,
    /// Difference in rate of CLOCK_MONOTONIC and CLOCK_MONOTONIC_RAW, due to NTP.
    pub(crate) ntp_ppb: i64,
    /// Jump of the clocks: its true time, and its size.
    pub(crate) jump: Option<(i64, i64)>,
}

/// Clock that shows the true time.
pub(crate) const TRUE_CLOCK: PlantedClock =
    PlantedClock { offset_ns: 0, drift_ppb: 0, ntp_ppb: 0, jump: None };

impl PlantedClock {
    pub(crate) fn raw_ns(&self, at_ns: i64) -> i64 {
        let jumped = self.jump.filter(|&(from_ns, _)| at_ns >= from_ns);
        let by_ns = jumped.map_or(0, |(_, by_ns)| by_ns);
        at_ns + self.offset_ns + (at_ns - BEGIN_NS) * self.drift_ppb / SECOND + by_ns
    }

    pub(crate) fn monotonic_ns(&self, at_ns: i64) -> u64 {
        let ntp_ns = (at_ns - BEGIN_NS) * self.ntp_ppb / SECOND;
        (self.raw_ns(at_ns) + 77_000_000 + ntp_ns) as u64
    }

    /// True time at which CLOCK_MONOTONIC shows this.
    pub(crate) fn when_ns(&self, monotonic_ns: u64) -> i64 {
        let (mut low, mut high) = (BEGIN_NS - SECOND, BEGIN_NS + 1_000 * SECOND);
        while high - low > 1 {
            let middle = low.midpoint(high);
            if self.monotonic_ns(middle) <= monotonic_ns {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// A host whose trace lasts this long.
pub(crate) fn host(name: &str, clock: &PlantedClock, seconds: i64) -> RecordedHost {
    let end_ns = BEGIN_NS + seconds * SECOND;
    let sample = |at_ns| ClockSample {
        at_ns: clock.monotonic_ns(at_ns),
        raw_ns: clock.raw_ns(at_ns) as u64,
        ..ClockSample::default()
    };
    RecordedHost {
        name: name.to_owned(),
        trace: TraceDescription {
            schema_version: SCHEMA_VERSION,
            host: name.to_owned(),
            start_ns: clock.monotonic_ns(BEGIN_NS),
            end_ns: clock.monotonic_ns(end_ns),
            ..TraceDescription::default()
        },
        clocks: (BEGIN_NS..=end_ns).step_by(100_000_000).map(sample).collect(),
        tasks: vec![ThreadInfo {
            thread: Pid(7),
            process: Tgid(7),
            comm: format!("{name}d"),
            start_ns: 1,
            ..ThreadInfo::default()
        }],
        ..RecordedHost::default()
    }
}

/// A connection from one host to another, and what passed over it so far.
pub(crate) struct PlantedConnection {
    pub(crate) number: u32,
    passed: [u64; 2],
}

impl PlantedConnection {
    /// Initial sequence numbers are made of the number.
    pub(crate) fn new(client: &mut RecordedHost, server: &mut RecordedHost, number: u32) -> Self {
        let end =
            |side, local: (&str, u32), remote: (&str, u32), sent, received| SocketConnection {
                connection: ConnectionId(number),
                cookie: u64::from(number),
                local_address: local.0.to_owned(),
                local_port: local.1,
                remote_address: remote.0.to_owned(),
                remote_port: remote.1,
                side,
                initial_sent: sent,
                initial_received: received,
                sequences: SequenceSource::Seen,
                ..SocketConnection::default()
            };
        let (a, b) = (("10.0.0.1", 5_000 + number), ("10.0.0.2", 80));
        let (there, back) = (u32::MAX - number, 1_000 + number);
        client.connections.push(end(SocketRole::Client, a, b, there, back));
        server.connections.push(end(SocketRole::Server, b, a, back, there));
        Self { number, passed: [0, 0] }
    }

    /// Bytes that went in one packet, sent and received at these times.
    pub(crate) fn packet(
        &mut self,
        from: (&mut RecordedHost, u64),
        to: (&mut RecordedHost, u64),
        direction: usize,
        bytes: u64,
    ) {
        let first_byte = self.passed[direction];
        for ((host, at_ns), flow) in
            [(from, MessageDirection::Sent), (to, MessageDirection::Received)]
        {
            host.packets.push(TcpPacket {
                at_ns,
                connection: ConnectionId(self.number),
                direction: flow,
                first_byte,
                bytes,
                ack: 0,
            });
        }
        self.passed[direction] += bytes;
    }
}

/// A send or receive of thread 7.
pub(crate) fn message(
    connection: u32,
    at_ns: u64,
    direction: MessageDirection,
    first_byte: u64,
    bytes: u64,
) -> ConnectionMessage {
    ConnectionMessage {
        at_ns,
        thread: Pid(7),
        process: Tgid(7),
        connection: ConnectionId(connection),
        direction,
        first_byte,
        bytes,
    }
}

/// Packets each ms, both ways, whose delays are 20 us and up to 49 more.
pub(crate) fn talk(
    hosts: [&mut RecordedHost; 2],
    clocks: [&PlantedClock; 2],
    number: u32,
    seconds: i64,
) {
    let [client, server] = hosts;
    let mut connected = PlantedConnection::new(client, server, number);
    for millisecond in 0..seconds * 1000 {
        let sent_ns = BEGIN_NS + millisecond * 1_000_000;
        let delay_ns = |seed: i64| 20_000 + (millisecond * seed) % 49_000;
        let (there_ns, back_ns) = (sent_ns + delay_ns(7_919), sent_ns + 300_000);
        let home_ns = back_ns + delay_ns(6_007);
        let [a, b] = clocks;
        let from = (&mut *client, a.monotonic_ns(sent_ns));
        connected.packet(from, (&mut *server, b.monotonic_ns(there_ns)), 0, 100);
        let from = (&mut *server, b.monotonic_ns(back_ns));
        connected.packet(from, (&mut *client, a.monotonic_ns(home_ns)), 1, 50);
    }
}

/// Explains the traces of two hosts.
pub(crate) fn explained(hosts: [RecordedHost; 2]) -> FleetExplanation {
    let joined = JoinedTraces::new(hosts.to_vec()).expect("joined");
    explain(&joined, ExplanationOptions::default()).expect("explained")
}
