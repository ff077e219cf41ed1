//! Reads the rows of the traces.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use luc_events::Inode;
use luc_events::codes::Sequences;
use luc_events::store::{Reader, StoreError};
use luc_events::tables::{
    Asleep, BriefWait, ClockSample, Connection, Counter, Data, Lost, Message, Packet, Program,
    Request, Row, Sync, Task, ThreadStart, Token, Trace, Wait,
};
use luc_fleet_rings::{Window, window};

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tables {
    OfClocks,
    /// Tables of clocks and of threads.
    All,
}

/// Rows of one host's trace.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    /// Name of the host.
    pub name: String,
    pub directory: PathBuf,
    pub trace: Trace,
    /// Last row of each connection.
    pub connections: Vec<Connection>,
    /// Rows in order of time, as in all following tables.
    pub messages: Vec<Message>,
    /// Tokens that name requests in messages.
    pub tokens: Vec<Token>,
    pub packets: Vec<Packet>,
    pub clocks: Vec<ClockSample>,
    pub lost: Vec<Lost>,
    pub tasks: Vec<Task>,
    /// Functions that threads run.
    pub starts: Vec<ThreadStart>,
    /// Programs that processes run.
    pub programs: Vec<Program>,
    /// Times in which threads were off their processors.
    pub waits: Vec<Wait>,
    /// Sums of waits that are too brief for their own rows.
    pub brief_waits: Vec<BriefWait>,
    /// Threads that slept when the trace began or ended.
    pub asleep: Vec<Asleep>,
    /// Events that threads counted on processors.
    pub counters: Vec<Counter>,
    /// Times in which threads were in a call such as fsync.
    pub syncs: Vec<Sync>,
    /// Requests of disks in order of completion.
    pub requests: Vec<Request>,
    /// Owners of data that was written.
    pub data: Vec<Data>,
}

/// Reads all traces, each of another host.
///
/// # Errors
/// [`FleetError::Trace`], [`FleetError::NotOfFleet`], [`FleetError::SameHost`], [`FleetError::SameName`].
pub fn read(sources: &[TraceArgument], tables: Tables) -> Result<Vec<Recorded>, FleetError> {
    read_within(sources, tables, None)
}

/// Like [`read`], but reads only ring segments that overlap the window.
///
/// # Errors
/// As [`read`]; [`WindowError::NotInRing`](crate::WindowError::NotInRing);
/// [`WindowError::NoRing`](crate::WindowError::NoRing) for a window of a trace that is no ring.
pub fn read_within(
    sources: &[TraceArgument],
    tables: Tables,
    window: Option<Window>,
) -> Result<Vec<Recorded>, FleetError> {
    let mut all: Vec<Recorded> = Vec::with_capacity(sources.len());
    read_each(sources, tables, window, |recorded| {
        all.push(recorded);
        Ok(())
    })?;
    Ok(all)
}

/// Reads one trace after the other, and passes each to `take` before it reads the next.
pub(crate) fn read_each(
    sources: &[TraceArgument],
    tables: Tables,
    window: Option<Window>,
    mut take: impl FnMut(Recorded) -> Result<(), FleetError>,
) -> Result<(), FleetError> {
    let mut known: Vec<HostIdentity> = Vec::with_capacity(sources.len());
    for source in sources {
        let recorded =
            window::read(&source.directory, window, |reader| read_tables(reader, source, tables))?;
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
    reader: &Reader,
    source: &TraceArgument,
    tables: Tables,
) -> Result<Recorded, FleetError> {
    let trace = reader.trace().clone();
    let mut recorded = Recorded {
        name: choose_name(source, &trace),
        directory: source.directory.clone(),
        clocks: rows(reader, &[])?,
        trace,
        ..Recorded::default()
    };
    if recorded.clocks.is_empty() {
        return Err(FleetError::NotOfFleet { path: recorded.directory });
    }
    // The last sample of a ring's segment is the first of the next.
    recorded.clocks.dedup_by_key(|row| row.at_ns);
    // Rows come in order of time, so that the last one stays.
    let mut connections = HashMap::new();
    for row in rows::<Connection>(reader, &[])? {
        connections.insert(row.connection, row);
    }
    recorded.connections = connections.into_values().collect();
    recorded.connections.sort_unstable_by_key(|row| row.connection);
    recorded.messages = rows(reader, &[])?;
    recorded.tokens = rows(reader, &[])?;
    recorded.packets = rows(reader, &[])?;
    recorded.lost = rows(reader, &[])?;
    if tables == Tables::All {
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

pub(crate) fn rows<T: Row>(
    reader: &Reader,
    without: &'static [&'static str],
) -> Result<Vec<T>, StoreError> {
    reader.rows_without::<T>(without)?.collect()
}

/// Name of a host: the user's, otherwise the trace's, otherwise the directory's.
pub(crate) fn choose_name(source: &TraceArgument, trace: &Trace) -> String {
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
    trace: Trace,
    sockets: HashSet<SocketId>,
}

impl HostIdentity {
    fn of(recorded: &Recorded) -> Self {
        // Unix sockets have no random numbers, and two hosts count their cookies alike.
        let socket = |row: &Connection| -> Option<SocketId> {
            let is_known = !row.family.is_within_host()
                && row.sequences != Sequences::Unknown
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
fn are_of_one_boot(first: &Trace, second: &Trace) -> bool {
    let booted_ns = |trace: &Trace| {
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
    use luc_events::codes::Family;

    use super::*;

    #[test]
    fn hosts_are_one_if_a_socket_of_tcp_is_in_both_traces() {
        let of = |name: &str, family, initial_sent| {
            HostIdentity::of(&Recorded {
                name: name.to_owned(),
                directory: PathBuf::from(name),
                connections: vec![Connection {
                    connection: ConnectionId(1),
                    cookie: 4097,
                    namespace: Inode(1),
                    family,
                    sequences: Sequences::Seen,
                    initial_sent,
                    ..Connection::default()
                }],
                ..Recorded::default()
            })
        };
        let differs =
            |first: HostIdentity, second: HostIdentity| first.differs_from(&second).is_ok();
        assert!(!differs(of("a", Family::Ipv4, 7), of("b", Family::Ipv4, 7)));
        assert!(differs(of("a", Family::Ipv4, 7), of("b", Family::Ipv4, 8)));
        // Two hosts have counted their first unix sockets alike.
        assert!(differs(of("a", Family::Unix, 0), of("b", Family::Unix, 0)));
    }
}
