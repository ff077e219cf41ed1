//! A trace for <https://ui.perfetto.dev>, with the hosts as machines.
//!
//! - Machine 0 has what connects the hosts: the critical path of one request, and for each host its threads' requests
//!   and messages. Flows tie the two ends of a message, with by how much the clocks may be off.
//! - Each host is a machine with its processes and threads: when they were on a processor and what they waited for.
//!
//! Flows are all on machine 0 because the trace processor has a table of them for each machine, and connects nothing
//! between two. All times are on the clock of one host; what has no time on it is left out.

mod machine;
mod path;
mod requests;
mod track;

use std::io::Write;

use luc_fleet_clocks::{Event, HostId};
use luc_report::perfetto::packets::{Kind, Machine, Packets};

use crate::clocks::Home;
use crate::explain::reports;
use crate::report::{Report, ReportError};

/// The name of the machine that is no host.
const ALL_HOSTS: &str = "all hosts";

/// Writes the trace.
///
/// # Errors
/// [`ReportError::Fleet`] where there is no such request, [`ReportError::Output`].
pub fn write(report: &Report<'_>, out: impl Write) -> Result<(), ReportError> {
    let found = &report.found;
    let number = report.chosen.request.or((found.tops() > 0).then_some(1));
    let request = reports(found, number)?.pop();
    let hosts = &found.joined.hosts;
    let home = number.map_or(Ok(HostId(0)), |number| found.home(number))?;
    let trace = hosts.get(home.0 as usize).map(|host| host.trace.clone());
    let trace = trace.unwrap_or_default();
    let mut packets =
        Packets::new(out, trace.start_ns, trace.boottime_offset_ns, trace.realtime_offset_ns);
    let mut file = File {
        packets: &mut packets,
        clock: Clock(found.joined.clocks.at_home(home)),
        next_track: 1,
        next_flow: 1,
    };
    file.packets.machine(Machine { id: 0, name: ALL_HOSTS, kernel: "", processors: 0 });
    if let Some(request) = &request {
        path::write(&mut file, request, trace.start_ns);
    }
    requests::write(&mut file, found);
    for host in 0..hosts.len() {
        machine::write(&mut file, found, HostId(host as u32));
    }
    Ok(packets.finish()?)
}

/// The trace as it is written.
struct File<'a, W> {
    packets: &'a mut Packets<W>,
    clock: Clock<'a>,
    next_track: u64,
    next_flow: u64,
}

impl<W: Write> File<'_, W> {
    fn track(&mut self, kind: Kind<'_>) -> u64 {
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

/// The clock of the host that all times are of.
struct Clock<'a>(Home<'a>);

/// A time on that clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Placed {
    at_ns: u64,
    /// By how much it may be off; `None`: not bounded.
    error_ns: Option<u64>,
}

impl Clock<'_> {
    /// When a host's CLOCK_MONOTONIC showed this; `None`: not known.
    fn place(&self, host: HostId, at_ns: u64) -> Option<Placed> {
        let at_ns = i64::try_from(at_ns).ok()?;
        let placed = self.0.place(Event { host, at_ns })?;
        let half_ns = placed.bounds.half_width_ns();
        Some(Placed {
            at_ns: u64::try_from(placed.at_ns?).ok()?,
            error_ns: half_ns.map(|half_ns| half_ns.ceil() as u64),
        })
    }

    fn place_ns(&self, host: HostId, at_ns: u64) -> Option<u64> {
        Some(self.place(host, at_ns)?.at_ns)
    }
}
