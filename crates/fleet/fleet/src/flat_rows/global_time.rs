//! Maps the times of all hosts to the first host's clock, by straight lines that any engine can carry along.

use luc_fleet_clocks::{HostEvent, HostId};

use crate::joined_traces::JoinedTraces;

/// Maximum distance of knots. A clock's rate changes little between them: at 5 us/s each second, the line is off by 6
/// ns.
const MAX_STEP_NS: u64 = 100_000_000;
/// Minimum number of knots of a host, unless they would be closer than [`MIN_STEP_NS`].
const MIN_KNOTS: u64 = 1_000;
const MIN_STEP_NS: u64 = 1_000_000;
/// Maximum number of knots of a host, however long its trace is.
const MAX_KNOTS: u64 = 6_000;
/// Maximum difference in rate between two clocks without a jump, parts per million.
const MAX_RATE_PPM: i128 = 1_000;
/// Maximum difference from rounding two times.
const MAX_ROUNDING_NS: i128 = 2;

/// Time of a host, and of the first host at that moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Knot {
    at_ns: i64,
    global_ns: Option<i64>,
}

/// Layout of the lines of a host's clock: line `n` begins at `begin_ns + n * step_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HostClock {
    pub(crate) begin_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) step_ns: i64,
}

/// Straight line from a host's clock to that of the first host.
///
/// Let `d` be `t - begin_ns`. The time `t` is `global_ns + d + growth_ns * d / (end_ns - begin_ns)` there, rounded
/// towards zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockLine {
    pub(crate) host: u32,
    /// Number of the line in its host's clock.
    pub(crate) line: u32,
    pub(crate) begin_ns: i64,
    pub(crate) end_ns: i64,
    /// Time of the first host at `begin_ns`.
    pub(crate) global_ns: i64,
    /// Time that the first host's clock gains between `begin_ns` and `end_ns`.
    pub(crate) growth_ns: i64,
}

impl ClockLine {
    /// Connects two knots; `None` if a clock is unknown, or jumped in between.
    fn between(host: u32, line: u32, knots: [Knot; 2]) -> Option<Self> {
        let [begin, end] = knots;
        let (from_ns, to_ns) = (begin.global_ns?, end.global_ns?);
        let length_ns = end.at_ns.checked_sub(begin.at_ns)?;
        let growth_ns = to_ns.checked_sub(from_ns)?.checked_sub(length_ns)?;
        let max_growth_ns = i128::from(length_ns) * MAX_RATE_PPM / 1_000_000 + MAX_ROUNDING_NS;
        (i128::from(growth_ns.saturating_abs()) <= max_growth_ns).then_some(Self {
            host,
            line,
            begin_ns: begin.at_ns,
            end_ns: end.at_ns,
            global_ns: from_ns,
            growth_ns,
        })
    }
}

/// Clocks of all hosts, and the lines that lead from them to the first host's.
///
/// The first host's own clock has one line without growth.
pub(crate) fn host_clocks(joined: &JoinedTraces) -> (Vec<HostClock>, Vec<ClockLine>) {
    let home = joined.clocks.at_home(HostId(0));
    let mut lines = Vec::new();
    let clocks = joined.hosts.iter().zip(0..).map(|(about, host)| {
        let begin_ns = about.trace.start_ns;
        let length_ns = about.summary.length_ns;
        let step_ns = match host {
            0 => length_ns.max(1),
            _ => (length_ns / MIN_KNOTS).clamp(MIN_STEP_NS, MAX_STEP_NS).max(length_ns / MAX_KNOTS),
        };
        let end_ns = begin_ns.saturating_add(length_ns.max(1));
        let times = (begin_ns..end_ns).step_by(usize::try_from(step_ns).unwrap_or(usize::MAX));
        let knots: Vec<Knot> = times
            .chain([end_ns])
            .filter_map(|at_ns| i64::try_from(at_ns).ok())
            .map(|at_ns| {
                let placed = home.place(HostEvent { host: HostId(host), at_ns });
                Knot { at_ns, global_ns: placed.and_then(|placed| placed.at_ns) }
            })
            .collect();
        let pairs = knots.windows(2).zip(0..);
        lines.extend(
            pairs.filter_map(|(pair, line)| ClockLine::between(host, line, [pair[0], pair[1]])),
        );
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        HostClock { begin_ns: signed(begin_ns), end_ns: signed(end_ns), step_ns: signed(step_ns) }
    });
    (clocks.collect(), lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(begin: (i64, Option<i64>), end: (i64, Option<i64>)) -> Option<ClockLine> {
        let knots = [begin, end].map(|(at_ns, global_ns)| Knot { at_ns, global_ns });
        ClockLine::between(1, 0, knots)
    }

    #[test]
    fn lines_connect_what_is_known() {
        let found = line((1_000_000, Some(5_000_000)), (3_000_000, Some(7_000_100))).unwrap();
        assert_eq!((found.global_ns, found.growth_ns), (5_000_000, 100));
        assert_eq!(line((0, None), (1_000_000_000, Some(0))), None);
        assert_eq!(line((0, Some(0)), (1_000_000_000, None)), None);
    }

    #[test]
    fn no_line_crosses_a_jump() {
        let second = 1_000_000_000;
        assert_eq!(line((0, Some(0)), (second, Some(2 * second))), None);
        assert!(line((0, Some(0)), (second, Some(second + 999_000))).is_some());
    }
}
