//! Gives programs that check clocks the times with their bounds, and the packets that these rest on.

use luc_fleet_clocks::{HostEvent, HostId, PairFit, PairPoints, ReferenceTime};
use luc_fleet_requests::{Connections, clock_points};

use crate::error::FleetError;
use crate::host_clocks::{HomeClock, HostClocks};
use crate::joined_traces::{JoinedTraces, packets_of};
use crate::read_hosts::RecordedHost;

/// Times of all hosts on the clock of the first.
#[derive(Debug)]
pub struct FirstHostClock<'j>(HomeClock<'j>);

impl<'j> FirstHostClock<'j> {
    #[must_use]
    pub fn new(joined: &'j JoinedTraces) -> Self {
        Self(joined.clocks.at_home(HostId(0)))
    }

    /// CLOCK_MONOTONIC of the first host when that of host number `host` showed `at_ns`; `None`: unknown.
    #[must_use]
    pub fn place(&self, host: usize, at_ns: i64) -> Option<ReferenceTime> {
        self.0.place(HostEvent { host: HostId(host as u32), at_ns })
    }

    /// CLOCK_MONOTONIC_RAW of host number `host` when its CLOCK_MONOTONIC showed `at_ns`, and its error in ns.
    #[must_use]
    pub fn raw_ns(&self, host: usize, at_ns: i64) -> (i64, f64) {
        self.0.raw_ns(HostId(host as u32), at_ns)
    }
}

/// Two hosts with packets between them.
#[derive(Debug)]
pub struct PairWithPackets {
    pub hosts: [usize; 2],
    /// Packets that bound the offset, in recorded times of CLOCK_MONOTONIC.
    pub recorded: PairPoints,
    /// `recorded` in times of CLOCK_MONOTONIC_RAW.
    pub raw: PairPoints,
    /// Relation between both CLOCK_MONOTONIC_RAW; `None`: unknown.
    pub fit: Option<PairFit>,
}

/// Relates all pairs of hosts that exchange packets.
///
/// # Errors
/// As [`JoinedTraces::new`].
pub fn related(traces: &[RecordedHost]) -> Result<Vec<PairWithPackets>, FleetError> {
    let (rows, packets, samples) = packets_of(traces)?;
    let connections = Connections::pair(&rows.ends, &rows.messages, &packets);
    let clocks = HostClocks::new(&samples, &connections, packets.clone())?;
    let mut recorded = clock_points(&connections, &packets, |_, at_ns| (at_ns, 0))?;
    let to_raw = |host, at_ns| clocks.raw_ns(host, at_ns);
    let mut raw = clock_points(&connections, &packets, to_raw)?;
    let pairs = clocks.pairs.iter().map(|pair| PairWithPackets {
        hosts: [pair.a, pair.b].map(|host| host.0 as usize),
        recorded: recorded.remove(&(pair.a, pair.b)).unwrap_or_default(),
        raw: raw.remove(&(pair.a, pair.b)).unwrap_or_default(),
        fit: pair.fit.clone().ok(),
    });
    Ok(pairs.collect())
}
