//! Threads of one host, collected while its trace is read.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use luc_events::event_kinds::SocketRole;
use luc_events::{ConnectionId, Pid};
use luc_fleet_requests::ThreadIdentity;
use luc_waits::{
    GraphWait, SyncCallSpan, ThreadFacts, ThreadTables, TimeSpan, TraceThread, TraceThreads,
    WaitLabels,
};

use crate::read_hosts::RecordedHost;

/// Threads, with rows that only the graph of waits needs.
#[derive(Debug, Default)]
pub(crate) struct GraphThreads {
    threads: TraceThreads,
    /// Begin of each thread that began in the trace.
    started_ns: Vec<Option<u64>>,
    /// Sleeps that the end of the trace cut.
    unfinished: Vec<GraphWait>,
    syncs: Vec<SyncCallSpan>,
}

impl GraphThreads {
    /// Collects the threads of all rows, which are in order of time.
    pub(crate) fn new(recorded: &RecordedHost) -> Self {
        let trace = &recorded.trace;
        let tables = ThreadTables {
            tasks: &recorded.tasks,
            starts: &recorded.starts,
            programs: &recorded.programs,
            span: Some(TimeSpan::new(trace.start_ns, end_ns(recorded))),
        };
        let mut threads = TraceThreads::new(tables, &ports(recorded));
        for row in &recorded.waits {
            threads.recorded_at(row.thread, row.on_ns);
            if !row.waker.is_none() {
                threads.at(row.waker, row.woken_ns);
            }
        }
        let mut last_user: HashMap<ConnectionId, TraceThread> = HashMap::new();
        for row in &recorded.messages {
            let thread = threads.at(row.thread, row.at_ns);
            last_user.insert(row.connection, thread);
        }
        let peers: HashMap<ConnectionId, ConnectionId> =
            recorded.connections.iter().map(|row| (row.connection, row.peer)).collect();
        let peer = |connection: ConnectionId| last_user.get(peers.get(&connection)?).copied();
        let unfinished = recorded.asleep.iter();
        let unfinished: Vec<GraphWait> =
            unfinished.filter_map(|row| threads.unfinished(row, peer(row.connection))).collect();
        let syncs = recorded.syncs.iter().map(|row| threads.sync(row)).collect();
        let facts = threads.facts(&mut WaitLabels::default());
        let started_ns = facts.iter().map(|facts| facts.started_ns).collect();
        Self { threads, started_ns, unfinished, syncs }
    }

    /// Returns the facts of all threads.
    pub(super) fn facts(&self, labels: &mut WaitLabels) -> Vec<ThreadFacts> {
        self.threads.facts(labels)
    }

    /// Returns the thread with an identity, if it has a row.
    pub(super) fn known(&self, thread: ThreadIdentity) -> Option<TraceThread> {
        self.threads.known_at(Pid(thread.id), thread.start_ns)
    }

    /// Returns the number that the kernel gave a thread, and a time at which the thread had it; `None`: since the
    /// trace began.
    pub(super) fn number_and_time(&self, thread: TraceThread) -> (u32, Option<u64>) {
        let number = self.threads.number(thread).map_or(0, |number| number.0);
        (number, self.started_ns.get(thread.0 as usize).copied().flatten())
    }

    pub(super) fn unfinished(&self) -> &[GraphWait] {
        &self.unfinished
    }

    pub(super) fn syncs(&self) -> &[SyncCallSpan] {
        &self.syncs
    }
}

/// Returns the end of a trace: that of its last row if the recorder did not end by itself.
fn end_ns(recorded: &RecordedHost) -> u64 {
    let last_ns = recorded.clocks.iter().map(|row| row.at_ns).max();
    match recorded.trace.end_ns {
        0 => last_ns.unwrap_or(0),
        end_ns => end_ns,
    }
}

/// Returns the ports and paths at which each process was connected to.
fn ports(recorded: &RecordedHost) -> BTreeMap<u32, BTreeSet<String>> {
    let served = recorded.connections.iter().filter(|row| row.side == SocketRole::Server);
    let name = |port: u32, path: &str| if port > 0 { port.to_string() } else { path.to_owned() };
    let mut names: HashMap<ConnectionId, String> =
        served.map(|row| (row.connection, name(row.local_port, &row.local_address))).collect();
    let mut ports: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    for row in &recorded.messages {
        if let Some(name) = names.remove(&row.connection).filter(|name| !name.is_empty()) {
            ports.entry(row.process.0).or_default().insert(name);
        }
    }
    ports
}
