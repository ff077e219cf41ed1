//! The clocks of hosts for a program that checks what is said of them: times with their bounds, and what these rest on.

use luc_fleet_clocks::{Event, HostId, PairFit, PairPoints, Placed};
use luc_fleet_requests::{Connections, clock_points};

use crate::clocks::{Clocks, Home};
use crate::error::FleetError;
use crate::joined::{Joined, packets_of};
use crate::read::Recorded;

/// The times of all hosts on the clock of the first.
#[derive(Debug)]
pub struct OnFirst<'j>(Home<'j>);

impl<'j> OnFirst<'j> {
    #[must_use]
    pub fn new(joined: &'j Joined) -> Self {
        Self(joined.clocks.at_home(HostId(0)))
    }

    /// What the first host's CLOCK_MONOTONIC showed when that of the host of this place showed `at_ns`; `None` where
    /// nothing is known.
    #[must_use]
    pub fn place(&self, host: usize, at_ns: i64) -> Option<Placed> {
        self.0.place(Event { host: HostId(host as u32), at_ns })
    }

    /// What CLOCK_MONOTONIC_RAW of the host of this place showed when its CLOCK_MONOTONIC showed `at_ns`, and by how many
    /// ns that may be off.
    #[must_use]
    pub fn raw_ns(&self, host: usize, at_ns: i64) -> (i64, f64) {
        self.0.raw_ns(HostId(host as u32), at_ns)
    }
}

/// Two hosts with packets between them.
#[derive(Debug)]
pub struct Related {
    pub hosts: [usize; 2],
    /// The packets that bound the offset, in the times that were recorded, those of CLOCK_MONOTONIC.
    pub recorded: PairPoints,
    /// The same in those of CLOCK_MONOTONIC_RAW.
    pub raw: PairPoints,
    /// How both CLOCK_MONOTONIC_RAW relate; `None`: it is not known.
    pub fit: Option<PairFit>,
}

/// All pairs of hosts that exchange packets.
///
/// # Errors
/// As [`Joined::new`].
pub fn related(traces: &[Recorded]) -> Result<Vec<Related>, FleetError> {
    let (rows, packets, samples) = packets_of(traces)?;
    let connections = Connections::pair(&rows.ends, &rows.messages, &packets);
    let clocks = Clocks::new(&samples, &connections, packets.clone())?;
    let mut recorded = clock_points(&connections, &packets, |_, at_ns| (at_ns, 0))?;
    let to_raw = |host, at_ns| clocks.raw_ns(host, at_ns);
    let mut raw = clock_points(&connections, &packets, to_raw)?;
    let pairs = clocks.pairs.iter().map(|pair| Related {
        hosts: [pair.a, pair.b].map(|host| host.0 as usize),
        recorded: recorded.remove(&(pair.a, pair.b)).unwrap_or_default(),
        raw: raw.remove(&(pair.a, pair.b)).unwrap_or_default(),
        fit: pair.fit.clone().ok(),
    });
    Ok(pairs.collect())
}
