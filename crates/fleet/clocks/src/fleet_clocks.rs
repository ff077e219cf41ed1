//! Many hosts at any time, on the clock of one of them.

mod event_order;
mod fleet_moment;
mod offset_curve;
mod reference_time;

use std::collections::{BTreeMap, BTreeSet};

use crate::bounds::Bounds;
use crate::error::ClockError;
use crate::host_ids::{HostId, HostIndex};
use crate::pair_fit::{OffsetEvidence, PairFit};
pub use event_order::EventOrder;
use fleet_moment::FleetMoment;
use offset_curve::{OffsetAnchor, OffsetCurve};
pub use reference_time::ReferenceTime;

/// Two hosts, and the relation of their clocks.
#[derive(Debug, Clone, PartialEq)]
pub struct HostPair {
    /// The host whose time the fit is in.
    pub a: HostId,
    /// The other host.
    pub b: HostId,
    /// Fit of B's clock less A's.
    pub fit: PairFit,
}

/// An event on a host, at a time of its own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostEvent {
    /// The host.
    pub host: HostId,
    /// CLOCK_MONOTONIC_RAW of that host.
    pub at_ns: i64,
}

/// The clocks of many hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetClocks {
    reference: HostId,
    pairs: BTreeMap<(HostId, HostId), PairFit>,
    curves: BTreeMap<HostId, OffsetCurve>,
}

impl FleetClocks {
    /// Relates all hosts of these pairs to `reference`. At each knot of a pair the bounds are tightened along all paths
    /// of pairs, and the estimates are least squares over all of them ([`place`](crate::place)).
    ///
    /// # Errors
    /// [`ClockError::BadPair`], [`ClockError::Contradiction`].
    pub fn new(reference: HostId, pairs: Vec<HostPair>) -> Result<Self, ClockError> {
        let mut fits = BTreeMap::new();
        for HostPair { a, b, fit } in pairs {
            let is_known = fits.contains_key(&(b, a)) || fits.contains_key(&(a, b));
            if a == b || is_known {
                return Err(ClockError::BadPair(a, b));
            }
            fits.insert((a, b), fit);
        }
        let hosts: BTreeSet<HostId> =
            fits.keys().flat_map(|&(a, b)| [a, b]).chain([reference]).collect();
        let hosts: Vec<HostId> = hosts.into_iter().collect();
        let kappa = fits.values().map(PairFit::kappa).fold(0.0, f64::max);
        let mut curves = vec![OffsetCurve::new(kappa); hosts.len()];
        let network = fleet_moment::PairNetwork::new(&hosts, reference, &fits);
        let mut last: Option<FleetMoment> = None;
        for at_ns in network.knots() {
            let moment = network.at(at_ns)?;
            let jumped = last.as_ref().map(|last| network.find_jumped(last, &moment));
            for (index, curve) in curves.iter_mut().enumerate() {
                if jumped.as_ref().is_some_and(|jumped| jumped[index]) {
                    curve.interrupt();
                }
                if let Some(anchor) = OffsetAnchor::new(&moment, HostIndex(index)) {
                    curve.add(anchor);
                }
            }
            last = Some(moment);
        }
        Ok(Self { reference, curves: hosts.into_iter().zip(curves).collect(), pairs: fits })
    }

    /// Returns the host on whose clock everything is placed.
    #[must_use]
    pub fn reference(&self) -> HostId {
        self.reference
    }

    /// Returns hosts that no path of messages of both directions connects with the reference at any time.
    pub fn disconnected(&self) -> impl Iterator<Item = HostId> {
        let others = self.curves.iter().filter(|(host, _)| **host != self.reference);
        others.filter(|(_, curve)| curve.is_empty()).map(|(&host, _)| host)
    }

    /// Returns the time of an event on the reference's clock.
    ///
    /// # Errors
    /// [`ClockError::UnknownHost`].
    pub fn global_ns(&self, event: HostEvent) -> Result<ReferenceTime, ClockError> {
        let curve = self.curves.get(&event.host);
        let curve = curve.ok_or(ClockError::UnknownHost(event.host))?;
        if event.host == self.reference {
            return Ok(ReferenceTime::exactly(event.at_ns));
        }
        Ok(curve.place(event.at_ns))
    }

    /// Returns the order of two events.
    ///
    /// # Errors
    /// [`ClockError::UnknownHost`].
    pub fn order(&self, first: HostEvent, second: HostEvent) -> Result<EventOrder, ClockError> {
        if first.host == second.host {
            return Ok(EventOrder::Certain(first.at_ns.cmp(&second.at_ns)));
        }
        let (a, b) = (self.global_ns(first)?, self.global_ns(second)?);
        let through_reference = event_order::later_by(a.bounds, b.bounds);
        let direct = if let Some(fit) = self.pairs.get(&(first.host, second.host)) {
            later_by_fit(fit, first, second)
        } else if let Some(fit) = self.pairs.get(&(second.host, first.host)) {
            later_by_fit(fit, second, first).negated()
        } else {
            Bounds::Unknown
        };
        let estimate = a.at_ns.zip(b.at_ns).map(|(a, b)| i128::from(b) - i128::from(a));
        Ok(EventOrder::of(through_reference.and(direct), estimate))
    }
}

/// Returns the time from the first event to the second, by the fit of the two hosts alone.
fn later_by_fit(fit: &PairFit, first: HostEvent, second: HostEvent) -> Bounds {
    let known = fit.at(first.at_ns);
    if known.evidence == OffsetEvidence::Jump {
        return Bounds::Unknown;
    }
    let on_second = |offset: Option<i64>| offset.map(|offset| first.at_ns.saturating_add(offset));
    let bounds = Bounds::of(on_second(known.bounds.low_ns()), on_second(known.bounds.high_ns()));
    event_order::later_by(bounds, ReferenceTime::exactly(second.at_ns).bounds)
}
