//! Traces while they are put together, host by host.

use std::collections::HashMap;

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{Connections, EndId, Packet};

use super::{Host, Joined};
use crate::clocks::{Clocks, Samples};
use crate::error::FleetError;
use crate::map::{self, Rows};
use crate::read::{Recorded, Tables, read_each};
use crate::source::Source;
use crate::task::Tasks;
use luc_fleet_rings::Window;

impl Joined {
    /// Of all hosts' rows.
    ///
    /// # Errors
    /// [`FleetError::Clock`] where a host's clock samples cannot be; [`FleetError::TooManyWaits`].
    pub fn new(recorded: Vec<Recorded>) -> Result<Self, FleetError> {
        let mut joining = Joining::default();
        for recorded in recorded {
            joining.add(recorded)?;
        }
        joining.finish()
    }

    /// Of all traces, as [`read_within`](crate::read_within) reads them: host by host, so that the rows of one host at a time
    /// are in memory as they are in the trace, which takes more of it.
    ///
    /// # Errors
    /// As [`read_within`](crate::read_within) and [`Joined::new`].
    pub fn read(
        sources: &[Source],
        tables: Tables,
        window: Option<Window>,
    ) -> Result<Self, FleetError> {
        let mut joining = Joining::default();
        read_each(sources, tables, window, |recorded| joining.add(recorded))?;
        joining.finish()
    }
}

/// The rows of traces that relate clocks.
pub(crate) fn packets_of(
    traces: &[Recorded],
) -> Result<(Rows, Vec<Packet>, Vec<Samples>), FleetError> {
    let mut joining = Joining::default();
    for recorded in traces {
        joining.add(recorded.clone())?;
    }
    Ok((joining.rows, joining.packets, joining.samples))
}

/// Traces while they are put together.
#[derive(Debug, Default)]
struct Joining {
    hosts: Vec<Host>,
    rows: Rows,
    packets: Vec<Packet>,
    samples: Vec<Samples>,
    /// How many segments each end has sent again, if any.
    retransmits: HashMap<EndId, u32>,
}

impl Joining {
    /// Adds a host, and lets go of its rows.
    fn add(&mut self, mut recorded: Recorded) -> Result<(), FleetError> {
        let tasks = Tasks::new(&recorded.tasks);
        let host = HostId(self.hosts.len() as u32);
        let path = || recorded.directory.clone();
        map::add(host, &recorded, &tasks, &mut self.rows, &mut self.packets)
            .map_err(|reason| FleetError::TooManyWaits { path: path(), reason })?;
        for row in &recorded.connections {
            let connection = u64::from(row.connection.0);
            if row.retransmits > 0 {
                let end = EndId { host, connection };
                self.retransmits.insert(end, row.retransmits);
            }
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
            sent_again: sent_again(&connections, &self.retransmits),
            connections,
            clocks,
        })
    }
}

/// How many segments were sent again to each end, of how many each has sent again.
fn sent_again(connections: &Connections, retransmits: &HashMap<EndId, u32>) -> HashMap<EndId, u32> {
    let pairs = connections.pairs.iter();
    let ways = pairs.flat_map(|pair| [pair.ends, [pair.ends[1], pair.ends[0]]]);
    ways.filter_map(|[from, to]| Some((to, *retransmits.get(&from)?))).collect()
}
