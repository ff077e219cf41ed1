//! Reports how the clocks of the hosts relate.

use luc_fleet_clocks::{ClockError, ClockJump, FitKnot, HostId, OffsetEvidence, PairFit};
use serde::Serialize;

use crate::convert_rows::UnconvertedRows;
use crate::error::FleetError;
use crate::host_clocks::{ClockPair, count_connections};
use crate::joined_traces::{HostSummary, JoinedTraces};
use crate::min_median_max::MinMedianMax;

/// Number of intervals between the times at which widths are evaluated.
const WIDTH_SAMPLES: i128 = 1000;

/// Report on how the clocks of many hosts relate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClockFitReport {
    pub hosts: Vec<HostSummary>,
    /// Pairs of hosts that exchange packets.
    pub pairs: Vec<PairReport>,
    /// Hosts that exchange packets with no other.
    pub unrelated: Vec<UnrelatedHost>,
    /// Contradiction between pairs of clocks, in words. Times between hosts are then unknown.
    pub contradiction: Option<String>,
    /// Rows that are left out.
    pub left_out: UnconvertedRows,
}

/// Relation between the clocks of two hosts. Offsets are B's CLOCK_MONOTONIC_RAW minus A's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairReport {
    /// Host in whose time the fit is.
    pub a: String,
    pub b: String,
    /// Connections between them with both ends known.
    pub connections: u64,
    /// Packets from A to B that bound the offset: of each 4 ms the one that bounds most.
    pub packets_a_to_b: usize,
    /// Packets from B to A that bound the offset.
    pub packets_b_to_a: usize,
    /// Offset; `None`: `failure` has the reason.
    pub offset: Option<OffsetReport>,
    /// Reason why the offset is unknown.
    pub failure: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OffsetReport {
    /// Midpoint of the first and the last packet's times, ns after the begin of A's trace.
    pub at_ns: i64,
    /// Offset at that time, ns: the middle of its bounds; `None` without a bound.
    pub offset_ns: Option<i64>,
    /// Guaranteed minimum at that time.
    pub low_ns: Option<i64>,
    /// Guaranteed maximum at that time.
    pub high_ns: Option<i64>,
    /// Half the distance of the bounds, at evenly spaced times from the first to the last packet.
    pub half_width: Option<MinMedianMax>,
    /// Share of these times at which a bound is missing.
    pub without_a_bound: f64,
    /// Drift of B's clock against A's.
    pub drift: Option<RateDifference>,
    /// Number of knots by their evidence.
    pub knots: KnotCounts,
    pub jumps: Vec<JumpReport>,
    /// Whether the offset bends more than is possible for a crystal. Each bound then only holds for a window.
    pub is_strained: bool,
}

/// Number of knots by their evidence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct KnotCounts {
    /// Knots with packets within a step.
    pub packets: u64,
    pub curvature: u64,
    /// Knots beside a jump.
    pub jump: u64,
    /// Knots before or after all packets; they reach some seconds beyond.
    pub beyond: u64,
}

/// Mean difference in rate over the longest time without a jump.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RateDifference {
    /// Estimate, parts per million.
    pub ppm: f64,
    /// Guaranteed error, from the bounds at both ends.
    pub error_ppm: f64,
    pub over_ns: i64,
}

/// Jump of a clock, between two times after the begin of A's trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct JumpReport {
    /// Time of the last packet before it.
    pub after_ns: i64,
    /// Time of the first packet after it.
    pub before_ns: i64,
    /// Offset after the jump minus that before it; `None` if one is unknown.
    pub by_ns: Option<i64>,
}

/// Host whose clock is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnrelatedHost {
    pub host: String,
    pub reason: &'static str,
}

/// Reports how the clocks relate.
///
/// # Errors
/// [`FleetError::OneHost`].
pub fn fit(joined: &JoinedTraces) -> Result<ClockFitReport, FleetError> {
    if let [only] = &joined.hosts[..] {
        return Err(FleetError::OneHost { path: only.summary.directory.clone().into() });
    }
    Ok(ClockFitReport {
        hosts: joined.hosts.iter().map(|host| host.summary.clone()).collect(),
        pairs: report_pairs(joined),
        unrelated: report_unrelated(joined),
        contradiction: describe_contradiction(joined),
        left_out: joined.rows.left_out,
    })
}

/// Reports all pairs of hosts that exchange packets.
pub(crate) fn report_pairs(joined: &JoinedTraces) -> Vec<PairReport> {
    let connections = count_connections(&joined.connections);
    let report = |pair: &ClockPair| {
        let (offset, failure) = match &pair.fit {
            Ok(fit) => (Some(report_offset(joined, pair.a, fit)), None),
            Err(error) => (None, Some(error.to_string())),
        };
        PairReport {
            a: joined.name(pair.a),
            b: joined.name(pair.b),
            connections: connections.get(&(pair.a, pair.b)).copied().unwrap_or(0),
            packets_a_to_b: pair.forward,
            packets_b_to_a: pair.backward,
            offset,
            failure,
        }
    };
    joined.clocks.pairs.iter().map(report).collect()
}

/// Reports the hosts that are in no pair.
pub(crate) fn report_unrelated(joined: &JoinedTraces) -> Vec<UnrelatedHost> {
    if joined.hosts.len() < 2 {
        return Vec::new();
    }
    let connections = count_connections(&joined.connections);
    let hosts = (0..joined.hosts.len()).map(|host| HostId(host as u32));
    let alone = hosts.filter(|&host| {
        let mut pairs = joined.clocks.pairs.iter();
        !pairs.any(|pair| pair.a == host || pair.b == host)
    });
    let report = |host| UnrelatedHost {
        host: joined.name(host),
        reason: if connections.keys().any(|&(a, b)| a == host || b == host) {
            "it has connections with others, but no packet is in both traces"
        } else {
            "no connection has one end here and the other in another trace"
        },
    };
    alone.map(report).collect()
}

/// Describes where pairs contradict each other.
pub(crate) fn describe_contradiction(joined: &JoinedTraces) -> Option<String> {
    let (reference, error) = joined.clocks.contradiction()?;
    let ClockError::Contradiction { host, at_ns } = error else {
        return Some(error.to_string());
    };
    let start_ns = i64::try_from(joined.host(reference).trace.start_ns).unwrap_or(0);
    let at_ns = joined.clocks.monotonic_ns(reference, at_ns);
    let after_s = at_ns.saturating_sub(start_ns) as f64 / 1e9;
    Some(format!(
        "around {} the offsets of the pairs contradict each other, {after_s:.3} s after the trace of {} began: a clock \
         jumped by less than a round trip; give the traces of fewer hosts at once",
        joined.name(host),
        joined.name(reference)
    ))
}

fn report_offset(joined: &JoinedTraces, a: HostId, fit: &PairFit) -> OffsetReport {
    let start_ns = i64::try_from(joined.host(a).trace.start_ns).unwrap_or(0);
    let since_start_ns =
        |raw_ns: i64| joined.clocks.monotonic_ns(a, raw_ns).saturating_sub(start_ns);
    let (first_ns, last_ns) = fit.span_ns();
    let middle_ns = first_ns.midpoint(last_ns);
    let middle = fit.at(middle_ns);
    let knots: Vec<FitKnot> = fit.knots().collect();
    let looked_at = spaced_times(first_ns, last_ns);
    let widths: Vec<f64> =
        looked_at.iter().filter_map(|&at_ns| fit.at(at_ns).bounds.half_width_ns()).collect();
    let missing = looked_at.len() - widths.len();
    OffsetReport {
        at_ns: since_start_ns(middle_ns),
        offset_ns: middle.offset_ns,
        low_ns: middle.bounds.low_ns(),
        high_ns: middle.bounds.high_ns(),
        without_a_bound: missing as f64 / looked_at.len() as f64,
        half_width: MinMedianMax::of(widths),
        drift: estimate_drift(fit),
        knots: count_knots(&knots),
        jumps: fit
            .jumps()
            .iter()
            .map(|jump| JumpReport {
                after_ns: since_start_ns(jump.after_ns),
                before_ns: since_start_ns(jump.before_ns),
                by_ns: jump_size_ns(jump, &knots),
            })
            .collect(),
        is_strained: fit.is_strained(),
    }
}

/// Returns evenly spaced times from the first to the last.
fn spaced_times(first_ns: i64, last_ns: i64) -> Vec<i64> {
    let length_ns = i128::from(last_ns) - i128::from(first_ns);
    (0..=WIDTH_SAMPLES)
        .map(|look| (i128::from(first_ns) + length_ns * look / WIDTH_SAMPLES) as i64)
        .collect()
}

/// Drift over the longest time without a jump.
fn estimate_drift(fit: &PairFit) -> Option<RateDifference> {
    let (first_ns, last_ns) = fit.span_ns();
    let begins = std::iter::once(first_ns).chain(fit.jumps().iter().map(|jump| jump.before_ns));
    let ends = fit.jumps().iter().map(|jump| jump.after_ns);
    let times = begins.zip(ends.chain([last_ns]));
    let (begin_ns, end_ns) =
        times.max_by_key(|(begin_ns, end_ns)| end_ns.saturating_sub(*begin_ns))?;
    let over_ns = end_ns.checked_sub(begin_ns).filter(|&over_ns| over_ns > 0)?;
    let (begin, end) = (fit.at(begin_ns), fit.at(end_ns));
    let gained_ns = end.offset_ns?.checked_sub(begin.offset_ns?)?;
    let error_ns = begin.bounds.half_width_ns()? + end.bounds.half_width_ns()?;
    let per_million = |ns: f64| ns / over_ns as f64 * 1e6;
    Some(RateDifference {
        ppm: per_million(gained_ns as f64),
        error_ppm: per_million(error_ns),
        over_ns,
    })
}

/// Size of a jump: the difference between the nearest knots that rest on packets nearby. Other knots beside the jump
/// rest on packets further away.
fn jump_size_ns(jump: &ClockJump, knots: &[FitKnot]) -> Option<i64> {
    let near: Vec<&FitKnot> =
        knots.iter().filter(|knot| knot.estimate.evidence == OffsetEvidence::Messages).collect();
    let before = near.iter().rfind(|knot| knot.at_ns <= jump.after_ns)?;
    let after = near.iter().find(|knot| knot.at_ns >= jump.before_ns)?;
    let (before_ns, after_ns) = (before.estimate.offset_ns?, after.estimate.offset_ns?);
    after_ns.checked_sub(before_ns)
}

fn count_knots(knots: &[FitKnot]) -> KnotCounts {
    let mut counts = KnotCounts::default();
    for knot in knots {
        *match knot.estimate.evidence {
            OffsetEvidence::Messages => &mut counts.packets,
            OffsetEvidence::Curvature => &mut counts.curvature,
            OffsetEvidence::Jump => &mut counts.jump,
            OffsetEvidence::Beyond => &mut counts.beyond,
        } += 1;
    }
    counts
}
