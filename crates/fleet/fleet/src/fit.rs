//! What is known of the clocks.

use luc_fleet_clocks::{ClockError, Evidence, HostId, Jump, Knot, PairFit};
use serde::Serialize;

use crate::clocks::{PairOfClocks, connected};
use crate::error::FleetError;
use crate::figures::Spread;
use crate::joined::{HostSummary, Joined};
use crate::map::LeftOut;

/// So many times, and one, are looked at for widths.
const LOOKS: i128 = 1000;

/// How the clocks of many hosts relate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fit {
    pub hosts: Vec<HostSummary>,
    /// Those that exchange packets.
    pub pairs: Vec<PairReport>,
    /// Hosts that exchange packets with no other.
    pub unrelated: Vec<Unrelated>,
    /// Where the pairs of more than two hosts contradict each other: times between hosts are not known then.
    pub contradiction: Option<String>,
    /// Rows that take no part.
    pub left_out: LeftOut,
}

/// How the clocks of two hosts relate. Offsets are B's CLOCK_MONOTONIC_RAW less A's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairReport {
    /// The host in whose time the fit is.
    pub a: String,
    pub b: String,
    /// Connections between them whose ends are both known.
    pub connections: u64,
    /// Packets from A to B that count: of each 4 ms the one that bounds most.
    pub packets_a_to_b: usize,
    /// The same from B to A.
    pub packets_b_to_a: usize,
    /// What is known; `None`: `failure` says why not.
    pub offset: Option<OffsetReport>,
    /// Why nothing is known.
    pub failure: Option<String>,
}

/// An offset over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OffsetReport {
    /// The middle of the time between the first and the last packet, ns since A's trace began.
    pub at_ns: i64,
    /// The offset then, ns: the middle of its bounds; `None` where a bound is missing.
    pub offset_ns: Option<i64>,
    /// Its guaranteed least value then.
    pub low_ns: Option<i64>,
    /// Its guaranteed greatest value then.
    pub high_ns: Option<i64>,
    /// Half the distance of the bounds, at times that are evenly between the first and the last packet.
    pub half_width: Option<Spread>,
    /// The share of these times at which a bound is missing.
    pub without_a_bound: f64,
    /// How much faster B's clock runs.
    pub drift: Option<Drift>,
    /// What the knots rest on.
    pub knots: KnotCounts,
    /// Times in which a clock jumped.
    pub jumps: Vec<JumpReport>,
    /// Whether the offset bends more than is taken for possible: the bounds then hold for a window each.
    pub is_strained: bool,
}

/// Knots by what they rest on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct KnotCounts {
    /// Packets within a step.
    pub packets: u64,
    pub curvature: u64,
    /// Packets before or after a jump.
    pub jump: u64,
    /// Packets that are all earlier, or all later: knots reach some seconds beyond all packets.
    pub beyond: u64,
}

/// How much faster a clock runs, on the average of the longest time without a jump.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Drift {
    /// The estimate, parts per million.
    pub ppm: f64,
    /// By how much it may be off: guaranteed, as the bounds of both ends are.
    pub error_ppm: f64,
    pub over_ns: i64,
}

/// A jump of a clock, between two times since A's trace began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct JumpReport {
    /// The last packet before it.
    pub after_ns: i64,
    /// The first packet after it.
    pub before_ns: i64,
    /// How large it is: the offset after it less that before it; `None` where one is not known.
    pub by_ns: Option<i64>,
}

/// A host whose clock is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unrelated {
    pub host: String,
    pub reason: &'static str,
}

/// Says how the clocks relate.
///
/// # Errors
/// [`FleetError::OneHost`].
pub fn fit(joined: &Joined) -> Result<Fit, FleetError> {
    if let [only] = &joined.hosts[..] {
        return Err(FleetError::OneHost { path: only.summary.directory.clone().into() });
    }
    Ok(Fit {
        hosts: joined.hosts.iter().map(|host| host.summary.clone()).collect(),
        pairs: pairs(joined),
        unrelated: unrelated(joined),
        contradiction: contradiction(joined),
        left_out: joined.rows.left_out,
    })
}

/// All pairs of hosts that exchange packets.
pub(crate) fn pairs(joined: &Joined) -> Vec<PairReport> {
    let connected = connected(&joined.connections);
    let report = |pair: &PairOfClocks| {
        let (offset, failure) = match &pair.fit {
            Ok(fit) => (Some(offset(joined, pair.a, fit)), None),
            Err(error) => (None, Some(error.to_string())),
        };
        PairReport {
            a: joined.name(pair.a),
            b: joined.name(pair.b),
            connections: connected.get(&(pair.a, pair.b)).copied().unwrap_or(0),
            packets_a_to_b: pair.forward,
            packets_b_to_a: pair.backward,
            offset,
            failure,
        }
    };
    joined.clocks.pairs.iter().map(report).collect()
}

/// The hosts that are in no pair.
pub(crate) fn unrelated(joined: &Joined) -> Vec<Unrelated> {
    if joined.hosts.len() < 2 {
        return Vec::new();
    }
    let connected = connected(&joined.connections);
    let hosts = (0..joined.hosts.len()).map(|host| HostId(host as u32));
    let alone = hosts.filter(|&host| {
        let mut pairs = joined.clocks.pairs.iter();
        !pairs.any(|pair| pair.a == host || pair.b == host)
    });
    let report = |host| Unrelated {
        host: joined.name(host),
        reason: if connected.keys().any(|&(a, b)| a == host || b == host) {
            "it has connections with others, but no packet is in both traces"
        } else {
            "no connection has one end here and the other in another trace"
        },
    };
    alone.map(report).collect()
}

/// Where pairs contradict each other, in words.
pub(crate) fn contradiction(joined: &Joined) -> Option<String> {
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

fn offset(joined: &Joined, a: HostId, fit: &PairFit) -> OffsetReport {
    let start_ns = i64::try_from(joined.host(a).trace.start_ns).unwrap_or(0);
    let since_start_ns =
        |raw_ns: i64| joined.clocks.monotonic_ns(a, raw_ns).saturating_sub(start_ns);
    let (first_ns, last_ns) = fit.span_ns();
    let middle_ns = first_ns.midpoint(last_ns);
    let middle = fit.at(middle_ns);
    let knots: Vec<Knot> = fit.knots().collect();
    let looked_at = times(first_ns, last_ns);
    let widths: Vec<f64> =
        looked_at.iter().filter_map(|&at_ns| fit.at(at_ns).bounds.half_width_ns()).collect();
    let missing = looked_at.len() - widths.len();
    OffsetReport {
        at_ns: since_start_ns(middle_ns),
        offset_ns: middle.offset_ns,
        low_ns: middle.bounds.low_ns(),
        high_ns: middle.bounds.high_ns(),
        without_a_bound: missing as f64 / looked_at.len() as f64,
        half_width: Spread::of(widths),
        drift: drift(fit),
        knots: counts(&knots),
        jumps: fit
            .jumps()
            .iter()
            .map(|jump| JumpReport {
                after_ns: since_start_ns(jump.after_ns),
                before_ns: since_start_ns(jump.before_ns),
                by_ns: size_ns(jump, &knots),
            })
            .collect(),
        is_strained: fit.is_strained(),
    }
}

/// Times evenly from the first to the last.
fn times(first_ns: i64, last_ns: i64) -> Vec<i64> {
    let length_ns = i128::from(last_ns) - i128::from(first_ns);
    (0..=LOOKS).map(|look| (i128::from(first_ns) + length_ns * look / LOOKS) as i64).collect()
}

/// The drift over the longest time without a jump.
fn drift(fit: &PairFit) -> Option<Drift> {
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
    Some(Drift { ppm: per_million(gained_ns as f64), error_ppm: per_million(error_ns), over_ns })
}

/// By how much the offset differs between the knots around a jump that have packets nearby: on the other side of the
/// jump, each side's knots only have packets beyond it.
fn size_ns(jump: &Jump, knots: &[Knot]) -> Option<i64> {
    let near: Vec<&Knot> =
        knots.iter().filter(|knot| knot.estimate.evidence == Evidence::Messages).collect();
    let before = near.iter().rfind(|knot| knot.at_ns <= jump.after_ns)?;
    let after = near.iter().find(|knot| knot.at_ns >= jump.before_ns)?;
    let (before_ns, after_ns) = (before.estimate.offset_ns?, after.estimate.offset_ns?);
    after_ns.checked_sub(before_ns)
}

fn counts(knots: &[Knot]) -> KnotCounts {
    let mut counts = KnotCounts::default();
    for knot in knots {
        let count = match knot.estimate.evidence {
            Evidence::Messages => &mut counts.packets,
            Evidence::Curvature => &mut counts.curvature,
            Evidence::Jump => &mut counts.jump,
            Evidence::Beyond => &mut counts.beyond,
        };
        *count += 1;
    }
    counts
}
