//! The fit of a pair of hosts.

mod find_jump;
mod fit_segment;
mod knot_bounds;
mod message_bucket;
mod offset_estimate;
mod tighten_bounds;

use crate::bounds::Bounds;
use crate::error::ClockError;
use crate::fit_options::{CheckedFitOptions, FitOptions};
use crate::offset_points::PairPoints;
use find_jump::JumpCut;
use fit_segment::FitSegment;
use message_bucket::MessageBucket;
pub use offset_estimate::{ClockJump, FitKnot, OffsetEstimate, OffsetEvidence};

/// Maximum number of contradictions: more are no jumps of a clock, and each costs a search.
const MAX_JUMPS: usize = 100;

/// Relation of the clocks of two hosts while there are messages between them.
#[derive(Debug, Clone, PartialEq)]
pub struct PairFit {
    segments: Vec<FitSegment>,
    jumps: Vec<ClockJump>,
}

/// Relates the clock of B to that of A by the messages between them. Times are those of CLOCK_MONOTONIC_RAW
/// ([`ClockMap`](crate::ClockMap)).
///
/// At each knot the offset is between the highest and the lowest line that separate the messages of both directions,
/// which are bent by the maximum curvature. The line is the offset's tangent.
///
/// # Errors
/// [`ClockError::NoMessages`], [`ClockError::Setting`], [`ClockError::TooManyJumps`].
pub fn fit(points: &PairPoints, options: &FitOptions) -> Result<PairFit, ClockError> {
    let settings = options.check()?;
    let buckets = message_bucket::fill_buckets(points, &settings);
    if buckets.is_empty() {
        return Err(ClockError::NoMessages);
    }
    let mut found = PairFit { segments: Vec::new(), jumps: Vec::new() };
    // The last one is the earliest.
    let mut waiting = vec![buckets];
    while let Some(buckets) = waiting.pop() {
        match fit_segment::fit(&buckets, &settings) {
            Ok(segment) => found.segments.push(segment),
            Err(cut) => {
                found.jumps.push(cut.jump);
                if found.jumps.len() > MAX_JUMPS {
                    return Err(ClockError::TooManyJumps(found.jumps.len()));
                }
                let (before, after) = split(buckets, cut, &settings);
                waiting.extend([after, before].into_iter().filter(|part| !part.is_empty()));
            }
        }
    }
    if found.segments.is_empty() {
        return Err(ClockError::NoMessages);
    }
    found.jumps.sort_unstable_by_key(|jump| jump.before_ns);
    Ok(found)
}

/// Splits messages at a cut. Messages in between are left out, as their side is not known.
fn split(
    mut buckets: Vec<MessageBucket>,
    cut: JumpCut,
    settings: &CheckedFitOptions,
) -> (Vec<MessageBucket>, Vec<MessageBucket>) {
    let first_after = buckets.partition_point(|bucket| bucket.last_ns() < cut.after_from_ns);
    let mut after = buckets.split_off(first_after);
    let shared = after.first().and_then(|bucket| bucket.until(cut.before_until_ns, settings));
    if let Some(first) = after.first_mut()
        && let Some(rest) = first.from(cut.after_from_ns, settings)
    {
        *first = rest;
    }
    while let Some(last) = buckets.pop() {
        if let Some(kept) = last.until(cut.before_until_ns, settings) {
            buckets.push(kept);
            break;
        }
    }
    buckets.extend(shared);
    (buckets, after)
}

impl PairFit {
    /// Estimates the offset at `at_ns`, A's time.
    #[must_use]
    pub fn at(&self, at_ns: i64) -> OffsetEstimate {
        let next = self.segments.partition_point(|segment| segment.last_ns() < at_ns);
        let before = next.checked_sub(1).map(|before| &self.segments[before]);
        let after = self.segments.get(next);
        let either = |known: OffsetEstimate, other: &FitSegment| {
            OffsetEstimate::of(known.bounds.or(other.at(at_ns).bounds), OffsetEvidence::Jump)
        };
        match (before, after) {
            (before, Some(inside)) if inside.first_ns() <= at_ns => {
                let mut known = inside.at(at_ns);
                if let Some(before) = before
                    && at_ns < inside.sure_from_ns()
                {
                    known = either(known, before);
                }
                if let Some(later) = self.segments.get(next + 1)
                    && at_ns > inside.sure_until_ns()
                {
                    known = either(known, later);
                }
                known
            }
            (Some(before), Some(after)) => either(before.at(at_ns), after),
            (Some(one), None) | (None, Some(one)) => one.at(at_ns),
            (None, None) => OffsetEstimate::of(Bounds::Unknown, OffsetEvidence::Beyond),
        }
    }

    /// Returns contradictions between messages, in order: a clock jumped by more than a round trip.
    #[must_use]
    pub fn jumps(&self) -> &[ClockJump] {
        &self.jumps
    }

    /// Whether the bound of the curvature holds around each knot, but is contradicted over longer times. The bounds
    /// then are those of each knot's window alone.
    #[must_use]
    pub fn is_strained(&self) -> bool {
        self.segments.iter().any(FitSegment::is_strained)
    }

    /// Returns the times of the first and the last message, A's.
    #[must_use]
    pub fn span_ns(&self) -> (i64, i64) {
        let first = self.segments.first().map_or(0, FitSegment::first_ns);
        (first, self.segments.last().map_or(0, FitSegment::last_ns))
    }

    /// Returns the bound of the curvature, ns/s².
    pub(crate) fn kappa(&self) -> f64 {
        self.segments.first().map_or(0.0, FitSegment::kappa)
    }

    /// Returns the time from knot to knot, ns.
    pub(crate) fn step_ns(&self) -> i64 {
        self.segments.first().map_or(1, FitSegment::step_ns)
    }

    /// Returns all knots, in order.
    pub fn knots(&self) -> impl Iterator<Item = FitKnot> {
        self.segments.iter().flat_map(FitSegment::rows)
    }
}
