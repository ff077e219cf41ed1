//! How the clocks of the hosts relate.

use std::collections::BTreeMap;
use std::path::PathBuf;

use luc_events::tables;
use luc_fleet_clocks::{
    Bounds, ClockError, ClockMap, ClockSample, Event, FitOptions, Fleet, HostId, MAX_TIME_NS, Pair,
    PairFit, Placed, fit,
};
use luc_fleet_requests::{Connections, Packet, clock_points};
use luc_stats::quantile;

use crate::error::FleetError;

/// Samples that took more than this many times as long as half of them do were interrupted.
const INTERRUPTED: u64 = 4;
/// So many parts of a trace are tried for a time of which an offset is known.
const TRIES: i64 = 64;
/// With each step towards a time, what is left is by a thousand times less.
const STEPS: usize = 3;

/// The clocks of many hosts.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    /// By the hosts' numbers; none where there is only one host.
    hosts: Vec<HostClock>,
    /// Those that exchange packets.
    pub(crate) pairs: Vec<PairOfClocks>,
}

/// What a trace says of its host's clocks.
#[derive(Debug)]
pub(crate) struct Samples {
    /// Where the trace is.
    pub(crate) directory: PathBuf,
    /// In the order of their times.
    pub(crate) rows: Vec<tables::ClockSample>,
}

/// The clocks of one host.
#[derive(Debug)]
struct HostClock {
    to_raw: ClockMap,
    /// The same map the other way around.
    to_monotonic: ClockMap,
    /// CLOCK_MONOTONIC of the first and the last sample.
    sampled_ns: (i64, i64),
}

/// How two clocks relate.
#[derive(Debug)]
pub(crate) struct PairOfClocks {
    /// The host in whose time the fit is.
    pub(crate) a: HostId,
    pub(crate) b: HostId,
    /// Packets from A to B that bound the offset, after thinning.
    pub(crate) forward: usize,
    /// The same from B to A.
    pub(crate) backward: usize,
    pub(crate) fit: Result<PairFit, ClockError>,
}

impl Clocks {
    /// Of all hosts, by the packets of paired connections.
    pub(crate) fn new(
        hosts: &[Samples],
        connections: &Connections,
        mut packets: Vec<Packet>,
    ) -> Result<Self, FleetError> {
        if hosts.len() < 2 {
            return Ok(Self::default());
        }
        let mut clocks = Self {
            hosts: hosts.iter().map(host_clock).collect::<Result<_, _>>()?,
            pairs: Vec::new(),
        };
        let raw_ns = |host, at_ns| clocks.raw_ns(host, at_ns);
        // Where the samples are far from a packet's time, its time on the other clock may be beyond all years.
        let is_in_range = |packet: &Packet| {
            let raw_ns = i64::try_from(packet.at_ns).map(|at_ns| raw_ns(packet.host, at_ns));
            raw_ns.is_ok_and(|(raw_ns, error_ns)| {
                let ends = [raw_ns.saturating_sub(error_ns), raw_ns.saturating_add(error_ns)];
                let range = -MAX_TIME_NS..=MAX_TIME_NS;
                ends.iter().all(|end_ns| range.contains(end_ns))
            })
        };
        packets.retain(is_in_range);
        let points = clock_points(connections, &packets, raw_ns)?;
        let pairs = points.into_iter().map(|((a, b), points)| {
            let options = FitOptions {
                timestamp_error_ns: clocks.host(a).to_raw.error_ns()
                    + clocks.host(b).to_raw.error_ns(),
                ..FitOptions::default()
            };
            PairOfClocks {
                a,
                b,
                forward: points.forward.len(),
                backward: points.backward.len(),
                fit: fit(&points, &options),
            }
        });
        // Two hosts with connections, but without a packet that both have, have said nothing.
        clocks.pairs = pairs.filter(|pair| pair.forward + pair.backward > 0).collect();
        Ok(clocks)
    }

    fn host(&self, host: HostId) -> &HostClock {
        &self.hosts[host.0 as usize]
    }

    /// CLOCK_MONOTONIC_RAW of a host when its CLOCK_MONOTONIC showed this, and by how many ns that may be off beyond what
    /// the map says of all times.
    pub(crate) fn raw_ns(&self, host: HostId, monotonic_ns: i64) -> (i64, i64) {
        let map = &self.host(host).to_raw;
        (map.raw_ns(monotonic_ns), map.change_error_ns(monotonic_ns))
    }

    /// CLOCK_MONOTONIC of a host when its CLOCK_MONOTONIC_RAW showed this.
    pub(crate) fn monotonic_ns(&self, host: HostId, raw_ns: i64) -> i64 {
        self.host(host).to_monotonic.raw_ns(raw_ns)
    }

    /// All clocks, on that of one host. Where pairs contradict each other nothing is known: which is wrong is not.
    pub(crate) fn at_home(&self, home: HostId) -> Home<'_> {
        Home { clocks: self, home, fleet: self.fleet(home).ok().flatten() }
    }

    /// At which host pairs contradict each other, and when, on the clock of the first host that has a pair.
    pub(crate) fn contradiction(&self) -> Option<(HostId, ClockError)> {
        let reference = self.pairs.first()?.a;
        Some((reference, self.fleet(reference).err()?))
    }

    /// `None` where no pair is known.
    fn fleet(&self, home: HostId) -> Result<Option<Fleet>, ClockError> {
        let pairs = self
            .pairs
            .iter()
            .filter_map(|pair| Some(Pair { a: pair.a, b: pair.b, fit: pair.fit.clone().ok()? }));
        let pairs: Vec<Pair> = pairs.collect();
        if pairs.is_empty() {
            return Ok(None);
        }
        Fleet::new(home, pairs).map(Some)
    }
}

/// All clocks, on that of one host.
#[derive(Debug)]
pub(crate) struct Home<'c> {
    clocks: &'c Clocks,
    home: HostId,
    fleet: Option<Fleet>,
}

impl Home<'_> {
    /// CLOCK_MONOTONIC_RAW of a host when its CLOCK_MONOTONIC showed this, and by how many ns that may be off.
    pub(crate) fn raw_ns(&self, host: HostId, at_ns: i64) -> (i64, f64) {
        let map = &self.clocks.host(host).to_raw;
        let error_ns = map.error_ns() + map.change_error_ns(at_ns) as f64;
        (map.raw_ns(at_ns), error_ns)
    }

    /// When something that happened at a time of a host's CLOCK_MONOTONIC was on the home's CLOCK_MONOTONIC.
    pub(crate) fn place(&self, event: Event) -> Option<Placed> {
        if event.host == self.home {
            return Some(Placed {
                at_ns: Some(event.at_ns),
                bounds: Bounds::of(Some(event.at_ns), Some(event.at_ns)),
            });
        }
        let from = &self.clocks.host(event.host).to_raw;
        let to = &self.clocks.host(self.home).to_monotonic;
        let placed = self
            .fleet
            .as_ref()?
            .global_ns(Event { host: event.host, at_ns: from.raw_ns(event.at_ns) });
        let placed = placed.ok()?;
        // What both maps may be off widens the bounds.
        let error_ns = (from.error_ns() + to.error_ns()).ceil() as i64 + 1;
        let error_ns = error_ns.saturating_add(from.change_error_ns(event.at_ns));
        let low_ns = placed.bounds.low_ns().map(|low_ns| {
            let low_ns = low_ns.saturating_sub(error_ns);
            let error_ns = to.change_error_ns(low_ns);
            to.raw_ns(low_ns).saturating_sub(error_ns)
        });
        let high_ns = placed.bounds.high_ns().map(|high_ns| {
            let high_ns = high_ns.saturating_add(error_ns);
            let error_ns = to.change_error_ns(high_ns);
            to.raw_ns(high_ns).saturating_add(error_ns)
        });
        Some(Placed {
            at_ns: placed.at_ns.map(|at_ns| to.raw_ns(at_ns)),
            bounds: Bounds::of(low_ns, high_ns),
        })
    }

    /// What a host's CLOCK_MONOTONIC shows about when the home's shows `home_ns`.
    pub(crate) fn away_ns(&self, host: HostId, home_ns: u64) -> Option<u64> {
        let home_ns = i64::try_from(home_ns).ok()?;
        let (first_ns, last_ns) = self.clocks.hosts.get(host.0 as usize)?.sampled_ns;
        let placed_ns = |at_ns| self.place(Event { host, at_ns })?.at_ns;
        // Any time of which the offset is known will do: the offset is nearly the same at others.
        let length_ns = last_ns.checked_sub(first_ns)?;
        let mut tries = (1..TRIES).map(|part| first_ns + length_ns / TRIES * part);
        let mut away_ns = tries.find(|&at_ns| placed_ns(at_ns).is_some())?;
        for _ in 0..STEPS {
            away_ns = away_ns.checked_add(home_ns.checked_sub(placed_ns(away_ns)?)?)?;
        }
        u64::try_from(away_ns).ok()
    }
}

fn host_clock(samples: &Samples) -> Result<HostClock, FleetError> {
    let wrong = |reason| FleetError::Clock { path: samples.directory.clone(), reason };
    let mut widths_ns: Vec<u64> = samples.rows.iter().map(|row| row.width_ns).collect();
    widths_ns.sort_unstable();
    let usual_ns = quantile(&widths_ns, 0.5).unwrap_or(0);
    let is_good = |row: &&tables::ClockSample| row.width_ns / INTERRUPTED <= usual_ns;
    let good: Vec<&tables::ClockSample> = samples.rows.iter().filter(is_good).collect();
    let sample = |row: &&tables::ClockSample| -> Result<ClockSample, ClockError> {
        let time =
            |at_ns: u64| i64::try_from(at_ns).map_err(|_| ClockError::TimeOutOfRange(i64::MAX));
        // CLOCK_MONOTONIC_RAW was read at some time between the two readings of CLOCK_MONOTONIC.
        Ok(ClockSample {
            monotonic_ns: time(row.at_ns.saturating_add(row.width_ns / 2))?,
            raw_ns: time(row.raw_ns)?,
            rate_ppb: row.rate_ppb,
        })
    };
    let samples: Vec<ClockSample> =
        good.iter().map(sample).collect::<Result<_, _>>().map_err(wrong)?;
    let widest_ns = good.iter().map(|row| row.width_ns).max().unwrap_or(0);
    let error_ns = widest_ns as f64 / 2.0 + 1.0;
    let turned: Vec<ClockSample> = samples.iter().map(|sample| sample.turned()).collect();
    Ok(HostClock {
        to_raw: ClockMap::new(&samples, error_ns).map_err(wrong)?,
        to_monotonic: ClockMap::new(&turned, error_ns).map_err(wrong)?,
        sampled_ns: (
            samples.first().map_or(0, |first| first.monotonic_ns),
            samples.last().map_or(0, |last| last.monotonic_ns),
        ),
    })
}

/// The pairs of hosts that have a connection whose ends are both known.
pub(crate) fn connected(connections: &Connections) -> BTreeMap<(HostId, HostId), u64> {
    let mut counts = BTreeMap::new();
    for pair in &connections.pairs {
        let [a, b] = pair.ends.map(|end| end.host);
        if a != b {
            *counts.entry((a.min(b), a.max(b))).or_default() += 1;
        }
    }
    counts
}
