//! Joins traces host by host.

use std::collections::HashMap;

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{Connections, EndId, Packet};

use super::{Host, Joined};
use crate::clocks::{Clocks, Samples};
use crate::error::FleetError;
use crate::map::{self, Rows};
use crate::read::{Recorded, Tables, read_each};
use crate::task::Tasks;
use crate::trace_argument::TraceArgument;
use luc_fleet_rings::Window;

impl Joined {
    /// Joins the rows of all hosts.
    ///
    /// # Errors
    /// [`FleetError::Clock`] for clock samples that are impossible; [`FleetError::TooManyWaits`].
    pub fn new(recorded: Vec<Recorded>) -> Result<Self, FleetError> {
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
    /// As [`read_within`](crate::read_within) and [`Joined::new`].
    pub fn read(
        sources: &[TraceArgument],
        tables: Tables,
        window: Option<Window>,
    ) -> Result<Self, FleetError> {
        let mut joining = Joining::default();
        read_each(sources, tables, window, |recorded| joining.add(recorded))?;
        joining.finish()
    }
}

/// Converts the rows that relate clocks.
pub(crate) fn packets_of(
    traces: &[Recorded],
) -> Result<(Rows, Vec<Packet>, Vec<Samples>), FleetError> {
    let mut joining = Joining::default();
    for recorded in traces {
        joining.add(recorded.clone())?;
    }
    Ok((joining.rows, joining.packets, joining.samples))
}

/// Traces that are being joined.
#[derive(Debug, Default)]
struct Joining {
    hosts: Vec<Host>,
    rows: Rows,
    packets: Vec<Packet>,
    samples: Vec<Samples>,
    /// Number of segments that each end has sent again, where there are any.
    retransmits: HashMap<EndId, u32>,
}

impl Joining {
    /// Adds a host, and drops its unconverted rows.
    fn add(&mut self, mut recorded: Recorded) -> Result<(), FleetError> {
        let tasks = Tasks::new(&recorded.tasks);
        let host = HostId(self.hosts.len() as u32);
        let path = || recorded.directory.clone();
        map::add(host, &recorded, &tasks, &mut self.rows, &mut self.packets)
            .map_err(|reason| FleetError::TooManyWaits { path: path(), reason })?;
        for row in recorded.connections.iter().filter(|row| row.retransmits > 0) {
            let end = EndId { host, connection: u64::from(row.connection.0) };
            self.retransmits.insert(end, row.retransmits);
        }
        self.hosts.push(Host::new(&recorded, tasks));
        self.samples.push(Samples {
            directory: recorded.directory.clone(),
            rows: std::mem::take(&mut recorded.clocks),
        });
        Ok(())
    }

    fn finish(self) -> Result<Joined, FleetError> {
        let rows = self.rows;
        let connections = Connections::pair(&rows.ends, &rows.messages, &self.packets);
        let clocks = Clocks::new(&self.samples, &connections, self.packets)?;
        Ok(Joined {
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
