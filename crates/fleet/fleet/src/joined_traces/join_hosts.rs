//! Joins traces host by host.

use std::collections::HashMap;

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{Connections, EndId, PacketRow};

use super::{JoinedHost, JoinedTraces};
use crate::convert_rows::{self, ConvertedRows};
use crate::error::FleetError;
use crate::host_clocks::{HostClocks, TraceClockSamples};
use crate::host_tasks::HostTasks;
use crate::read_hosts::{RecordedHost, TablesToRead, read_each};
use crate::trace_argument::TraceArgument;
use crate::wait_graph::packet_times;
use luc_fleet_rings::TimeWindow;

impl JoinedTraces {
    /// Joins the rows of all hosts.
    ///
    /// # Errors
    /// [`FleetError::Clock`] for clock samples that are impossible; [`FleetError::TooManyWaits`].
    pub fn new(recorded: Vec<RecordedHost>) -> Result<Self, FleetError> {
        let mut joining = Joining::default();
        for recorded in recorded {
            joining.add(recorded)?;
        }
        joining.finish()
    }

    /// Reads and joins all traces, as [`read_within`](crate::read_within) reads them. Only one host at a time has its
    /// unconverted rows in memory, as these take more of it.
    ///
    /// # Errors
    /// As [`read_within`](crate::read_within) and [`JoinedTraces::new`].
    pub fn read(
        sources: &[TraceArgument],
        tables: TablesToRead,
        window: Option<TimeWindow>,
    ) -> Result<Self, FleetError> {
        let mut joining = Joining::default();
        read_each(sources, tables, window, |recorded| joining.add(recorded))?;
        joining.finish()
    }
}

/// Converts the rows that relate clocks.
pub(crate) fn packets_of(
    traces: &[RecordedHost],
) -> Result<(ConvertedRows, Vec<PacketRow>, Vec<TraceClockSamples>), FleetError> {
    let mut joining = Joining::default();
    for recorded in traces {
        joining.add(recorded.clone())?;
    }
    Ok((joining.rows, joining.packets, joining.samples))
}

/// Traces that are being joined.
#[derive(Debug, Default)]
struct Joining {
    hosts: Vec<JoinedHost>,
    rows: ConvertedRows,
    packets: Vec<PacketRow>,
    samples: Vec<TraceClockSamples>,
    /// Number of segments that each end has sent again, where there are any.
    retransmits: HashMap<EndId, u32>,
}

impl Joining {
    /// Adds a host, and drops its unconverted rows.
    fn add(&mut self, mut recorded: RecordedHost) -> Result<(), FleetError> {
        let tasks = HostTasks::new(&recorded.tasks);
        let host = HostId(self.hosts.len() as u32);
        let path = || recorded.directory.clone();
        convert_rows::add(host, &recorded, &tasks, &mut self.rows, &mut self.packets)
            .map_err(|reason| FleetError::TooManyWaits { path: path(), reason })?;
        for row in recorded.connections.iter().filter(|row| row.retransmits > 0) {
            let end = EndId { host, connection: u64::from(row.connection.0) };
            self.retransmits.insert(end, row.retransmits);
        }
        self.hosts.push(JoinedHost::new(&recorded, tasks));
        self.samples.push(TraceClockSamples {
            directory: recorded.directory.clone(),
            rows: std::mem::take(&mut recorded.clocks),
        });
        Ok(())
    }

    fn finish(self) -> Result<JoinedTraces, FleetError> {
        let mut rows = self.rows;
        rows.packet_times = packet_times(&rows.ends, &rows.messages, &self.packets);
        let connections = Connections::pair(&rows.ends, &rows.messages, &self.packets);
        let clocks = HostClocks::new(&self.samples, &connections, self.packets)?;
        Ok(JoinedTraces {
            hosts: self.hosts,
            ends: rows.ends.iter().map(|end| (end.id(), *end)).collect(),
            rows,
            spans: Vec::new(),
            sent_again: count_sent_again(&connections, &self.retransmits),
            connections,
            clocks,
        })
    }
}

/// Counts the segments that were sent again to each end, from those that each end has sent again.
fn count_sent_again(
    connections: &Connections,
    retransmits: &HashMap<EndId, u32>,
) -> HashMap<EndId, u32> {
    let pairs = connections.pairs.iter();
    let directions = pairs.flat_map(|pair| [pair.ends, [pair.ends[1], pair.ends[0]]]);
    directions.filter_map(|[from, to]| Some((to, *retransmits.get(&from)?))).collect()
}
