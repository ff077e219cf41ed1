//! Reports the times of messages from host to host.

use std::collections::BTreeMap;

use luc_fleet_clocks::HostId;
use luc_fleet_requests::MessageEdge;
use luc_stats::quantile;
use serde::Serialize;

use crate::joined_traces::JoinedTraces;
use crate::min_median_max::MinMedianMax;

/// Messages of one direction between two hosts, or within one.
///
/// A time is measured from the begin of the call that sends to the end of the call that receives. It includes what the
/// receiver did before it read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OneWayTimes {
    pub from: String,
    pub to: String,
    pub edges: u64,
    /// Median time, ns; `None`: no time is known.
    pub p50_ns: Option<i64>,
    /// 99th percentile of the times, ns.
    pub p99_ns: Option<i64>,
    /// Error of the times, ns: half the width of their guaranteed bounds. `None` within a host, where times are exact,
    /// and if no time is known.
    pub error: Option<MinMedianMax>,
    /// Edges without a time, as the clocks are unknown.
    pub without_a_time: u64,
    /// Edges that arrived before they were sent, whatever the clocks are within their bounds. The traces then
    /// contradict themselves.
    pub before_sent: u64,
}

/// Times of one direction.
#[derive(Default)]
struct DirectionTimes {
    times_ns: Vec<i64>,
    errors_ns: Vec<f64>,
    edges: u64,
    before_sent: u64,
}

pub(super) fn report(joined: &JoinedTraces, edges: &[MessageEdge]) -> Vec<OneWayTimes> {
    let mut by_receiver: BTreeMap<HostId, Vec<&MessageEdge>> = BTreeMap::new();
    for edge in edges {
        by_receiver.entry(edge.received.host).or_default().push(edge);
    }
    let mut all: BTreeMap<(HostId, HostId), DirectionTimes> = BTreeMap::new();
    for (to, edges) in by_receiver {
        let home = joined.clocks.at_home(to);
        for edge in edges {
            let times = all.entry((edge.sent.host, to)).or_default();
            times.edges += 1;
            let sent = home.place_ns(edge.sent.host, edge.sent.at_ns);
            let (Some(sent), Ok(received_ns)) = (sent, i64::try_from(edge.received.at_ns)) else {
                continue;
            };
            let is_before = sent.bounds.low_ns().is_some_and(|low_ns| received_ns < low_ns);
            times.before_sent += u64::from(is_before);
            if let Some(at_ns) = sent.at_ns {
                times.times_ns.push(received_ns.saturating_sub(at_ns));
                times.errors_ns.extend(sent.bounds.half_width_ns());
            }
        }
    }
    let report = |((from, to), mut times): ((HostId, HostId), DirectionTimes)| {
        times.times_ns.sort_unstable();
        OneWayTimes {
            from: joined.name(from),
            to: joined.name(to),
            edges: times.edges,
            p50_ns: quantile(&times.times_ns, 0.5),
            p99_ns: quantile(&times.times_ns, 0.99),
            error: (from != to).then(|| MinMedianMax::of(times.errors_ns)).flatten(),
            without_a_time: times.edges - times.times_ns.len() as u64,
            before_sent: times.before_sent,
        }
    };
    all.into_iter().map(report).collect()
}
