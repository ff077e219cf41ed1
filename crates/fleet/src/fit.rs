//! What is known of the clocks.

use luc_fleet_core::{Bounds, Evidence, HostId, Jump, Knot, PairFit};
use serde::Serialize;

use crate::clocks::{PairOfClocks, connected};
use crate::error::FleetError;
use crate::figures::{Spread, quantile};
use crate::joined::{HostSummary, Joined};
use crate::map::LeftOut;

/// How the clocks of many hosts relate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fit {
    /// The traces.
    pub hosts: Vec<HostSummary>,
    /// Those that exchange packets.
    pub pairs: Vec<PairReport>,
    /// Hosts that exchange packets with no other.
    pub unrelated: Vec<Unrelated>,
    /// Rows that take no part.
    pub left_out: LeftOut,
}

/// How the clocks of two hosts relate. Offsets are B's CLOCK_MONOTONIC_RAW less A's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairReport {
    /// The host in whose time the fit is.
    pub a: String,
    /// The other.
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
    /// Half the distance of the bounds, over all knots that have both.
    pub half_width: Option<Spread>,
    /// How much faster B's clock runs, parts per million: the median over time.
    pub drift_ppm: Option<f64>,
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
    /// Packets further away.
    pub curvature: u64,
    /// Packets before or after a jump.
    pub jump: u64,
    /// Packets that are all earlier, or all later.
    pub beyond: u64,
    /// Knots, of any evidence, that lack a bound.
    pub without_a_bound: u64,
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
    /// The host.
    pub host: String,
    /// Why.
    pub reason: &'static str,
}

/// Says how the clocks relate.
///
/// # Errors
/// [`FleetError::OneHost`].
pub fn fit(joined: &Joined) -> Result<Fit, FleetError> {
    if let [only] = &joined.hosts[..] {
        return Err(FleetError::OneHost {
            path: only.summary.directory.clone().into(),
        });
    }
    Ok(Fit {
        hosts: joined
            .hosts
            .iter()
            .map(|host| host.summary.clone())
            .collect(),
        pairs: pairs(joined),
        unrelated: unrelated(joined),
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

fn offset(joined: &Joined, a: HostId, fit: &PairFit) -> OffsetReport {
    let start_ns = i64::try_from(joined.host(a).trace.start_ns).unwrap_or(0);
    let since_start_ns = |raw_ns: i64| {
        joined
            .clocks
            .monotonic_ns(a, raw_ns)
            .saturating_sub(start_ns)
    };
    let (first_ns, last_ns) = fit.span_ns();
    let middle_ns = first_ns.midpoint(last_ns);
    let middle = fit.at(middle_ns);
    let knots: Vec<Knot> = fit.knots().collect();
    let widths = knots
        .iter()
        .filter_map(|knot| knot.estimate.bounds.half_width_ns());
    let mut rates: Vec<f64> = knots.iter().filter_map(|knot| knot.rate_ns_per_s).collect();
    rates.sort_unstable_by(f64::total_cmp);
    OffsetReport {
        at_ns: since_start_ns(middle_ns),
        offset_ns: middle.offset_ns,
        low_ns: middle.bounds.low_ns(),
        high_ns: middle.bounds.high_ns(),
        half_width: Spread::of(widths.collect()),
        // 1000 ns each second are a millionth.
        drift_ppm: quantile(&rates, 0.5).map(|rate| rate / 1e3),
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

/// By how much the offset differs between the knots around a jump.
fn size_ns(jump: &Jump, knots: &[Knot]) -> Option<i64> {
    let before = knots.iter().rfind(|knot| knot.at_ns <= jump.after_ns)?;
    let after = knots.iter().find(|knot| knot.at_ns >= jump.before_ns)?;
    after
        .estimate
        .offset_ns?
        .checked_sub(before.estimate.offset_ns?)
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
        let has_both = matches!(knot.estimate.bounds, Bounds::Both { .. });
        counts.without_a_bound += u64::from(!has_both);
    }
    counts
}
