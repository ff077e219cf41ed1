//! Joins the traces of many hosts.

mod join_hosts;

use std::collections::{BTreeMap, HashMap};

use luc_events::WaitCause;
use luc_events::tables::TraceDescription;
use luc_fleet_clocks::HostId;
use luc_fleet_requests::{
    ConnectionEnd, Connections, EndAddress, EndId, HostWaits, Requests, ThreadIdentity, ThreadWait,
};
use luc_units::plain;
use serde::Serialize;

use crate::convert_rows::ConvertedRows;
use crate::counters::ThreadEvents;
use crate::endpoint::Endpoint;
use crate::host_clocks::HostClocks;
use crate::host_tasks::HostTasks;
use crate::others_disk_work::ServedDiskRequests;
use crate::otlp::ProgramSpan;
use crate::read_hosts::RecordedHost;
use crate::thread_descriptions::ThreadDescriptions;
use crate::thread_times::ThreadTimes;
use crate::wait_causes::{self, WaitCauses};
use crate::wait_graph::GraphThreads;
pub(crate) use join_hosts::packets_of;

/// Rows of many hosts, the connections that they share, and how their clocks relate.
#[derive(Debug)]
pub struct JoinedTraces {
    pub(crate) hosts: Vec<JoinedHost>,
    pub(crate) rows: ConvertedRows,
    pub(crate) ends: HashMap<EndId, ConnectionEnd>,
    pub(crate) connections: Connections,
    pub(crate) clocks: HostClocks,
    /// Spans that programs wrote of their requests.
    pub(crate) spans: Vec<ProgramSpan>,
    /// Number of segments that were sent again to each end, where there are any.
    sent_again: HashMap<EndId, u32>,
}

/// Data about a host, apart from its rows.
#[derive(Debug)]
pub(crate) struct JoinedHost {
    /// Name without control characters.
    pub(crate) name: String,
    pub(crate) trace: TraceDescription,
    pub(crate) summary: HostSummary,
    /// Whether each wait that a thread ended has its own row.
    pub(crate) has_all_waits: bool,
    pub(crate) times: ThreadTimes,
    /// Threads as the graph of waits knows them.
    pub(crate) threads: GraphThreads,
    tasks: HostTasks,
    brands: ThreadDescriptions,
    waits: WaitCauses,
    disks: ServedDiskRequests,
    counted: ThreadEvents,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostSummary {
    pub name: String,
    /// Directory of the trace.
    pub directory: String,
    pub kernel: String,
    pub processors: u32,
    /// Time from the first to the last row, ns.
    pub length_ns: u64,
    /// Whether the recorder ended by itself. Otherwise it still records, or was killed.
    pub is_complete: bool,
    /// Filters of the recording, in words; empty: none. Connections and packets are never filtered.
    pub filters: String,
    pub connections: u64,
    /// Number of sends and receives.
    pub messages: u64,
    pub packets: u64,
    /// Number of segments that were sent again.
    pub retransmits: u64,
    /// Number of lost rows by table.
    pub lost: BTreeMap<String, u64>,
}

impl JoinedTraces {
    /// Adds spans that programs wrote of their requests.
    #[must_use]
    pub fn with_spans(self, spans: Vec<ProgramSpan>) -> Self {
        Self { spans, ..self }
    }

    /// Waits of a host, with their causes.
    pub(crate) fn waits_of(&self, host: HostId) -> impl Iterator<Item = (ThreadWait, WaitCause)> {
        let waits = self.rows.waits.host(host);
        let causes = self.rows.causes.get(host.0 as usize);
        let known = self.host(host).waits();
        let rows = waits.into_iter().flat_map(HostWaits::iter).zip(causes.into_iter().flatten());
        rows.map(|(wait, cause)| {
            let asleep = known.asleep(wait.thread.id, wait.off_ns);
            (wait, asleep.unwrap_or(*cause))
        })
    }

    /// Formats an address for people.
    pub(crate) fn address(&self, address: EndAddress) -> String {
        self.rows.names.address(address)
    }

    /// Address of one side of an end, for people; empty if the end is unknown.
    pub(crate) fn end_address(
        &self,
        end: EndId,
        side: impl Fn(&ConnectionEnd) -> EndAddress,
    ) -> String {
        self.ends.get(&end).map_or_else(String::new, |end| self.address(side(end)))
    }

    /// Converts an offset of the core to the trace's. The core counts from the initial sequence number, if that is
    /// known.
    pub(crate) fn trace_offset(&self, end: EndId, first_byte: u64) -> u64 {
        let has_isn = self.ends.get(&end).is_some_and(|end| end.own_isn.is_some());
        first_byte.saturating_sub(u64::from(has_isn))
    }

    /// Finds the requests of all hosts, anew with each call.
    pub(crate) fn requests(&self) -> Requests {
        let rows = &self.rows;
        Requests::find(&rows.ends, &self.connections, &rows.messages, &rows.waits, |host| {
            self.host(host).has_all_waits
        })
    }

    /// Endpoint of an address; `None`: a unix socket without a name, or a pipe.
    pub(crate) fn endpoint(&self, address: EndAddress) -> Option<Endpoint> {
        match address {
            EndAddress::Internet(address) => Some(Endpoint::Port(address.port())),
            EndAddress::Unix(Some(_)) => Some(Endpoint::Path(self.address(address))),
            EndAddress::Unix(None) | EndAddress::Pipe(_) => None,
        }
    }

    /// Number of segments that were sent again to an end.
    pub(crate) fn sent_again_to(&self, end: EndId) -> u64 {
        self.sent_again.get(&end).copied().unwrap_or(0).into()
    }

    pub(crate) fn host(&self, host: HostId) -> &JoinedHost {
        &self.hosts[host.0 as usize]
    }

    pub(crate) fn name(&self, host: HostId) -> String {
        self.host(host).name.clone()
    }
}

impl JoinedHost {
    fn new(recorded: &RecordedHost, tasks: HostTasks) -> Self {
        Self {
            name: plain(&recorded.name),
            trace: recorded.trace.clone(),
            summary: summarize(recorded),
            has_all_waits: wait_causes::are_all_there(recorded),
            times: ThreadTimes::new(recorded),
            threads: GraphThreads::new(recorded),
            tasks,
            brands: ThreadDescriptions::new(&recorded.starts, &recorded.programs),
            waits: WaitCauses::new(recorded),
            disks: ServedDiskRequests::new(recorded),
            counted: ThreadEvents::new(&recorded.counters),
        }
    }

    /// Name of a thread, without its id. If it only has its process' name, its start routine follows in brackets.
    pub(crate) fn thread_name(&self, thread: ThreadIdentity) -> String {
        let ThreadIdentity { id, start_ns } = thread;
        let Some(name) = self.tasks.name(id, start_ns) else {
            return "thread".to_owned();
        };
        let process = self.tasks.process(id, start_ns);
        let process_name = process.and_then(|process| self.tasks.name(process, start_ns));
        match self.brands.routine(id, start_ns) {
            Some(routine) if process_name == Some(name) => format!("{} ({routine})", plain(name)),
            _ => plain(name),
        }
    }

    /// Name of a process at a time: that of its first thread, and the script that it interprets.
    pub(crate) fn process_name(&self, process: u32, at_ns: u64) -> String {
        let name = match self.tasks.name(process, at_ns) {
            Some(name) => plain(name),
            None => format!("process {process}"),
        };
        match self.brands.script(process, at_ns) {
            Some(script) => format!("{name} {script}"),
            None => name,
        }
    }

    /// Name of a process over the whole trace.
    pub(crate) fn any_process_name(&self, process: Option<u32>) -> String {
        match process {
            Some(id) => self.process_name(id, u64::MAX),
            None => "a process that is not known".to_owned(),
        }
    }

    pub(crate) fn tasks(&self) -> &HostTasks {
        &self.tasks
    }

    /// Id of a thread's process; `None`: the trace does not have it.
    pub(crate) fn process_of(&self, thread: ThreadIdentity) -> Option<u32> {
        self.tasks.process(thread.id, thread.start_ns)
    }

    pub(crate) fn disks(&self) -> &ServedDiskRequests {
        &self.disks
    }

    pub(crate) fn counted(&self) -> &ThreadEvents {
        &self.counted
    }

    /// Facts about waits that their rows do not have.
    pub(crate) fn waits(&self) -> &WaitCauses {
        &self.waits
    }
}

fn summarize(recorded: &RecordedHost) -> HostSummary {
    let trace = &recorded.trace;
    let last_ns = recorded.clocks.iter().map(|row| row.at_ns).max();
    let end_ns = if trace.end_ns > 0 { trace.end_ns } else { last_ns.unwrap_or(0) };
    let mut lost = BTreeMap::new();
    for row in &recorded.lost {
        let count: &mut u64 = lost.entry(plain(&row.place)).or_default();
        *count = count.saturating_add(row.count);
    }
    let retransmits = recorded.connections.iter().map(|row| u64::from(row.retransmits));
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

#[cfg(test)]
mod tests {
    use luc_events::Pid;
    use luc_events::tables::{self, AsleepThread};

    use super::*;

    #[test]
    fn the_rest_of_a_sleep_has_the_cause_that_was_seen_at_the_begin() {
        let wait = |off_ns, cause| tables::OffCpuWait {
            thread: Pid(7),
            off_ns,
            on_ns: off_ns + 10,
            cause,
            ..tables::OffCpuWait::default()
        };
        let damaged = tables::OffCpuWait { on_ns: 150, ..wait(200, WaitCause::Poll) };
        let joined = JoinedTraces::new(vec![RecordedHost {
            waits: vec![wait(100, WaitCause::Other), damaged, wait(300, WaitCause::Device)],
            asleep: vec![AsleepThread {
                thread: Pid(7),
                since_ns: 40,
                at_ns: 100,
                cause: WaitCause::Futex,
                ..AsleepThread::default()
            }],
            ..RecordedHost::default()
        }])
        .expect("joined");
        let all = joined.waits_of(HostId(0));
        let all: Vec<(u64, WaitCause)> = all.map(|(wait, cause)| (wait.off_ns, cause)).collect();
        assert_eq!(all, [(100, WaitCause::Futex), (300, WaitCause::Device)]);
    }
}
