//! Relates the clocks of the hosts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use luc_events::tables;
use luc_fleet_clocks::{
    Bounds, ClockError, ClockMap, ClockSample, FitOptions, FleetClocks, HostEvent, HostId,
    HostPair, MAX_TIME_NS, PairFit, ReferenceTime, fit,
};
use luc_fleet_requests::{Connections, PacketRow, clock_points};
use luc_stats::quantile;

use crate::error::FleetError;

/// Maximum ratio of a sample's width to the median width. Wider samples were interrupted.
const MAX_WIDTH_RATIO: u64 = 4;
/// Number of parts of a trace whose ends are tried, to find a time with a known offset.
const SEARCH_PARTS: i64 = 64;
/// Number of steps towards a time. Each step shrinks the distance a thousandfold.
const REFINEMENTS: usize = 3;

/// Clocks of many hosts.
#[derive(Debug, Default)]
pub(crate) struct HostClocks {
    /// Clocks by the hosts' numbers; empty for a single host.
    hosts: Vec<SampledClock>,
    /// Pairs of hosts that exchange packets.
    pub(crate) pairs: Vec<ClockPair>,
}

/// Clock samples of a trace.
#[derive(Debug)]
pub(crate) struct TraceClockSamples {
    pub(crate) directory: PathBuf,
    /// Samples in order of time.
    pub(crate) rows: Vec<tables::ClockSample>,
}

/// Clocks of one host.
#[derive(Debug)]
struct SampledClock {
    to_raw: ClockMap,
    to_monotonic: ClockMap,
    /// CLOCK_MONOTONIC at the first and the last sample.
    sampled_ns: (i64, i64),
}

/// Relation between two clocks.
#[derive(Debug)]
pub(crate) struct ClockPair {
    /// Host in whose time the fit is.
    pub(crate) a: HostId,
    pub(crate) b: HostId,
    /// Number of packets from A to B that bound the offset, after thinning.
    pub(crate) forward: usize,
    /// Number of packets from B to A.
    pub(crate) backward: usize,
    pub(crate) fit: Result<PairFit, ClockError>,
}

impl HostClocks {
    /// Relates the clocks of all hosts by the packets of paired connections.
    pub(crate) fn new(
        hosts: &[TraceClockSamples],
        connections: &Connections,
        mut packets: Vec<PacketRow>,
    ) -> Result<Self, FleetError> {
        if hosts.len() < 2 {
            return Ok(Self::default());
        }
        let mut clocks = Self {
            hosts: hosts.iter().map(fit_host_clock).collect::<Result<_, _>>()?,
            pairs: Vec::new(),
        };
        let raw_ns = |host, at_ns| clocks.raw_ns(host, at_ns);
        // If the samples are far from a packet's time, the time on the other clock may be out of range.
        let is_in_range = |packet: &PacketRow| {
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
            ClockPair {
                a,
                b,
                forward: points.forward.len(),
                backward: points.backward.len(),
                fit: fit(&points, &options),
            }
        });
        // Hosts with connections but without a common packet are no pair.
        clocks.pairs = pairs.filter(|pair| pair.forward + pair.backward > 0).collect();
        Ok(clocks)
    }

    fn host(&self, host: HostId) -> &SampledClock {
        &self.hosts[host.0 as usize]
    }

    /// CLOCK_MONOTONIC_RAW of a host at this CLOCK_MONOTONIC, and its error in ns. The error comes on top of the map's
    /// general one.
    pub(crate) fn raw_ns(&self, host: HostId, monotonic_ns: i64) -> (i64, i64) {
        let map = &self.host(host).to_raw;
        (map.raw_ns(monotonic_ns), map.change_error_ns(monotonic_ns))
    }

    /// CLOCK_MONOTONIC of a host at this CLOCK_MONOTONIC_RAW.
    pub(crate) fn monotonic_ns(&self, host: HostId, raw_ns: i64) -> i64 {
        self.host(host).to_monotonic.raw_ns(raw_ns)
    }

    /// Places all clocks on that of one host. If pairs contradict each other, all offsets are unknown: nobody knows
    /// which pair is wrong.
    pub(crate) fn at_home(&self, home: HostId) -> HomeClock<'_> {
        HomeClock { clocks: self, home, fleet: self.fleet(home).ok().flatten() }
    }

    /// Host at which pairs contradict each other, and the time on the clock of the first host with a pair.
    pub(crate) fn contradiction(&self) -> Option<(HostId, ClockError)> {
        let reference = self.pairs.first()?.a;
        Some((reference, self.fleet(reference).err()?))
    }

    /// Fits all pairs; `None` if no pair is known.
    fn fleet(&self, home: HostId) -> Result<Option<FleetClocks>, ClockError> {
        let known =
            |pair: &ClockPair| Some(HostPair { a: pair.a, b: pair.b, fit: pair.fit.clone().ok()? });
        let pairs: Vec<HostPair> = self.pairs.iter().filter_map(known).collect();
        if pairs.is_empty() {
            return Ok(None);
        }
        FleetClocks::new(home, pairs).map(Some)
    }
}

/// All clocks placed on that of one host.
#[derive(Debug)]
pub(crate) struct HomeClock<'c> {
    clocks: &'c HostClocks,
    home: HostId,
    fleet: Option<FleetClocks>,
}

impl HomeClock<'_> {
    /// CLOCK_MONOTONIC_RAW of a host at this CLOCK_MONOTONIC, and its error in ns.
    pub(crate) fn raw_ns(&self, host: HostId, at_ns: i64) -> (i64, f64) {
        let map = &self.clocks.host(host).to_raw;
        let error_ns = map.error_ns() + map.change_error_ns(at_ns) as f64;
        (map.raw_ns(at_ns), error_ns)
    }

    /// Places an event, by its host's CLOCK_MONOTONIC, on the home's CLOCK_MONOTONIC.
    pub(crate) fn place(&self, event: HostEvent) -> Option<ReferenceTime> {
        if event.host == self.home {
            return Some(ReferenceTime {
                at_ns: Some(event.at_ns),
                bounds: Bounds::of(Some(event.at_ns), Some(event.at_ns)),
            });
        }
        let from = &self.clocks.host(event.host).to_raw;
        let to = &self.clocks.host(self.home).to_monotonic;
        let raw = HostEvent { host: event.host, at_ns: from.raw_ns(event.at_ns) };
        let placed = self.fleet.as_ref()?.global_ns(raw).ok()?;
        // The errors of both maps widen the bounds.
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
        Some(ReferenceTime {
            at_ns: placed.at_ns.map(|at_ns| to.raw_ns(at_ns)),
            bounds: Bounds::of(low_ns, high_ns),
        })
    }

    /// Like [`HomeClock::place`], for a recorded time; `None` also if the time is out of range.
    pub(crate) fn place_ns(&self, host: HostId, at_ns: u64) -> Option<ReferenceTime> {
        self.place(HostEvent { host, at_ns: i64::try_from(at_ns).ok()? })
    }

    /// Approximate CLOCK_MONOTONIC of a host when the home's shows `home_ns`.
    pub(crate) fn away_ns(&self, host: HostId, home_ns: u64) -> Option<u64> {
        let home_ns = i64::try_from(home_ns).ok()?;
        let (first_ns, last_ns) = self.clocks.hosts.get(host.0 as usize)?.sampled_ns;
        let placed_ns = |at_ns| self.place(HostEvent { host, at_ns })?.at_ns;
        // Any time with a known offset will do, as the offset is nearly the same at others.
        let length_ns = last_ns.checked_sub(first_ns)?;
        let mut tries = (1..SEARCH_PARTS).map(|part| first_ns + length_ns / SEARCH_PARTS * part);
        let mut away_ns = tries.find(|&at_ns| placed_ns(at_ns).is_some())?;
        for _ in 0..REFINEMENTS {
            away_ns = away_ns.checked_add(home_ns.checked_sub(placed_ns(away_ns)?)?)?;
        }
        u64::try_from(away_ns).ok()
    }
}

/// Clocks placed on those of several hosts; each is computed once.
#[derive(Debug)]
pub(crate) struct HomeClocks<'c> {
    clocks: &'c HostClocks,
    homes: BTreeMap<HostId, HomeClock<'c>>,
}

impl<'c> HomeClocks<'c> {
    pub(crate) fn new(clocks: &'c HostClocks) -> Self {
        Self { clocks, homes: BTreeMap::new() }
    }

    /// All clocks placed on that of a host.
    pub(crate) fn at(&mut self, host: HostId) -> &HomeClock<'c> {
        self.homes.entry(host).or_insert_with(|| self.clocks.at_home(host))
    }
}

/// Error of a placed time, ns; `None`: unbounded.
pub(crate) fn error_ns(placed: &ReferenceTime) -> Option<u64> {
    Some(placed.bounds.half_width_ns()?.ceil() as u64)
}

fn fit_host_clock(samples: &TraceClockSamples) -> Result<SampledClock, FleetError> {
    let wrong = |reason| FleetError::Clock { path: samples.directory.clone(), reason };
    let mut widths_ns: Vec<u64> = samples.rows.iter().map(|row| row.width_ns).collect();
    widths_ns.sort_unstable();
    let usual_ns = quantile(&widths_ns, 0.5).unwrap_or(0);
    let is_good = |row: &&tables::ClockSample| row.width_ns / MAX_WIDTH_RATIO <= usual_ns;
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
    Ok(SampledClock {
        to_raw: ClockMap::new(&samples, error_ns).map_err(wrong)?,
        to_monotonic: ClockMap::new(&turned, error_ns).map_err(wrong)?,
        sampled_ns: (
            samples.first().map_or(0, |first| first.monotonic_ns),
            samples.last().map_or(0, |last| last.monotonic_ns),
        ),
    })
}

/// Counts, for each pair of hosts, the connections whose ends are both known.
pub(crate) fn count_connections(connections: &Connections) -> BTreeMap<(HostId, HostId), u64> {
    let mut counts = BTreeMap::new();
    for pair in &connections.pairs {
        let [a, b] = pair.ends.map(|end| end.host);
        if a != b {
            *counts.entry((a.min(b), a.max(b))).or_default() += 1;
        }
    }
    counts
}
