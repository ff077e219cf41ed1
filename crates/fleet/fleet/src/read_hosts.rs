//! Reads the rows of the traces.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use luc_events::Inode;
use luc_events::event_kinds::SequenceSource;
use luc_events::store::{StoreError, TraceReader};
use luc_events::tables::{
    AsleepThread, BlockRequest, BriefWait, ClockSample, ConnectionMessage, FileData, FsyncCall,
    HardwareCount, LostEvents, OffCpuWait, ProcessProgram, RequestToken, SocketConnection,
    TableRow, TcpPacket, ThreadInfo, ThreadStart, TraceDescription,
};
use luc_fleet_rings::{TimeWindow, time_window};

use crate::error::FleetError;
use crate::trace_argument::TraceArgument;

/// Maximum difference between two readings of one host's boot time; NTP moves CLOCK_REALTIME.
const BOOT_TIME_TOLERANCE_NS: u64 = 10_000_000;

/// Columns of the table `sync` that are not needed to know when a thread was in a call.
const UNUSED_SYNC_COLUMNS: &[&str] = &[
    "cgroup",
    "dev",
    "inode",
    "file_system_enter_ns",
    "file_system_exit_ns",
    "wanted_enter",
    "wanted_exit",
    "errno",
    "cpu_enter",
];

/// Tables of a trace that a command needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TablesToRead {
    OfClocks,
    /// Tables of clocks and of threads.
    All,
}

/// Rows of one host's trace.
#[derive(Debug, Clone, Default)]
pub struct RecordedHost {
    /// Name of the host.
    pub name: String,
    pub directory: PathBuf,
    pub trace: TraceDescription,
    /// Last row of each connection.
    pub connections: Vec<SocketConnection>,
    /// Rows in order of time, as in all following tables.
    pub messages: Vec<ConnectionMessage>,
    /// Tokens that name requests in messages.
    pub tokens: Vec<RequestToken>,
    pub packets: Vec<TcpPacket>,
    pub clocks: Vec<ClockSample>,
    pub lost: Vec<LostEvents>,
    pub tasks: Vec<ThreadInfo>,
    /// Functions that threads run.
    pub starts: Vec<ThreadStart>,
    /// Programs that processes run.
    pub programs: Vec<ProcessProgram>,
    /// Times in which threads were off their processors.
    pub waits: Vec<OffCpuWait>,
    /// Sums of waits that are too brief for their own rows.
    pub brief_waits: Vec<BriefWait>,
    /// Threads that slept when the trace began or ended.
    pub asleep: Vec<AsleepThread>,
    /// Events that threads counted on processors.
    pub counters: Vec<HardwareCount>,
    /// Times in which threads were in a call such as fsync.
    pub syncs: Vec<FsyncCall>,
    /// Requests of disks in order of completion.
    pub requests: Vec<BlockRequest>,
    /// Owners of data that was written.
    pub data: Vec<FileData>,
}

/// Reads all traces, each of another host.
///
/// # Errors
/// [`FleetError::Trace`], [`FleetError::NotOfFleet`], [`FleetError::SameHost`], [`FleetError::SameName`].
pub fn read(
    sources: &[TraceArgument],
    tables: TablesToRead,
) -> Result<Vec<RecordedHost>, FleetError> {
    read_within(sources, tables, None)
}

/// Like [`read`], but reads only ring segments that overlap the window.
///
/// # Errors
/// As [`read`]; [`WindowError::NotInRing`](crate::WindowError::NotInRing);
/// [`WindowError::NoRing`](crate::WindowError::NoRing) for a window of a trace that is no ring.
pub fn read_within(
    sources: &[TraceArgument],
    tables: TablesToRead,
    window: Option<TimeWindow>,
) -> Result<Vec<RecordedHost>, FleetError> {
    let mut all: Vec<RecordedHost> = Vec::with_capacity(sources.len());
    read_each(sources, tables, window, |recorded| {
        all.push(recorded);
        Ok(())
    })?;
    Ok(all)
}

/// Reads one trace after the other, and passes each to `take` before it reads the next.
pub(crate) fn read_each(
    sources: &[TraceArgument],
    tables: TablesToRead,
    window: Option<TimeWindow>,
    mut take: impl FnMut(RecordedHost) -> Result<(), FleetError>,
) -> Result<(), FleetError> {
    let mut known: Vec<HostIdentity> = Vec::with_capacity(sources.len());
    for source in sources {
        let recorded = time_window::read(&source.directory, window, |reader| {
            read_tables(reader, source, tables)
        })?;
        let identity = HostIdentity::of(&recorded);
        for other in &known {
            other.differs_from(&identity)?;
        }
        known.push(identity);
        take(recorded)?;
    }
    Ok(())
}

fn read_tables(
    reader: &TraceReader,
    source: &TraceArgument,
    tables: TablesToRead,
) -> Result<RecordedHost, FleetError> {
    let trace = reader.trace().clone();
    let mut recorded = RecordedHost {
        name: choose_name(source, &trace),
        directory: source.directory.clone(),
        clocks: rows(reader, &[])?,
        trace,
        ..RecordedHost::default()
    };
    if recorded.clocks.is_empty() {
        return Err(FleetError::NotOfFleet { path: recorded.directory });
    }
    // The last sample of a ring's segment is the first of the next.
    recorded.clocks.dedup_by_key(|row| row.at_ns);
    // Rows come in order of time, so that the last one stays.
    let mut connections = HashMap::new();
    for row in rows::<SocketConnection>(reader, &[])? {
        connections.insert(row.connection, row);
    }
    recorded.connections = connections.into_values().collect();
    recorded.connections.sort_unstable_by_key(|row| row.connection);
    recorded.messages = rows(reader, &[])?;
    recorded.tokens = rows(reader, &[])?;
    recorded.packets = rows(reader, &[])?;
    recorded.lost = rows(reader, &[])?;
    if tables == TablesToRead::All {
        recorded.tasks = rows(reader, &["cgroup"])?;
        recorded.starts = rows(reader, &["creator"])?;
        recorded.programs = rows(reader, &["path"])?;
        recorded.waits = rows(reader, &["cgroup", "state", "stack", "dev", "transaction"])?;
        recorded.brief_waits = rows(reader, &["cgroup"])?;
        recorded.asleep = rows(reader, &["cgroup", "state", "stack", "argument"])?;
        let mut seen = HashSet::new();
        recorded.asleep.retain(|row| seen.insert((row.thread, row.at_ns)));
        recorded.counters = rows(reader, &["process", "cgroup"])?;
        recorded.syncs = rows(reader, UNUSED_SYNC_COLUMNS)?;
        recorded.requests = rows(reader, &["sector", "kind", "flags", "errno"])?;
        recorded.data = rows(reader, &["cgroup"])?;
    }
    Ok(recorded)
}

pub(crate) fn rows<T: TableRow>(
    reader: &TraceReader,
    without: &'static [&'static str],
) -> Result<Vec<T>, StoreError> {
    reader.rows_without::<T>(without)?.collect()
}

/// Name of a host: the user's, otherwise the trace's, otherwise the directory's.
pub(crate) fn choose_name(source: &TraceArgument, trace: &TraceDescription) -> String {
    let own = || Some(trace.host.clone()).filter(|name| !name.is_empty());
    let directory = || {
        let path = source.directory.canonicalize().unwrap_or_default();
        path.file_name().unwrap_or(source.directory.as_os_str()).to_string_lossy().into_owned()
    };
    source.name.clone().or_else(own).unwrap_or_else(directory)
}

/// Cookie, namespace and initial sequence numbers of a socket; 64 of the bits are random.
type SocketId = (u64, Inode, u32, u32);

/// HostIdentity of a host, to recognize two traces of one host.
#[derive(Debug)]
struct HostIdentity {
    name: String,
    directory: PathBuf,
    trace: TraceDescription,
    sockets: HashSet<SocketId>,
}

impl HostIdentity {
    fn of(recorded: &RecordedHost) -> Self {
        // Unix sockets have no random numbers, and two hosts count their cookies alike.
        let socket = |row: &SocketConnection| -> Option<SocketId> {
            let is_known = !row.family.is_within_host()
                && row.sequences != SequenceSource::Unknown
                && row.cookie != 0;
            is_known.then_some((row.cookie, row.namespace, row.initial_sent, row.initial_received))
        };
        Self {
            name: recorded.name.clone(),
            directory: recorded.directory.clone(),
            trace: recorded.trace.clone(),
            sockets: recorded.connections.iter().filter_map(socket).collect(),
        }
    }

    /// Refuses a second trace of a host, and a second host with the same name.
    fn differs_from(&self, other: &Self) -> Result<(), FleetError> {
        let is_same =
            !self.sockets.is_disjoint(&other.sockets) || are_of_one_boot(&self.trace, &other.trace);
        let [first, second] = [self, other].map(|one| one.directory.clone());
        if is_same {
            return Err(FleetError::SameHost { first, second });
        }
        if self.name == other.name {
            let name = luc_units::plain(&self.name);
            return Err(FleetError::SameName { name, first, second });
        }
        Ok(())
    }
}

/// Whether host, kernel and boot time are the same.
fn are_of_one_boot(first: &TraceDescription, second: &TraceDescription) -> bool {
    let booted_ns = |trace: &TraceDescription| {
        let booted_ns = trace.realtime_offset_ns.checked_sub(trace.boottime_offset_ns);
        booted_ns.filter(|&booted_ns| booted_ns > 0)
    };
    let (Some(first_ns), Some(second_ns)) = (booted_ns(first), booted_ns(second)) else {
        return false;
    };
    (&first.host, &first.kernel) == (&second.host, &second.kernel)
        && first_ns.abs_diff(second_ns) <= BOOT_TIME_TOLERANCE_NS
}

#[cfg(test)]
mod tests {
    use luc_events::ConnectionId;
    use luc_events::event_kinds::ConnectionFamily;

    use super::*;

    #[test]
    fn hosts_are_one_if_a_socket_of_tcp_is_in_both_traces() {
        let of = |name: &str, family, initial_sent| {
            HostIdentity::of(&RecordedHost {
                name: name.to_owned(),
                directory: PathBuf::from(name),
                connections: vec![SocketConnection {
                    connection: ConnectionId(1),
                    cookie: 4097,
                    namespace: Inode(1),
                    family,
                    sequences: SequenceSource::Seen,
                    initial_sent,
                    ..SocketConnection::default()
                }],
                ..RecordedHost::default()
            })
        };
        let differs =
            |first: HostIdentity, second: HostIdentity| first.differs_from(&second).is_ok();
        assert!(!differs(of("a", ConnectionFamily::Ipv4, 7), of("b", ConnectionFamily::Ipv4, 7)));
        assert!(differs(of("a", ConnectionFamily::Ipv4, 7), of("b", ConnectionFamily::Ipv4, 8)));
        // Two hosts have counted their first unix sockets alike.
        assert!(differs(of("a", ConnectionFamily::Unix, 0), of("b", ConnectionFamily::Unix, 0)));
    }
}
