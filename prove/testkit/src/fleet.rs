//! Traces of simulated hosts: a client, a front end and any number of back ends. They are the same each time.
//!
//! For each request of the client, the front end asks two back ends in turn, in the request's thread. Hosts have
//! clocks of their own. All random values follow from the request's number.

use std::path::{Path, PathBuf};

use luc_events::event_kinds::{
    ConnectionFamily, MessageDirection, SequenceSource, SocketRole, WaitState,
};
use luc_events::store::{SCHEMA_VERSION, StoreError, TraceWriter};
use luc_events::tables::{
    ClockSample, ConnectionMessage, OffCpuWait, SocketConnection, TcpPacket, ThreadInfo,
    TraceDescription,
};
use luc_events::{ConnectionId, Pid, Tgid, WaitCause};

const BEGIN_NS: u64 = 1_000_000_000_000;
/// Time between the begins of two requests.
const REQUEST_INTERVAL_NS: u64 = 400_000;
/// Number of threads of each host, and of connections between two hosts.
const THREADS: u64 = 8;
/// Id of each host's first thread.
const FIRST_THREAD: u32 = 1_000;
const PROCESS: u32 = 900;
/// Minimum transit time of a message.
const MIN_TRANSIT_NS: u64 = 40_000;
const CLOCK_SAMPLE_INTERVAL_NS: u64 = 100_000_000;
/// Number of back ends that a request asks.
const BACK_ENDS_PER_REQUEST: u64 = 2;
/// One in this many requests to a back end waits for the journal there.
const REQUESTS_PER_SLOW_ONE: u64 = 10;
/// Causes of waits that belong to no request.
const CAUSES: [WaitCause; 4] =
    [WaitCause::Futex, WaitCause::Poll, WaitCause::Device, WaitCause::Sleep];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlantedFleet {
    /// Number of back ends, at least two.
    pub back_ends: u64,
    pub requests: u64,
    /// Number of waits on each host that belong to no request.
    pub waits: u64,
}

/// A host whose trace is being written.
struct Host {
    writer: TraceWriter,
    trace: TraceDescription,
    clock: Clock,
}

/// Offset and drift of a host's clock from the true time.
#[derive(Clone, Copy)]
struct Clock {
    offset_ns: u64,
    drift_ppm: u64,
}

impl Clock {
    fn at(self, true_ns: u64) -> u64 {
        true_ns + self.offset_ns + (true_ns - BEGIN_NS) * self.drift_ppm / 1_000_000
    }
}

/// Mixes the bits of a seed (splitmix64, Steele et al. 2014).
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl PlantedFleet {
    /// Number of rows of messages, packets and waits in all traces.
    #[must_use]
    pub fn rows(&self) -> u64 {
        // Each that is sent is a message and a packet on two hosts; the client and the front end wait for each answer.
        let of_each = (2 + 2 * BACK_ENDS_PER_REQUEST) * 4 + 1 + BACK_ENDS_PER_REQUEST;
        let slow = (0..BACK_ENDS_PER_REQUEST).map(|last_digit| {
            (self.requests + REQUESTS_PER_SLOW_ONE - 1 - last_digit) / REQUESTS_PER_SLOW_ONE
        });
        self.requests * of_each + slow.sum::<u64>() + self.waits * (self.back_ends + 2)
    }

    /// Writes a trace of each host, and returns their paths: the client's, the front end's, the back ends'.
    ///
    /// # Errors
    /// What the store says.
    pub fn write(&self, directory: &Path) -> Result<Vec<PathBuf>, StoreError> {
        let names = ["client".to_owned(), "web".to_owned()];
        let names =
            names.into_iter().chain((1..=self.back_ends).map(|number| format!("db-{number}")));
        let mut paths = Vec::new();
        let mut hosts = Vec::new();
        for (number, name) in names.enumerate() {
            let path = directory.join(&name);
            hosts.push(Host::new(&path, name, number as u64, self.length_ns())?);
            paths.push(path);
        }
        for thread in 0..THREADS {
            connect(&mut hosts, (0, 1), thread)?;
            for back_end in 0..self.back_ends {
                connect(&mut hosts, (1, 2 + back_end as usize), thread)?;
            }
        }
        let mut passed = vec![[0_u64; 2]; hosts.len() * THREADS as usize];
        for request in 0..self.requests {
            self.request(&mut hosts, &mut passed, request)?;
        }
        for (number, mut host) in hosts.into_iter().enumerate() {
            self.other_waits(&mut host, number as u64)?;
            host.writer.finish(host.trace)?;
        }
        Ok(paths)
    }

    fn length_ns(&self) -> u64 {
        (self.requests + 2 * THREADS) * REQUEST_INTERVAL_NS
    }

    fn request(
        &self,
        hosts: &mut [Host],
        passed: &mut [[u64; 2]],
        request: u64,
    ) -> Result<(), StoreError> {
        let thread = request % THREADS;
        let random = mix(request);
        let begin_ns = BEGIN_NS + REQUEST_INTERVAL_NS * (request + 1) + random % 50_000;
        let mut road = Road { hosts, passed, thread, random };
        let mut at_ns = road.send((0, 1), 0, begin_ns, 40)?;
        for asked in 0..BACK_ENDS_PER_REQUEST {
            let back_end = 2 + ((request + asked) % self.back_ends) as usize;
            let sent_ns = at_ns + 5_000;
            let there_ns = road.send((1, back_end), 0, sent_ns, 30 + asked)?;
            let mut ready_ns = there_ns + 20_000 + road.next() % 60_000;
            if request % REQUESTS_PER_SLOW_ONE == asked {
                let waited_ns = 300_000 + road.next() % 200_000;
                road.wait(back_end, (ready_ns, ready_ns + waited_ns), WaitCause::CommitWait)?;
                ready_ns += waited_ns + 3_000;
            }
            at_ns = road.send((1, back_end), 1, ready_ns, 100)?;
            road.wait(1, (sent_ns + 2_000, at_ns - 2_000), WaitCause::PipeSocket)?;
        }
        let answered_ns = road.send((0, 1), 1, at_ns + 10_000, 500)?;
        road.wait(0, (begin_ns + 2_000, answered_ns - 2_000), WaitCause::PipeSocket)
    }

    /// Adds waits of threads that have no request.
    fn other_waits(&self, host: &mut Host, number: u64) -> Result<(), StoreError> {
        let step_ns = (self.length_ns() / self.waits.max(1)).max(1);
        for wait in 0..self.waits {
            let random = mix(number << 40 | wait);
            let off_ns = BEGIN_NS + wait * step_ns;
            let woken_ns = off_ns + 1 + random % 1_000_000;
            host.writer.add_wait(OffCpuWait {
                thread: Pid(5_000 + (random >> 32) as u32 % 64),
                process: Tgid(5_000),
                off_ns: host.clock.at(off_ns),
                woken_ns: host.clock.at(woken_ns),
                on_ns: host.clock.at(woken_ns + random % 9_000),
                state: WaitState::Interruptible,
                cause: CAUSES[(random >> 20) as usize % CAUSES.len()],
                ..OffCpuWait::default()
            })?;
        }
        Ok(())
    }
}

impl Host {
    fn new(path: &Path, name: String, number: u64, length_ns: u64) -> Result<Self, StoreError> {
        let clock = Clock { offset_ns: number * 7_000_000, drift_ppm: number * 3 };
        let end_ns = BEGIN_NS + length_ns;
        let trace = TraceDescription {
            at_ns: clock.at(end_ns),
            schema_version: SCHEMA_VERSION,
            host: name.clone(),
            kernel: "6.18.0".to_owned(),
            processors: 4,
            start_ns: clock.at(BEGIN_NS),
            end_ns: clock.at(end_ns),
            ..TraceDescription::default()
        };
        let begin = TraceDescription { at_ns: trace.start_ns, end_ns: 0, ..trace.clone() };
        let mut writer = TraceWriter::create(path, begin)?;
        let mut true_ns = BEGIN_NS;
        while true_ns <= end_ns {
            writer.add(ClockSample {
                at_ns: clock.at(true_ns),
                raw_ns: clock.at(true_ns),
                ..ClockSample::default()
            })?;
            true_ns += CLOCK_SAMPLE_INTERVAL_NS;
        }
        for thread in 0..THREADS as u32 {
            writer.add(ThreadInfo {
                thread: Pid(FIRST_THREAD + thread),
                process: Tgid(PROCESS),
                comm: format!("{name}-{thread}"),
                start_ns: 1,
                ..ThreadInfo::default()
            })?;
        }
        Ok(Self { writer, trace, clock })
    }
}

/// Number of a connection in the traces of both hosts.
fn number(server: usize, thread: u64) -> ConnectionId {
    ConnectionId((server as u64 * THREADS + thread + 1) as u32)
}

fn connect(hosts: &mut [Host], ends: (usize, usize), thread: u64) -> Result<(), StoreError> {
    let id = number(ends.1, thread);
    let address = |host: usize| format!("10.0.{}.{}", host / 250, host % 250 + 1);
    let client = (address(ends.0), 40_000 + id.0);
    let server = (address(ends.1), 80);
    let (there, back) = (0x1000_0000 + id.0, 0x2000_0000 + id.0);
    let sides = [
        (ends.0, SocketRole::Client, &client, &server, there, back),
        (ends.1, SocketRole::Server, &server, &client, back, there),
    ];
    for (host, side, local, remote, sent, received) in sides {
        let Host { writer, clock, .. } = &mut hosts[host];
        writer.add(SocketConnection {
            at_ns: clock.at(BEGIN_NS),
            connection: id,
            cookie: u64::from(id.0),
            family: ConnectionFamily::Ipv4,
            local_address: local.0.clone(),
            local_port: local.1,
            remote_address: remote.0.clone(),
            remote_port: remote.1,
            side,
            initial_sent: sent,
            initial_received: received,
            sequences: SequenceSource::Seen,
            opened_ns: clock.at(BEGIN_NS),
            opener: Pid(FIRST_THREAD + thread as u32),
            opener_process: Tgid(PROCESS),
            ..SocketConnection::default()
        })?;
    }
    Ok(())
}

/// The threads of one number on all hosts, and their connections.
struct Road<'a> {
    hosts: &'a mut [Host],
    /// Bytes that passed in each direction over each connection.
    passed: &'a mut [[u64; 2]],
    thread: u64,
    random: u64,
}

impl Road<'_> {
    fn next(&mut self) -> u64 {
        self.random = mix(self.random);
        self.random
    }

    fn pid(&self) -> Pid {
        Pid(FIRST_THREAD + self.thread as u32)
    }

    /// Sends bytes from client to server (way 0) or back (way 1). Returns the time at which they were read.
    fn send(
        &mut self,
        (client, server): (usize, usize),
        way: usize,
        sent_ns: u64,
        bytes: u64,
    ) -> Result<u64, StoreError> {
        let connection = number(server, self.thread);
        let passed = &mut self.passed[server * THREADS as usize + self.thread as usize][way];
        let first_byte = *passed;
        *passed += bytes;
        let late_ns = self.next() % 30_000;
        let read_ns = sent_ns + MIN_TRANSIT_NS + late_ns + 10_000;
        let ends = if way == 0 { [client, server] } else { [server, client] };
        let wire_ns = [sent_ns + 1_000, read_ns - 9_000];
        let thread = self.pid();
        let calls_ns = [sent_ns, read_ns];
        for (at, direction) in
            [MessageDirection::Sent, MessageDirection::Received].into_iter().enumerate()
        {
            let Host { writer, clock, .. } = &mut self.hosts[ends[at]];
            writer.add_message(ConnectionMessage {
                at_ns: clock.at(calls_ns[at]),
                thread,
                process: Tgid(PROCESS),
                connection,
                direction,
                first_byte,
                bytes,
            })?;
            writer.add(TcpPacket {
                at_ns: clock.at(wire_ns[at]),
                connection,
                direction,
                first_byte,
                bytes,
                ack: 0,
            })?;
        }
        Ok(read_ns)
    }

    fn wait(
        &mut self,
        host: usize,
        (off_ns, woken_ns): (u64, u64),
        cause: WaitCause,
    ) -> Result<(), StoreError> {
        let thread = self.pid();
        let Host { writer, clock, .. } = &mut self.hosts[host];
        writer.add_wait(OffCpuWait {
            thread,
            process: Tgid(PROCESS),
            off_ns: clock.at(off_ns),
            woken_ns: clock.at(woken_ns),
            on_ns: clock.at(woken_ns + 1_500),
            state: WaitState::Interruptible,
            cause,
            ..OffCpuWait::default()
        })
    }
}
