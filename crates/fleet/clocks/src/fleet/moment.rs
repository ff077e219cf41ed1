//! All hosts at one moment of the reference's clock.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::ClockError;
use crate::fit::{Evidence, Jump, PairFit};
use crate::host::HostId;
use crate::mesh::{PairBounds, Place, place};

/// What a host's clock shows, about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Clock {
    pub(super) at_ns: i64,
    /// How far that may be off, ns.
    error_ns: i64,
}

/// All hosts at one moment.
#[derive(Debug)]
pub(super) struct Moment {
    /// The reference's time.
    pub(super) at_ns: i64,
    /// Each host's clock; `None` without a path of messages of both directions.
    pub(super) clocks: Vec<Option<Clock>>,
    /// Each host's offset to the reference, relative to the difference of `clocks`.
    pub(super) places: Vec<Place>,
}

/// Pairs with the numbers of their hosts.
pub(super) struct Network<'f> {
    hosts: &'f [HostId],
    reference: usize,
    pairs: Vec<(usize, usize, &'f PairFit)>,
}

impl<'f> Network<'f> {
    /// `hosts` is sorted, and has all hosts of the pairs.
    pub(super) fn new(
        hosts: &'f [HostId],
        reference: HostId,
        fits: &'f BTreeMap<(HostId, HostId), PairFit>,
    ) -> Self {
        let number = |host: &HostId| hosts.partition_point(|other| other < host);
        Self {
            hosts,
            reference: number(&reference),
            pairs: fits.iter().map(|((a, b), fit)| (number(a), number(b), fit)).collect(),
        }
    }

    /// The times of all pairs' knots on the reference's clock, in order.
    pub(super) fn knots(&self) -> Vec<i64> {
        let mut origin: Vec<Option<i64>> = vec![None; self.hosts.len()];
        origin[self.reference] = Some(0);
        let mut knots = BTreeSet::new();
        // About where each host's clock is: knots need not be exact, as bounds hold wherever they are.
        while self.spread(&mut origin) {}
        for (a, _, fit) in &self.pairs {
            let Some(origin) = origin[*a] else { continue };
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

    /// Spreads each host's offset to the reference at about the begin to its neighbours.
    fn spread(&self, origin: &mut [Option<i64>]) -> bool {
        let mut is_changed = false;
        for (a, b, fit) in &self.pairs {
            let Some(offset) = fit.knots().find_map(|knot| knot.estimate.offset_ns) else {
                continue;
            };
            match (origin[*a], origin[*b]) {
                (Some(from), None) => origin[*b] = Some(from.saturating_add(offset)),
                (None, Some(from)) => origin[*a] = Some(from.saturating_sub(offset)),
                _ => continue,
            }
            is_changed = true;
        }
        is_changed
    }

    /// All hosts when the reference's clock shows this.
    pub(super) fn at(&self, at_ns: i64) -> Result<Moment, ClockError> {
        let clocks = self.clocks(at_ns);
        let bounds: Vec<PairBounds> = self
            .pairs
            .iter()
            .filter_map(|&(a, b, fit)| {
                let (of_a, of_b) = (clocks[a]?, clocks[b]?);
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
        let places = place(self.hosts.len(), &bounds, self.reference);
        let places =
            places.map_err(|host| ClockError::Contradiction { host: self.hosts[host], at_ns })?;
        Ok(Moment { at_ns, clocks, places })
    }

    /// What each host's clock shows, along paths of few pairs.
    fn clocks(&self, at_ns: i64) -> Vec<Option<Clock>> {
        let mut clocks = vec![None; self.hosts.len()];
        clocks[self.reference] = Some(Clock { at_ns, error_ns: 0 });
        loop {
            let mut reached = Vec::new();
            for &(a, b, fit) in &self.pairs {
                match (clocks[a], clocks[b]) {
                    (Some(from), None) => reached.extend(there(fit, from).map(|clock| (b, clock))),
                    (None, Some(from)) => reached.extend(back(fit, from).map(|clock| (a, clock))),
                    _ => {}
                }
            }
            if reached.is_empty() {
                return clocks;
            }
            for (host, clock) in reached {
                let narrower =
                    clocks[host].is_none_or(|other: Clock| clock.error_ns < other.error_ns);
                if narrower {
                    clocks[host] = Some(clock);
                }
            }
        }
    }

    /// Hosts whose offset to the reference may have jumped between two moments.
    pub(super) fn jumped(&self, before: &Moment, after: &Moment) -> Vec<bool> {
        let mut jumped = vec![false; self.hosts.len()];
        for &(a, b, fit) in &self.pairs {
            let (Some(from), Some(to)) = (before.clocks[a], after.clocks[a]) else {
                continue;
            };
            let (from, to) = (from.at_ns - from.error_ns, to.at_ns + to.error_ns);
            let is_between = |jump: &Jump| jump.after_ns <= to && from <= jump.before_ns;
            if fit.jumps().iter().any(is_between) {
                (jumped[a], jumped[b]) = (true, true);
            }
        }
        // Where the reference jumped, all others did, seen from it.
        let all = jumped[self.reference];
        jumped.into_iter().map(|one| one || all).collect()
    }
}

/// B's clock when A's shows this.
fn there(fit: &PairFit, from: Clock) -> Option<Clock> {
    let known = fit.at(from.at_ns);
    Some(Clock {
        at_ns: in_range(from.at_ns.checked_add(known.offset_ns?)?)?,
        error_ns: error_of(from, known.bounds.half_width_ns()?),
    })
}

/// A's clock when B's shows this: the offset is that of A's time, which is looked for.
fn back(fit: &PairFit, from: Clock) -> Option<Clock> {
    let first = fit.knots().find_map(|knot| knot.estimate.offset_ns)?;
    let mut at_ns = from.at_ns.checked_sub(first)?;
    let mut half_width = None;
    // Each round leaves of an error what the clocks drift in that time, some millionths.
    for _ in 0..4 {
        let known = fit.at(at_ns);
        let Some(offset) =
            known.offset_ns.filter(|_| known.evidence != Evidence::Beyond || half_width.is_none())
        else {
            break;
        };
        at_ns = from.at_ns.checked_sub(offset)?;
        half_width = known.bounds.half_width_ns();
    }
    Some(Clock { at_ns: in_range(at_ns)?, error_ns: error_of(from, half_width?) })
}

/// Errors add up along a path, and a clock's drift while another is off adds less than a thousandth.
fn error_of(from: Clock, half_width_ns: f64) -> i64 {
    let error_ns = from.error_ns.saturating_add(half_width_ns.ceil() as i64);
    error_ns.saturating_add(error_ns / 1000 + 1)
}

/// Times beyond those of messages are of no clock.
fn in_range(at_ns: i64) -> Option<i64> {
    let range = -crate::MAX_TIME_NS..=crate::MAX_TIME_NS;
    range.contains(&at_ns).then_some(at_ns)
}
