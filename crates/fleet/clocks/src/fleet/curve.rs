//! A host's offset to the reference, by the host's own time.

use super::moment::Moment;
use super::placed::Placed;
use crate::bounds::Bounds;
use crate::hull::{bend, chord};

/// The most that a clock's rate differs from another's: twice what the kernel lets NTP correct.
const MAX_RATE: f64 = 1e-3;
/// Curvature on one of two clocks and on the other differ by less than this factor.
const OTHER_CLOCK: f64 = 1.01;

/// What is known of a host at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Anchor {
    /// The host's time.
    at_ns: i64,
    /// The reference's clock less the host's, about.
    base_ns: i64,
    /// The estimate and the bounds, relative to `base_ns`.
    offset: f64,
    low: f64,
    high: f64,
}

impl Anchor {
    /// Of the host of this number; `None` where it is not bounded on both sides.
    pub(super) fn of(moment: &Moment, host: usize) -> Option<Self> {
        let (clock, place) = (moment.clocks[host]?, moment.places[host]);
        let offset = place.offset_ns?;
        // The bounds are of the moment at which the reference shows `moment.at_ns`. The host shows `clock.at_ns` at
        // another one, as far away as the bounds say, and meanwhile the clocks drift.
        let drift = MAX_RATE * place.low_ns.abs().max(place.high_ns.abs());
        Some(Self {
            at_ns: clock.at_ns,
            base_ns: moment.at_ns - clock.at_ns,
            offset: -offset,
            low: -place.high_ns - drift,
            high: -place.low_ns + drift,
        })
    }
}

/// Anchors in order, in parts that no jump is in.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Curve {
    kappa: f64,
    parts: Vec<Vec<Anchor>>,
    is_interrupted: bool,
}

impl Curve {
    pub(super) fn new(kappa: f64) -> Self {
        Self { kappa: kappa * OTHER_CLOCK, parts: Vec::new(), is_interrupted: true }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// A clock jumped: what comes is another part.
    pub(super) fn interrupt(&mut self) {
        self.is_interrupted = true;
    }

    pub(super) fn add(&mut self, anchor: Anchor) {
        let last = self.parts.last_mut().filter(|_| !self.is_interrupted);
        match last {
            // Times that rounding makes alike say the same.
            Some(part) if part.last().is_some_and(|last| last.at_ns >= anchor.at_ns) => {}
            Some(part) => part.push(anchor),
            None => self.parts.push(vec![anchor]),
        }
        self.is_interrupted = false;
    }

    /// What the reference's clock shows when the host's shows `at_ns`.
    pub(super) fn place(&self, at_ns: i64) -> Placed {
        let nothing = Placed { at_ns: None, bounds: Bounds::Unknown };
        let is_in = |part: &&Vec<Anchor>| {
            part.first().is_some_and(|first| first.at_ns <= at_ns)
                && part.last().is_some_and(|last| at_ns <= last.at_ns)
        };
        // A clock that was set back shows some times twice: which was meant is not known.
        let found = self.parts.iter().filter(is_in).map(|part| self.within(part, at_ns));
        let merged = found.reduce(|a, b| Placed { at_ns: None, bounds: a.bounds.or(b.bounds) });
        merged.unwrap_or(nothing)
    }

    fn within(&self, part: &[Anchor], at_ns: i64) -> Placed {
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
        Placed {
            at_ns: Some(about_ns.saturating_add(offset.round() as i64)),
            bounds: Bounds::around(about_ns, low, high),
        }
    }
}
