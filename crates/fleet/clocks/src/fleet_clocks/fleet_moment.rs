//! All hosts at one moment of the reference's clock.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::ClockError;
use crate::host_ids::{HostId, HostIndex};
use crate::mesh::{HostOffset, PairBounds, place};
use crate::pair_fit::{ClockJump, OffsetEvidence, PairFit};

/// Time of a host's clock, and its maximum error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ReferenceReading {
    pub(super) at_ns: i64,
    error_ns: i64,
}

/// All hosts at one moment.
#[derive(Debug)]
pub(super) struct FleetMoment {
    /// Time on the reference's clock.
    pub(super) at_ns: i64,
    /// By host; `None` without a path of messages of both directions.
    pub(super) clocks: Vec<Option<ReferenceReading>>,
    /// By host: its offset to the reference, relative to the difference of `clocks`.
    pub(super) offsets: Vec<HostOffset>,
}

/// Hosts, and the fits of pairs of them.
pub(super) struct PairNetwork<'f> {
    hosts: &'f [HostId],
    reference: HostIndex,
    pairs: Vec<NetworkPair<'f>>,
}

struct NetworkPair<'f> {
    a: HostIndex,
    b: HostIndex,
    fit: &'f PairFit,
}

impl<'f> PairNetwork<'f> {
    /// `hosts` is sorted, and has all hosts of the pairs.
    pub(super) fn new(
        hosts: &'f [HostId],
        reference: HostId,
        fits: &'f BTreeMap<(HostId, HostId), PairFit>,
    ) -> Self {
        let index = |host: &HostId| HostIndex(hosts.partition_point(|other| other < host));
        let pairs = fits.iter();
        let pairs = pairs.map(|((a, b), fit)| NetworkPair { a: index(a), b: index(b), fit });
        Self { hosts, reference: index(&reference), pairs: pairs.collect() }
    }

    /// Returns the times of all pairs' knots on the reference's clock, in order.
    pub(super) fn knots(&self) -> Vec<i64> {
        let mut origin: Vec<Option<i64>> = vec![None; self.hosts.len()];
        origin[self.reference.0] = Some(0);
        let mut knots = BTreeSet::new();
        // The offset of each host, about: knots need not be exact, as bounds hold wherever they are.
        while self.spread(&mut origin) {}
        for NetworkPair { a, fit, .. } in &self.pairs {
            let Some(origin) = origin[a.0] else { continue };
            let step_ns = fit.step_ns().max(1);
            let (first, last) = fit.span_ns();
            let inside = fit.knots().map(|knot| knot.at_ns.clamp(first, last));
            // Knots of different pairs meet on one grid, but for those at the ends.
            knots.extend(inside.map(|at_ns| {
                let on_reference = at_ns.saturating_sub(origin);
                on_reference.div_euclid(step_ns).saturating_mul(step_ns)
            }));
            knots.extend([first.saturating_sub(origin), last.saturating_sub(origin)]);
        }
        knots.into_iter().collect()
    }

    /// Spreads each host's offset to the reference, at about the begin, to its neighbours. Returns whether any was
    /// unknown.
    fn spread(&self, origin: &mut [Option<i64>]) -> bool {
        let mut is_changed = false;
        for &NetworkPair { a, b, fit } in &self.pairs {
            let Some(offset) = fit.knots().find_map(|knot| knot.estimate.offset_ns) else {
                continue;
            };
            match (origin[a.0], origin[b.0]) {
                (Some(from), None) => origin[b.0] = Some(from.saturating_add(offset)),
                (None, Some(from)) => origin[a.0] = Some(from.saturating_sub(offset)),
                _ => continue,
            }
            is_changed = true;
        }
        is_changed
    }

    /// Returns all hosts when the reference's clock shows this.
    pub(super) fn at(&self, at_ns: i64) -> Result<FleetMoment, ClockError> {
        let clocks = self.clocks(at_ns);
        let bounds: Vec<PairBounds> = self
            .pairs
            .iter()
            .filter_map(|&NetworkPair { a, b, fit }| {
                let (of_a, of_b) = (clocks[a.0]?, clocks[b.0]?);
                // The bounds at all times that A's clock may show.
                let ends = [
                    of_a.at_ns.saturating_sub(of_a.error_ns),
                    of_a.at_ns.saturating_add(of_a.error_ns),
                ];
                let bounds = fit.at(ends[0]).bounds.or(fit.at(ends[1]).bounds);
                let relative = |bound: i64| (bound - (of_b.at_ns - of_a.at_ns)) as f64;
                Some(PairBounds {
                    a,
                    b,
                    low_ns: bounds.low_ns().map_or(f64::NEG_INFINITY, relative),
                    high_ns: bounds.high_ns().map_or(f64::INFINITY, relative),
                })
            })
            .collect();
        let offsets = place(self.hosts.len(), &bounds, self.reference);
        let offsets = offsets
            .map_err(|host| ClockError::Contradiction { host: self.hosts[host.0], at_ns })?;
        Ok(FleetMoment { at_ns, clocks, offsets })
    }

    /// Returns each host's clock, along paths of few pairs.
    fn clocks(&self, at_ns: i64) -> Vec<Option<ReferenceReading>> {
        let mut clocks = vec![None; self.hosts.len()];
        clocks[self.reference.0] = Some(ReferenceReading { at_ns, error_ns: 0 });
        loop {
            let mut reached = Vec::new();
            for &NetworkPair { a, b, fit } in &self.pairs {
                match (clocks[a.0], clocks[b.0]) {
                    (Some(from), None) => {
                        reached.extend(clock_of_b(fit, from).map(|clock| (b, clock)));
                    }
                    (None, Some(from)) => {
                        reached.extend(clock_of_a(fit, from).map(|clock| (a, clock)));
                    }
                    _ => {}
                }
            }
            if reached.is_empty() {
                return clocks;
            }
            for (HostIndex(host), clock) in reached {
                if clocks[host]
                    .is_none_or(|other: ReferenceReading| clock.error_ns < other.error_ns)
                {
                    clocks[host] = Some(clock);
                }
            }
        }
    }

    /// Returns for each host whether its offset to the reference may have jumped between two moments.
    pub(super) fn find_jumped(&self, before: &FleetMoment, after: &FleetMoment) -> Vec<bool> {
        let mut jumped = vec![false; self.hosts.len()];
        for &NetworkPair { a, b, fit } in &self.pairs {
            let (Some(from), Some(to)) = (before.clocks[a.0], after.clocks[a.0]) else {
                continue;
            };
            let (from, to) = (from.at_ns - from.error_ns, to.at_ns + to.error_ns);
            let is_between = |jump: &ClockJump| jump.after_ns <= to && from <= jump.before_ns;
            if fit.jumps().iter().any(is_between) {
                (jumped[a.0], jumped[b.0]) = (true, true);
            }
        }
        // Where the reference jumped, all others did, seen from it.
        let all = jumped[self.reference.0];
        jumped.into_iter().map(|one| one || all).collect()
    }
}

/// Returns B's clock when A's shows this.
fn clock_of_b(fit: &PairFit, from: ReferenceReading) -> Option<ReferenceReading> {
    let known = fit.at(from.at_ns);
    Some(ReferenceReading {
        at_ns: check_range(from.at_ns.checked_add(known.offset_ns?)?)?,
        error_ns: add_error(from, known.bounds.half_width_ns()?),
    })
}

/// Returns A's clock when B's shows this. The offset is that of A's time, which is searched for.
fn clock_of_a(fit: &PairFit, from: ReferenceReading) -> Option<ReferenceReading> {
    let first = fit.knots().find_map(|knot| knot.estimate.offset_ns)?;
    let mut at_ns = from.at_ns.checked_sub(first)?;
    let mut half_width = None;
    // Each round reduces an error to the drift of the clocks in that time, some millionths.
    for _ in 0..4 {
        let known = fit.at(at_ns);
        let Some(offset) = known
            .offset_ns
            .filter(|_| known.evidence != OffsetEvidence::Beyond || half_width.is_none())
        else {
            break;
        };
        at_ns = from.at_ns.checked_sub(offset)?;
        half_width = known.bounds.half_width_ns();
    }
    Some(ReferenceReading { at_ns: check_range(at_ns)?, error_ns: add_error(from, half_width?) })
}

/// Adds errors along a path. A clock's drift while another is off adds less than a thousandth.
fn add_error(from: ReferenceReading, half_width_ns: f64) -> i64 {
    let error_ns = from.error_ns.saturating_add(half_width_ns.ceil() as i64);
    error_ns.saturating_add(error_ns / 1000 + 1)
}

/// `None` for times beyond those of messages: they are of no clock.
fn check_range(at_ns: i64) -> Option<i64> {
    let range = -crate::MAX_TIME_NS..=crate::MAX_TIME_NS;
    range.contains(&at_ns).then_some(at_ns)
}
