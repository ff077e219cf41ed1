//! Maps the times of all hosts to the clock of the first, as tables that any engine can carry along.

use luc_fleet_clocks::{Event, HostId};

use crate::joined::Joined;

/// Maximum distance of knots. A clock's rate changes little between them: at 5 us/s each second, the line is off by 6
/// ns.
const MAX_STEP_NS: u64 = 100_000_000;
/// Minimum number of knots of a host, unless they would be closer than [`MIN_STEP_NS`].
const MIN_KNOTS: u64 = 1_000;
/// Minimum distance of knots.
const MIN_STEP_NS: u64 = 1_000_000;
/// Maximum number of knots of a host, however long its trace is.
const MAX_KNOTS: u64 = 6_000;
/// Maximum difference in rate between two clocks without a jump, parts per million.
const MAX_DRIFT_PPM: i128 = 1_000;
/// Maximum difference from rounding two times.
const ROUNDING_NS: i128 = 2;

/// Time of a host, and the same time on the first host's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Knot {
    /// CLOCK_MONOTONIC of the host.
    pub at_ns: i64,
    /// CLOCK_MONOTONIC of the first host; `None`: unknown.
    pub global_ns: Option<i64>,
}

/// Tables that map times to the first host's clock.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct GlobalTimes {
    /// Name and ordered knots of each host. The first host has none, as its times stay.
    pub hosts: Vec<(String, Vec<Knot>)>,
}

impl GlobalTimes {
    /// Place of the host with this name.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<usize> {
        self.hosts.iter().position(|(host, _)| host == name)
    }

    /// Maps a time of a host's CLOCK_MONOTONIC to the first host's; `None`: unknown. It uses integers, so that every
    /// machine computes the same.
    #[must_use]
    pub fn global_ns(&self, host: usize, at_ns: i64) -> Option<i64> {
        if host == 0 {
            return Some(at_ns);
        }
        let (_, knots) = self.hosts.get(host)?;
        let next = knots.partition_point(|knot| knot.at_ns <= at_ns);
        let before = knots.get(next.checked_sub(1)?)?;
        if before.at_ns == at_ns {
            return before.global_ns;
        }
        let after = knots.get(next)?;
        let (from_ns, to_ns) = (before.global_ns?, after.global_ns?);
        let length_ns = after.at_ns.checked_sub(before.at_ns)?;
        let growth_ns = to_ns.checked_sub(from_ns)?.checked_sub(length_ns)?;
        // A clock jumped in between.
        let max_growth_ns = i128::from(length_ns) * MAX_DRIFT_PPM / 1_000_000 + ROUNDING_NS;
        if i128::from(growth_ns.saturating_abs()) > max_growth_ns {
            return None;
        }
        let since_ns = at_ns - before.at_ns;
        let growth_ns = i128::from(growth_ns) * i128::from(since_ns) / i128::from(length_ns);
        from_ns.checked_add(since_ns)?.checked_add(growth_ns as i64)
    }
}

/// Tables for all hosts, with 1,000 knots for each trace, at least one each 100 ms. A trace longer than 10 minutes has
/// 6,000 knots.
#[must_use]
pub fn global_times(joined: &Joined) -> GlobalTimes {
    let home = joined.clocks.at_home(HostId(0));
    let knots = |host: usize| -> Vec<Knot> {
        let summary = &joined.hosts[host].trace;
        let begin_ns = summary.start_ns;
        let end_ns = begin_ns.saturating_add(joined.hosts[host].summary.length_ns);
        let length_ns = end_ns - begin_ns;
        let step_ns =
            (length_ns / MIN_KNOTS).clamp(MIN_STEP_NS, MAX_STEP_NS).max(length_ns / MAX_KNOTS);
        let times = (begin_ns..end_ns).step_by(usize::try_from(step_ns).unwrap_or(usize::MAX));
        times
            .chain([end_ns])
            .filter_map(|at_ns| i64::try_from(at_ns).ok())
            .map(|at_ns| Knot {
                at_ns,
                global_ns: home
                    .place(Event { host: HostId(host as u32), at_ns })
                    .and_then(|placed| placed.at_ns),
            })
            .collect()
    };
    let hosts = joined.hosts.iter().enumerate();
    GlobalTimes {
        hosts: hosts
            .map(|(host, about)| {
                let knots = if host == 0 { Vec::new() } else { knots(host) };
                (about.name.clone(), knots)
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two(knots: &[(i64, Option<i64>)]) -> GlobalTimes {
        let knot = |&(at_ns, global_ns)| Knot { at_ns, global_ns };
        GlobalTimes {
            hosts: vec![
                ("a".to_owned(), Vec::new()),
                ("b".to_owned(), knots.iter().map(knot).collect()),
            ],
        }
    }

    #[test]
    fn between_knots_times_lie_on_the_line() {
        let times = two(&[(1_000_000, Some(5_000_000)), (3_000_000, Some(7_000_100))]);
        assert_eq!(times.place("b"), Some(1));
        assert_eq!(times.global_ns(0, 17), Some(17));
        assert_eq!(times.global_ns(1, 1_000_000), Some(5_000_000));
        assert_eq!(times.global_ns(1, 2_000_000), Some(6_000_050));
        assert_eq!(times.global_ns(1, 3_000_000), Some(7_000_100));
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        let knots = [
            (0, None),
            (1_000_000_000, Some(0)),
            (2_000_000_000, Some(1_000_000_000)),
            // It jumped by a second.
            (3_000_000_000, Some(3_000_000_000)),
        ];
        let times = two(&knots);
        for at_ns in [-1, 0, 500, 2_500_000_000, 3_000_000_001] {
            assert_eq!(times.global_ns(1, at_ns), None, "{at_ns}");
        }
        assert_eq!(times.global_ns(1, 1_500_000_000), Some(500_000_000));
        assert_eq!(times.global_ns(2, 0), None);
        assert_eq!(times.place("c"), None);
    }
}
