//! Splits one kernel's trace into those of several hosts. Each has the events of its network namespace, and a clock of
//! its own.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use luc_events::store::{StoreError, TableRow, TraceReader, TraceWriter};
use luc_events::tables::{
    BlockRequest, BriefWait, ClockSample, ConnectionMessage, FileData, FsyncCall, LostEvents,
    OffCpuWait, SocketConnection, TcpPacket, ThreadInfo, TraceDescription,
};
use luc_events::{ConnectionId, Inode, Pid, TraceEvent};
use luc_harness::error::EvaluateError;
use luc_harness::harness::Harness;

use crate::answer::Answer;

/// Offsets of the clocks from the kernel's in ns, and their drifts in ns each second.
const CLOCKS: [(i64, i64); 4] =
    [(0, 0), (86_400_000_000_123, 40_000), (7_000_456, -25_000), (-3_000_789, 10_000)];

/// Part of a trace that belongs to a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostPart {
    pub(crate) name: String,
    /// Number of its network namespace.
    pub(crate) namespace: u64,
    /// Processes that run on it. Those on no host's list belong to every host.
    pub(crate) processes: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    offset_ns: i64,
    drift_ns_per_s: i64,
    since_ns: u64,
}

impl Clock {
    /// Returns the clock of the host of this index, since a time of the kernel's clock.
    fn of(place: usize, since_ns: u64) -> Self {
        let (offset_ns, drift_ns_per_s) = CLOCKS[place % CLOCKS.len()];
        Self { offset_ns, drift_ns_per_s, since_ns }
    }

    /// Returns its reading when the kernel's clock shows `at_ns`. 0 stays "not known".
    pub(crate) fn time_ns(&self, at_ns: u64) -> u64 {
        if at_ns == 0 {
            return 0;
        }
        let since_ns = i128::from(at_ns) - i128::from(self.since_ns);
        let drift_ns = since_ns * i128::from(self.drift_ns_per_s) / 1_000_000_000;
        let shown_ns = i128::from(at_ns) + i128::from(self.offset_ns) + drift_ns;
        u64::try_from(shown_ns).unwrap_or(0)
    }

    fn set(&self, times_ns: &mut [&mut u64]) {
        for time_ns in times_ns {
            **time_ns = self.time_ns(**time_ns);
        }
    }
}

/// Makes the clocks of `hosts` hosts.
pub(crate) fn clocks(from: &Path, hosts: usize) -> Result<Vec<Clock>, EvaluateError> {
    let since_ns = TraceReader::open(from).map_err(unusable)?.trace().start_ns;
    Ok((0..hosts).map(|place| Clock::of(place, since_ns)).collect())
}

/// Explains a trace as those of several hosts.
pub(crate) fn explained(
    harness: &Harness,
    trace: &Path,
    hosts: &[HostPart],
    clocks: &[Clock],
) -> Result<Answer, EvaluateError> {
    let all = harness.path("hosts");
    let parts = write_all(trace, hosts, clocks, &all).map_err(unusable)?;
    let parts: Vec<&Path> = parts.iter().map(PathBuf::as_path).collect();
    let answer = Answer::of(harness, &parts)?;
    fs::remove_dir_all(&all).map_err(EvaluateError::file("remove", &all))?;
    Ok(answer)
}

fn unusable(error: StoreError) -> EvaluateError {
    EvaluateError::Trace(Box::new(error))
}

/// Writes the traces of all hosts, each into a directory of its name, and returns the directories.
fn write_all(
    from: &Path,
    hosts: &[HostPart],
    clocks: &[Clock],
    to: &Path,
) -> Result<Vec<PathBuf>, StoreError> {
    let mut parts = Vec::new();
    for (place, (host, clock)) in hosts.iter().zip(clocks).enumerate() {
        let others = hosts.iter().enumerate().filter(|(at, _)| *at != place);
        let others = others.flat_map(|(_, host)| host.processes.iter().copied());
        let part = to.join(&host.name);
        write(from, host, &others.collect(), *clock, &part)?;
        parts.push(part);
    }
    Ok(parts)
}

/// Writes the trace of a host. `others` are the processes of all others.
fn write(
    from: &Path,
    host: &HostPart,
    others: &BTreeSet<u32>,
    clock: Clock,
    to: &Path,
) -> Result<(), StoreError> {
    let reader = TraceReader::open(from)?;
    let trace = TraceDescription {
        host: host.name.clone(),
        start_ns: clock.time_ns(reader.trace().start_ns),
        ..reader.trace().clone()
    };
    let begin = TraceDescription { at_ns: trace.start_ns, end_ns: 0, ..trace.clone() };
    let mut writer = TraceWriter::create(to, begin)?;
    network(&reader, &mut writer, host, clock)?;
    threads(&reader, &mut writer, others, clock)?;
    disks(&reader, &mut writer, others, clock)?;
    let end_ns = clock.time_ns(reader.trace().end_ns);
    writer.finish(TraceDescription { at_ns: end_ns, end_ns, ..trace })
}

/// Copies the events of the host's namespace, and its clocks.
fn network(
    reader: &TraceReader,
    writer: &mut TraceWriter,
    host: &HostPart,
    clock: Clock,
) -> Result<(), StoreError> {
    let namespace = Inode(host.namespace);
    let mut sockets: BTreeSet<ConnectionId> = BTreeSet::new();
    copy(reader, writer, |row: &mut SocketConnection| {
        clock.set(&mut [&mut row.at_ns, &mut row.opened_ns, &mut row.closed_ns]);
        row.namespace == namespace && {
            sockets.insert(row.connection);
            true
        }
    })?;
    copy(reader, writer, |row: &mut ConnectionMessage| {
        clock.set(&mut [&mut row.at_ns]);
        sockets.contains(&row.connection)
    })?;
    copy(reader, writer, |row: &mut TcpPacket| {
        clock.set(&mut [&mut row.at_ns]);
        sockets.contains(&row.connection)
    })?;
    copy(reader, writer, |row: &mut ClockSample| {
        // Both clocks are off by the same, so that their rates stay as NTP has them.
        let off_ns = clock.time_ns(row.at_ns).wrapping_sub(row.at_ns);
        row.at_ns = row.at_ns.wrapping_add(off_ns);
        row.raw_ns = row.raw_ns.wrapping_add(off_ns);
        true
    })?;
    copy(reader, writer, |row: &mut LostEvents| {
        clock.set(&mut [&mut row.at_ns]);
        true
    })
}

/// Copies the events of threads, without other hosts' processes.
fn threads(
    reader: &TraceReader,
    writer: &mut TraceWriter,
    others: &BTreeSet<u32>,
    clock: Clock,
) -> Result<(), StoreError> {
    let mut elsewhere: BTreeSet<Pid> = BTreeSet::new();
    copy(reader, writer, |row: &mut ThreadInfo| {
        clock.set(&mut [&mut row.at_ns, &mut row.start_ns, &mut row.exit_ns]);
        let is_here = !others.contains(&row.process.0);
        if !is_here {
            elsewhere.insert(row.thread);
        }
        is_here
    })?;
    copy(reader, writer, |row: &mut OffCpuWait| {
        clock.set(&mut [&mut row.off_ns, &mut row.woken_ns, &mut row.on_ns]);
        // Between namespaces the packet of a sender wakes in the sender's name; between hosts it is an interrupt.
        if elsewhere.contains(&row.waker) {
            row.waker = Pid(0);
        }
        !others.contains(&row.process.0)
    })?;
    copy(reader, writer, |row: &mut BriefWait| {
        clock.set(&mut [&mut row.since_ns, &mut row.until_ns]);
        !others.contains(&row.process.0)
    })?;
    copy(reader, writer, |row: &mut FsyncCall| {
        clock.set(&mut [
            &mut row.enter_ns,
            &mut row.exit_ns,
            &mut row.file_system_enter_ns,
            &mut row.file_system_exit_ns,
        ]);
        !others.contains(&row.process.0)
    })
}

/// Copies the events of disks, without other hosts' processes.
fn disks(
    reader: &TraceReader,
    writer: &mut TraceWriter,
    others: &BTreeSet<u32>,
    clock: Clock,
) -> Result<(), StoreError> {
    copy(reader, writer, |row: &mut BlockRequest| {
        clock.set(&mut [&mut row.insert_ns, &mut row.issue_ns, &mut row.complete_ns]);
        !others.contains(&row.issuer_process.0)
    })?;
    copy(reader, writer, |row: &mut FileData| {
        clock.set(&mut [&mut row.at_ns]);
        !others.contains(&row.process.0)
    })
}

/// Copies rows of a table. `change` adapts each row and returns whether it belongs to the host.
fn copy<T: TableRow + Into<TraceEvent>>(
    reader: &TraceReader,
    writer: &mut TraceWriter,
    mut change: impl FnMut(&mut T) -> bool,
) -> Result<(), StoreError> {
    for row in reader.rows::<T>()? {
        let mut row = row?;
        if change(&mut row) {
            writer.add(row)?;
        }
    }
    Ok(())
}
