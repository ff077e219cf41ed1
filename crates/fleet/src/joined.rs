//! The traces of many hosts, put together.

use std::collections::{BTreeMap, HashMap};

use luc_events::tables::Trace;
use luc_fleet_clocks::HostId;
use luc_fleet_core::{Connections, End, EndId, Thread};
use luc_units::plain;
use serde::Serialize;

use crate::brand::Brands;
use crate::clocks::Clocks;
use crate::disks::Disks;
use crate::error::FleetError;
use crate::map::{self, Rows};
use crate::read::Recorded;
use crate::syncs::Syncs;
use crate::task::Tasks;
use crate::times::Times;
use crate::waits::{self, Waits};

/// The traces of many hosts: their rows, which connections they share, and how their clocks relate.
#[derive(Debug)]
pub struct Joined {
    pub(crate) hosts: Vec<Host>,
    pub(crate) rows: Rows,
    pub(crate) ends: HashMap<EndId, End>,
    pub(crate) connections: Connections,
    pub(crate) clocks: Clocks,
    /// How many segments were sent again to each end, if any.
    sent_again: HashMap<EndId, u32>,
}

/// What is kept of a host beside its rows.
#[derive(Debug)]
pub(crate) struct Host {
    /// Without what steers a terminal.
    pub(crate) name: String,
    pub(crate) trace: Trace,
    pub(crate) summary: HostSummary,
    /// Whether each wait that a thread ended has a row of its own.
    pub(crate) has_all_waits: bool,
    /// What its threads did with their time.
    pub(crate) times: Times,
    tasks: Tasks,
    brands: Brands,
    waits: Waits,
    syncs: Syncs,
    disks: Disks,
}

/// A host's trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostSummary {
    /// What it is called.
    pub name: String,
    /// Where its trace is.
    pub directory: String,
    /// Its kernel's release.
    pub kernel: String,
    /// Its processors.
    pub processors: u32,
    /// From the first to the last thing in the trace, ns.
    pub length_ns: u64,
    /// Whether the recorder ended by itself; else it is still recording, or was killed.
    pub is_complete: bool,
    /// What the recording was limited to, in words; empty: nothing. Connections and packets are everybody's anyway.
    pub filters: String,
    /// How many connections it has.
    pub connections: u64,
    /// How many sends and receives.
    pub messages: u64,
    /// How many packets.
    pub packets: u64,
    /// Segments that were sent again.
    pub retransmits: u64,
    /// How many rows were lost, by table.
    pub lost: BTreeMap<String, u64>,
}

impl Joined {
    /// Of all hosts' rows.
    ///
    /// # Errors
    /// [`FleetError::Clock`] where a host's clock samples cannot be.
    pub fn new(recorded: Vec<Recorded>) -> Result<Self, FleetError> {
        let mut rows = Rows::default();
        let mut hosts = Vec::with_capacity(recorded.len());
        let mut retransmits = HashMap::new();
        for (host, recorded) in recorded.iter().enumerate() {
            let tasks = Tasks::new(&recorded.tasks);
            let host = HostId(host as u32);
            map::add(host, recorded, &tasks, &mut rows);
            for row in recorded
                .connections
                .iter()
                .filter(|row| row.retransmits > 0)
            {
                let connection = u64::from(row.connection.0);
                retransmits.insert(EndId { host, connection }, row.retransmits);
            }
            hosts.push(Host::new(recorded, tasks));
        }
        let connections = Connections::pair(&rows.ends, &rows.messages, &rows.packets);
        let clocks = Clocks::new(&recorded, &connections, &rows.packets)?;
        Ok(Self {
            hosts,
            ends: rows.ends.iter().map(|end| (end.id(), *end)).collect(),
            rows,
            sent_again: sent_again(&connections, &retransmits),
            connections,
            clocks,
        })
    }

    /// How many segments were sent again to an end.
    pub(crate) fn sent_again_to(&self, end: EndId) -> u64 {
        self.sent_again.get(&end).copied().unwrap_or(0).into()
    }

    pub(crate) fn host(&self, host: HostId) -> &Host {
        &self.hosts[host.0 as usize]
    }

    pub(crate) fn name(&self, host: HostId) -> String {
        self.host(host).name.clone()
    }
}

impl Host {
    fn new(recorded: &Recorded, tasks: Tasks) -> Self {
        Self {
            name: plain(&recorded.name),
            trace: recorded.trace.clone(),
            summary: summary(recorded),
            has_all_waits: waits::are_all_there(recorded),
            times: Times::new(recorded),
            tasks,
            brands: Brands::new(&recorded.starts, &recorded.programs),
            waits: Waits::new(recorded),
            syncs: Syncs::new(recorded),
            disks: Disks::new(recorded),
        }
    }

    /// A thread's name; its id stands beside it. One that has only its process' name has the function that it runs
    /// beside it.
    pub(crate) fn thread_name(&self, thread: Thread) -> String {
        let Thread { id, start_ns } = thread;
        let Some(name) = self.tasks.name(id, start_ns) else {
            return "thread".to_owned();
        };
        let process = self.tasks.process(id, start_ns);
        let of_process = process.and_then(|process| self.tasks.name(process, start_ns));
        let is_its_own = of_process != Some(name);
        match self.brands.routine(id, start_ns).filter(|_| !is_its_own) {
            Some(routine) => format!("{} ({routine})", plain(name)),
            None => plain(name),
        }
    }

    /// The name of a process as of a time: that of its first thread, and what it interprets.
    pub(crate) fn process_name(&self, process: u32, at_ns: u64) -> String {
        let name = self.tasks.name(process, at_ns).map(plain);
        let name = name.unwrap_or_else(|| format!("process {process}"));
        match self.brands.script(process, at_ns) {
            Some(script) => format!("{name} {script}"),
            None => name,
        }
    }

    /// Who threads are.
    pub(crate) fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// The id of a thread's process; `None`: the trace does not have it.
    pub(crate) fn process_of(&self, thread: Thread) -> Option<u32> {
        self.tasks.process(thread.id, thread.start_ns)
    }

    /// When threads were in a call such as fsync.
    pub(crate) fn syncs(&self) -> &Syncs {
        &self.syncs
    }

    /// What disks did for whom.
    pub(crate) fn disks(&self) -> &Disks {
        &self.disks
    }

    /// What is known of a thread's waits.
    pub(crate) fn waits(&self) -> &Waits {
        &self.waits
    }
}

/// How many segments were sent again to each end, of how many each has sent again.
fn sent_again(connections: &Connections, retransmits: &HashMap<EndId, u32>) -> HashMap<EndId, u32> {
    let pairs = connections.pairs.iter();
    let ways = pairs.flat_map(|pair| [pair.ends, [pair.ends[1], pair.ends[0]]]);
    ways.filter_map(|[from, to]| Some((to, *retransmits.get(&from)?)))
        .collect()
}

fn summary(recorded: &Recorded) -> HostSummary {
    let trace = &recorded.trace;
    let last_ns = recorded.clocks.iter().map(|row| row.at_ns).max();
    let end_ns = if trace.end_ns > 0 {
        trace.end_ns
    } else {
        last_ns.unwrap_or(0)
    };
    let mut lost = BTreeMap::new();
    for row in &recorded.lost {
        let count: &mut u64 = lost.entry(plain(&row.place)).or_default();
        *count = count.saturating_add(row.count);
    }
    let retransmits = recorded
        .connections
        .iter()
        .map(|row| u64::from(row.retransmits));
    HostSummary {
        name: plain(&recorded.name),
        directory: plain(&recorded.directory.display().to_string()),
        kernel: plain(&trace.kernel),
        processors: trace.processors,
        length_ns: end_ns.saturating_sub(trace.start_ns),
        is_complete: trace.end_ns > 0,
        filters: plain(&trace.filters),
        connections: recorded.connections.len() as u64,
        messages: recorded.messages.len() as u64,
        packets: recorded.packets.len() as u64,
        retransmits: retransmits.sum(),
        lost,
    }
}
