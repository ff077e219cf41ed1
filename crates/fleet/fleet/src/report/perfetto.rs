//! Writes a trace for <https://ui.perfetto.dev>, with the hosts as machines.
//!
//! - Machine 0 has what connects the hosts. It has what one request waited for, and the requests and messages of
//!   each host's threads. Flows tie the two ends of a message, with the error of the clocks.
//! - Each host is a machine with its processes and threads: their times on processors, and their waits.
//!
//! All flows are on machine 0: the trace processor has a table of flows for each machine, and connects nothing
//! between two. All times are on the clock of one host; what has no time on it is left out.

mod machine;
mod path;
mod requests;
mod write_slices;

use std::io::Write;

use luc_events::tables::TraceDescription;
use luc_fleet_clocks::HostId;
use luc_report::perfetto::packets::{PacketWriter, TracedMachine, TrackKind};

use crate::explain::reports;
use crate::host_clocks::{HomeClock, error_ns};
use crate::report::{ReportError, ReportSource};

/// Name of machine 0, which is no host.
const ALL_HOSTS: &str = "all hosts";

/// Writes the trace.
///
/// # Errors
/// [`ReportError::Fleet`] if no request has the number; [`ReportError::Output`].
pub fn write(report: &ReportSource<'_>, out: impl Write) -> Result<(), ReportError> {
    let found = &report.found;
    let number = report.chosen.request.or((found.tops() > 0).then_some(1));
    let request = reports(found, number)?.pop();
    let hosts = &found.joined.hosts;
    let home = number.map_or(Ok(HostId(0)), |number| found.home(number))?;
    let trace = hosts
        .get(home.0 as usize)
        .map_or_else(TraceDescription::default, |host| host.trace.clone());
    let mut packets =
        PacketWriter::new(out, trace.start_ns, trace.boottime_offset_ns, trace.realtime_offset_ns);
    let mut file = TraceFile {
        packets: &mut packets,
        clock: Clock(found.joined.clocks.at_home(home)),
        next_track: 1,
        next_flow: 1,
    };
    file.packets.machine(TracedMachine { id: 0, name: ALL_HOSTS, kernel: "", processors: 0 });
    if let Some(request) = &request {
        path::write(&mut file, request, trace.start_ns);
    }
    requests::write(&mut file, found);
    for host in 0..hosts.len() {
        machine::write(&mut file, found, HostId(host as u32));
    }
    Ok(packets.finish()?)
}

/// Trace that is being written.
struct TraceFile<'a, W> {
    packets: &'a mut PacketWriter<W>,
    clock: Clock<'a>,
    next_track: u64,
    next_flow: u64,
}

impl<W: Write> TraceFile<'_, W> {
    fn track(&mut self, kind: TrackKind<'_>) -> u64 {
        let track = self.next_track;
        self.next_track += 1;
        self.packets.describe(track, kind);
        track
    }

    fn flow(&mut self) -> u64 {
        self.next_flow += 1;
        self.next_flow - 1
    }
}

/// Clock that all times are on.
struct Clock<'a>(HomeClock<'a>);

/// Time on that clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PlacedTime {
    at_ns: u64,
    /// Error due to clocks; `None`: unbounded.
    error_ns: Option<u64>,
}

impl Clock<'_> {
    /// Places a time of a host's CLOCK_MONOTONIC; `None`: unknown.
    fn place(&self, host: HostId, at_ns: u64) -> Option<PlacedTime> {
        let placed = self.0.place_ns(host, at_ns)?;
        Some(PlacedTime { at_ns: u64::try_from(placed.at_ns?).ok()?, error_ns: error_ns(&placed) })
    }

    fn place_ns(&self, host: HostId, at_ns: u64) -> Option<u64> {
        Some(self.place(host, at_ns)?.at_ns)
    }
}
