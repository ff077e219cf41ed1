//! The rows of the traces.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use luc_events::Inode;
use luc_events::codes::Sequences;
use luc_events::store::{Reader, StoreError};
use luc_events::tables::{
    Asleep, BriefWait, ClockSample, Connection, Counter, Data, Lost, Message, Packet, Program,
    Request, Row, Sync, Task, ThreadStart, Token, Trace, Wait,
};
use luc_fleet_rings::{Window, window};

use crate::error::FleetError;
use crate::source::Source;

/// Two readings of when one host was booted are not further apart: NTP moves CLOCK_REALTIME.
const SAME_BOOT_NS: u64 = 10_000_000;

/// Columns of the table `sync` that say nothing of when a thread was in a call.
const OF_FILES: &[&str] = &[
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
    /// What threads did, too.
    All,
}

/// The rows of one host's trace.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    /// What the host is called.
    pub name: String,
    /// Where the trace is.
    pub directory: PathBuf,
    /// What the trace says of itself.
    pub trace: Trace,
    /// Of each connection the last row.
    pub connections: Vec<Connection>,
    /// In the order of their times, as all that follow.
    pub messages: Vec<Message>,
    /// Names of requests in messages.
    pub tokens: Vec<Token>,
    /// Packets that were kept.
    pub packets: Vec<Packet>,
    pub clocks: Vec<ClockSample>,
    pub lost: Vec<Lost>,
    pub tasks: Vec<Task>,
    /// Which functions they run.
    pub starts: Vec<ThreadStart>,
    /// Which programs processes run.
    pub programs: Vec<Program>,
    /// When threads were not on a processor.
    pub waits: Vec<Wait>,
    /// The same, of what is too brief for a row.
    pub brief_waits: Vec<BriefWait>,
    /// Which slept when the trace began, and when it ended.
    pub asleep: Vec<Asleep>,
    /// What they counted while they were on a processor.
    pub counters: Vec<Counter>,
    /// When they were in a call such as fsync.
    pub syncs: Vec<Sync>,
    /// What disks did, in the order in which it was complete.
    pub requests: Vec<Request>,
    /// Whose data was written.
    pub data: Vec<Data>,
}

/// Reads all traces. Each is of another host.
///
/// # Errors
/// What [`Reader`] says of a trace that cannot be read; [`FleetError::NotOfFleet`], [`FleetError::SameHost`],
/// [`FleetError::SameName`].
pub fn read(sources: &[Source], tables: Tables) -> Result<Vec<Recorded>, FleetError> {
    read_within(sources, tables, None)
}

/// The same, of rings only what segments have that have something of a window.
///
/// # Errors
/// As [`read`]; [`WindowError::NotInRing`](crate::WindowError::NotInRing);
/// [`WindowError::NoRing`](crate::WindowError::NoRing) where a window is asked for of another trace.
pub fn read_within(
    sources: &[Source],
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

/// Reads one trace after the other, and has each taken before the next is read.
pub(crate) fn read_each(
    sources: &[Source],
    tables: Tables,
    window: Option<Window>,
    mut take: impl FnMut(Recorded) -> Result<(), FleetError>,
) -> Result<(), FleetError> {
    let mut known: Vec<Identity> = Vec::with_capacity(sources.len());
    for source in sources {
        let recorded = one(source, tables, window)?;
        let identity = Identity::of(&recorded);
        for other in &known {
            other.differs_from(&identity)?;
        }
        known.push(identity);
        take(recorded)?;
    }
    Ok(())
}

fn one(source: &Source, tables: Tables, window: Option<Window>) -> Result<Recorded, FleetError> {
    window::read(&source.directory, window, |reader| rows_of(reader, source, tables))
}

fn rows_of(reader: &Reader, source: &Source, tables: Tables) -> Result<Recorded, FleetError> {
    let trace = reader.trace().clone();
    let mut recorded = Recorded {
        name: name(source, &trace),
        directory: source.directory.clone(),
        clocks: rows(reader, &[])?,
        trace,
        ..Recorded::default()
    };
    if recorded.clocks.is_empty() {
        return Err(FleetError::NotOfFleet { path: recorded.directory });
    }
    // What ends one segment of a ring begins the next.
    recorded.clocks.dedup_by_key(|row| row.at_ns);
    // They come in the order of their times, so that the last one counts.
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
        let asleep = &mut recorded.asleep;
        asleep.retain(|row| seen.insert((row.thread, row.at_ns)));
        recorded.counters = rows(reader, &["process", "cgroup"])?;
        recorded.syncs = rows(reader, OF_FILES)?;
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

/// The user's name, else the trace's, else the directory's.
pub(crate) fn name(source: &Source, trace: &Trace) -> String {
    let own = || Some(trace.host.clone()).filter(|name| !name.is_empty());
    let directory = || {
        let path = source.directory.canonicalize().unwrap_or_default();
        let name = path.file_name().unwrap_or(source.directory.as_os_str());
        name.to_string_lossy().into_owned()
    };
    source.name.clone().or_else(own).unwrap_or_else(directory)
}

/// A socket: its cookie, namespace and initial sequence numbers, of which 64 bits are random.
type Socket = (u64, Inode, u32, u32);

/// What tells the trace of one host from that of another.
#[derive(Debug)]
struct Identity {
    name: String,
    directory: PathBuf,
    trace: Trace,
    sockets: HashSet<Socket>,
}

impl Identity {
    fn of(recorded: &Recorded) -> Self {
        // Unix sockets have no random numbers, and two hosts count their cookies alike.
        let socket = |row: &Connection| -> Option<Socket> {
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

    /// Refuses a second trace of a host, and a second host of a name.
    fn differs_from(&self, second: &Self) -> Result<(), FleetError> {
        let is_same = !self.sockets.is_disjoint(&second.sockets)
            || are_of_one_boot(&self.trace, &second.trace);
        let [first, second] =
            [self, second].map(|one| (one.name.as_str(), one.directory.as_path()));
        differ(first, second, is_same)
    }
}

/// Refuses a second trace of a host, and a second host of a name, by names and directories, and whether the hosts are one.
fn differ(
    first: (&str, &Path),
    second: (&str, &Path),
    is_same_host: bool,
) -> Result<(), FleetError> {
    let [(name, first), (other, second)] = [first, second];
    let (first, second) = (first.to_owned(), second.to_owned());
    if is_same_host {
        return Err(FleetError::SameHost { first, second });
    }
    if name == other {
        let name = luc_units::plain(name);
        return Err(FleetError::SameName { name, first, second });
    }
    Ok(())
}

/// Whether host, kernel and the time of the boot are the same.
fn are_of_one_boot(first: &Trace, second: &Trace) -> bool {
    let booted_ns = |trace: &Trace| {
        let booted_ns = trace.realtime_offset_ns.checked_sub(trace.boottime_offset_ns);
        booted_ns.filter(|&booted_ns| booted_ns > 0)
    };
    let (Some(first_ns), Some(second_ns)) = (booted_ns(first), booted_ns(second)) else {
        return false;
    };
    (&first.host, &first.kernel) == (&second.host, &second.kernel)
        && first_ns.abs_diff(second_ns) <= SAME_BOOT_NS
}

#[cfg(test)]
mod tests {
    use luc_events::ConnectionId;
    use luc_events::codes::Family;

    use super::*;

    #[test]
    fn hosts_are_one_if_a_socket_of_tcp_is_in_both_traces() {
        let of = |name: &str, family, initial_sent| {
            Identity::of(&Recorded {
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
        let differ = |first: Identity, second: Identity| first.differs_from(&second).is_ok();
        assert!(!differ(of("a", Family::Ipv4, 7), of("b", Family::Ipv4, 7)));
        assert!(differ(of("a", Family::Ipv4, 7), of("b", Family::Ipv4, 8)));
        // Two hosts have counted their first unix sockets alike.
        assert!(differ(of("a", Family::Unix, 0), of("b", Family::Unix, 0)));
    }
}
