//! A host's offset to the reference, by the host's own time.

use super::fleet_moment::FleetMoment;
use super::reference_time::ReferenceTime;
use crate::bounds::Bounds;
use crate::host_ids::HostIndex;
use crate::lower_hull::{bend, chord};

/// Maximum difference of the rates of two clocks: twice the correction that the kernel allows NTP.
const MAX_RATE: f64 = 1e-3;
/// Maximum ratio of the curvature on one clock to that on another.
const MAX_CURVATURE_RATIO: f64 = 1.01;

/// Estimate and bounds of a host's offset at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct OffsetAnchor {
    /// Time of the host.
    at_ns: i64,
    /// About the reference's clock less the host's.
    base_ns: i64,
    /// Estimate relative to `base_ns`; so are the bounds.
    offset: f64,
    low: f64,
    high: f64,
}

impl OffsetAnchor {
    /// `None` where the host is not bounded on both sides.
    pub(super) fn new(moment: &FleetMoment, host: HostIndex) -> Option<Self> {
        let (clock, found) = (moment.clocks[host.0]?, moment.offsets[host.0]);
        let offset = found.offset_ns?;
        // The bounds are of the moment at which the reference shows `moment.at_ns`. The host shows `clock.at_ns` at
        // another one, as far away as the bounds say, and meanwhile the clocks drift.
        let drift = MAX_RATE * found.low_ns.abs().max(found.high_ns.abs());
        Some(Self {
            at_ns: clock.at_ns,
            base_ns: moment.at_ns - clock.at_ns,
            offset: -offset,
            low: -found.high_ns - drift,
            high: -found.low_ns + drift,
        })
    }
}

/// Anchors in order, in parts without jumps.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OffsetCurve {
    kappa: f64,
    parts: Vec<Vec<OffsetAnchor>>,
    is_interrupted: bool,
}

impl OffsetCurve {
    pub(super) fn new(kappa: f64) -> Self {
        Self { kappa: kappa * MAX_CURVATURE_RATIO, parts: Vec::new(), is_interrupted: true }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Begins another part with the next anchor: a clock jumped.
    pub(super) fn interrupt(&mut self) {
        self.is_interrupted = true;
    }

    pub(super) fn add(&mut self, anchor: OffsetAnchor) {
        let last = self.parts.last_mut().filter(|_| !self.is_interrupted);
        match last {
            // Rounding may make times equal.
            Some(part) if part.last().is_some_and(|last| last.at_ns >= anchor.at_ns) => {}
            Some(part) => part.push(anchor),
            None => self.parts.push(vec![anchor]),
        }
        self.is_interrupted = false;
    }

    /// Returns the time of the reference's clock when the host's shows `at_ns`.
    pub(super) fn place(&self, at_ns: i64) -> ReferenceTime {
        let nothing = ReferenceTime { at_ns: None, bounds: Bounds::Unknown };
        let is_in = |part: &&Vec<OffsetAnchor>| {
            part.first().is_some_and(|first| first.at_ns <= at_ns)
                && part.last().is_some_and(|last| at_ns <= last.at_ns)
        };
        // A clock that was set back shows some times twice; which one is meant is not known.
        let found = self.parts.iter().filter(is_in).map(|part| self.within(part, at_ns));
        let merged =
            found.reduce(|a, b| ReferenceTime { at_ns: None, bounds: a.bounds.or(b.bounds) });
        merged.unwrap_or(nothing)
    }

    fn within(&self, part: &[OffsetAnchor], at_ns: i64) -> ReferenceTime {
        let next = part.partition_point(|anchor| anchor.at_ns < at_ns);
        let b = part[next];
        let a = part[next.saturating_sub(usize::from(b.at_ns > at_ns))];
        let (before, after) = ((at_ns - a.at_ns) as f64 * 1e-9, (b.at_ns - at_ns) as f64 * 1e-9);
        let shift = (b.base_ns - a.base_ns) as f64;
        let height = |a: f64, b: f64| a + chord(0.0, b + shift - a, before, after);
        let (offset, low, high) = if a.at_ns == b.at_ns {
            (b.offset, b.low, b.high)
        } else {
            let bend = bend(self.kappa, before, after);
            (height(a.offset, b.offset), height(a.low, b.low) - bend, height(a.high, b.high) + bend)
        };
        let about_ns = a.base_ns.saturating_add(at_ns);
        ReferenceTime {
            at_ns: Some(about_ns.saturating_add(offset.round() as i64)),
            bounds: Bounds::around(about_ns, low, high),
        }
    }
}
