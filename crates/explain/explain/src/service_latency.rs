//! Latencies of services, from the sums of `luc record --fleet --summary`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use luc_events::Cgroup;
use luc_events::event_kinds::SocketRole;
use luc_events::tables::ExchangeSum;
use serde::Serialize;

use crate::latency_histogram::LatencyDistribution;
use crate::saturating_grow::SaturatingGrow as _;

/// Time below which all steps are as long as the first, ns.
const EVEN_BELOW_NS: u64 = 8 << 10;
/// Length of the first step, ns.
const FIRST_NS: u64 = 1 << 10;

/// Time that a program took to answer a peer, or a peer to answer the program.
#[derive(Clone, Debug, Serialize)]
pub struct ServiceLatency {
    /// Name of the program's main thread.
    pub program: String,
    pub cgroup: Cgroup,
    /// `server` if the program answered, `client` if it asked.
    pub side: &'static str,
    pub port: u32,
    /// The other end's address; empty for all peers that are not counted apart.
    pub peer: String,
    /// Requests per second, over the intervals with any requests.
    pub per_s: f64,
    /// Latency of requests. Quantiles are means of steps of a quarter of a power of two, at most a quarter off.
    pub latency: LatencyDistribution,
    /// Interval with the greatest 99th percentile.
    pub worst: ServiceInterval,
}

/// An interval of a service's sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ServiceInterval {
    /// Begin of the interval, from the start of the trace.
    pub since_start_ns: u64,
    pub length_ns: u64,
    /// Number of requests that ended in it.
    pub count: u64,
    pub p99_ns: u64,
}

/// Identity of a service's sums.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    program: String,
    cgroup: Cgroup,
    side: u8,
    namespace: u64,
    port: u32,
    peer: String,
}

/// Counts and times by the shortest time of each step.
#[derive(Clone, Debug, Default)]
struct Steps(BTreeMap<u64, (u64, u64)>);

impl Steps {
    fn add(&mut self, at_least_ns: u64, count: u64, total_ns: u64) {
        let step = self.0.entry(at_least_ns).or_default();
        step.0.grow(count);
        step.1.grow(total_ns);
    }

    fn count(&self) -> u64 {
        self.0.values().fold(0, |sum, step| sum.saturating_add(step.0))
    }

    /// Returns the mean of the step with this quantile.
    fn quantile_ns(&self, quantile: f64) -> u64 {
        let rank = ((quantile * self.count() as f64).ceil() as u64).max(1);
        let mut seen = 0_u64;
        let found = self.0.values().find(|step| {
            seen = seen.saturating_add(step.0);
            seen >= rank
        });
        found.map_or(0, |&(count, total_ns)| total_ns / count.max(1))
    }

    fn latency(&self) -> LatencyDistribution {
        let count = self.count();
        let total_ns = self.0.values().fold(0_u64, |sum, step| sum.saturating_add(step.1));
        LatencyDistribution {
            count,
            total_ns,
            mean_ns: total_ns.checked_div(count).unwrap_or(0),
            p50_ns: self.quantile_ns(0.5),
            p90_ns: self.quantile_ns(0.9),
            p99_ns: self.quantile_ns(0.99),
            p999_ns: self.quantile_ns(0.999),
            max_ns: self.quantile_ns(1.0),
            buckets: self
                .0
                .iter()
                .map(|(&at_least_ns, &(count, _))| (upper_edge_ns(at_least_ns), count))
                .collect(),
        }
    }
}

/// Returns the end of the step that begins here.
fn upper_edge_ns(at_least_ns: u64) -> u64 {
    let length_ns = match at_least_ns.checked_ilog2() {
        Some(log2) if at_least_ns >= EVEN_BELOW_NS => 1 << (log2 - 2),
        _ => FIRST_NS,
    };
    at_least_ns.saturating_add(length_ns)
}

/// Sums of a program and a peer.
#[derive(Clone, Debug, Default)]
struct Service {
    all: Steps,
    /// Steps of the interval that ends at `at_ns`.
    now: Steps,
    at_ns: u64,
    interval_ns: u64,
    worst: Option<ServiceInterval>,
}

impl Service {
    fn add(&mut self, row: &ExchangeSum, start_ns: u64) {
        if row.at_ns != self.at_ns {
            self.end_interval(start_ns);
            (self.at_ns, self.interval_ns) = (row.at_ns, row.interval_ns);
        }
        for steps in [&mut self.all, &mut self.now] {
            steps.add(row.at_least_ns, row.count, row.total_ns);
        }
    }

    fn end_interval(&mut self, start_ns: u64) {
        let steps = std::mem::take(&mut self.now);
        let begin_ns = self.at_ns.saturating_sub(self.interval_ns);
        let interval = ServiceInterval {
            since_start_ns: begin_ns.saturating_sub(start_ns),
            length_ns: self.interval_ns,
            count: steps.count(),
            p99_ns: steps.quantile_ns(0.99),
        };
        let worst_ns = self.worst.map(|worst| worst.p99_ns);
        if interval.count > 0 && worst_ns.is_none_or(|worst_ns| interval.p99_ns > worst_ns) {
            self.worst = Some(interval);
        }
    }
}

/// Sums over services, by program and peer.
#[derive(Debug, Default)]
pub(crate) struct ServiceSums {
    by_key: BTreeMap<Key, Service>,
    /// End of the last interval; `intervals_ns` is the length of all.
    at_ns: u64,
    intervals_ns: u64,
}

impl ServiceSums {
    /// Takes in a row. Rows come in the order of time.
    pub(crate) fn add(&mut self, row: &ExchangeSum, start_ns: u64) {
        let key = Key {
            program: row.program.clone(),
            cgroup: row.cgroup,
            side: row.side.code(),
            namespace: row.namespace.0,
            port: row.port,
            peer: row.peer.clone(),
        };
        self.by_key.entry(key).or_default().add(row, start_ns);
        if row.at_ns != self.at_ns {
            self.at_ns = row.at_ns;
            self.intervals_ns.grow(row.interval_ns);
        }
    }

    /// Returns the services, most time first.
    pub(crate) fn report(&self, start_ns: u64) -> Vec<ServiceLatency> {
        let seconds = self.intervals_ns.max(1) as f64 / 1e9;
        let mut services: Vec<ServiceLatency> = self
            .by_key
            .iter()
            .map(|(key, service)| {
                let mut service = service.clone();
                service.end_interval(start_ns);
                let latency = service.all.latency();
                ServiceLatency {
                    program: key.program.clone(),
                    cgroup: key.cgroup,
                    side: SocketRole::from_code(key.side).unwrap_or_default().name(),
                    port: key.port,
                    peer: key.peer.clone(),
                    per_s: latency.count as f64 / seconds,
                    latency,
                    worst: service.worst.unwrap_or_default(),
                }
            })
            .collect();
        services.sort_by_key(|service| Reverse(service.latency.total_ns));
        services
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn row(at_s: u64, at_least_ns: u64, count: u64, each_ns: u64) -> ExchangeSum {
        ExchangeSum {
            at_ns: at_s * SECOND,
            interval_ns: 10 * SECOND,
            program: "redis-server".to_owned(),
            side: SocketRole::Server,
            port: 6379,
            peer: "10.0.0.2".to_owned(),
            at_least_ns,
            count,
            total_ns: count * each_ns,
            ..ExchangeSum::default()
        }
    }

    fn services(rows: &[ExchangeSum]) -> Vec<ServiceLatency> {
        let mut services = ServiceSums::default();
        for row in rows {
            services.add(row, 100 * SECOND);
        }
        services.report(100 * SECOND)
    }

    #[test]
    fn steps_of_all_intervals_are_one_distribution() {
        let found = services(&[
            row(110, 8192, 98, 9000),
            row(120, 8192, 97, 9000),
            row(120, 1 << 20, 5, 1_100_000),
        ]);
        assert_eq!(found.len(), 1);
        let (service, latency) = (&found[0], &found[0].latency);
        assert_eq!((service.program.as_str(), service.side), ("redis-server", "server"));
        assert_eq!((latency.count, latency.p50_ns, latency.p99_ns), (200, 9000, 1_100_000));
        assert_eq!(latency.buckets, [(10_240, 195), (1_310_720, 5)]);
        assert!((service.per_s - 10.0).abs() < 1e-9);
    }

    #[test]
    fn the_worst_interval_has_the_greatest_p99() {
        let found = services(&[row(110, 8192, 98, 9000), row(120, 1 << 20, 5, 1_100_000)]);
        let worst = ServiceInterval {
            since_start_ns: 10 * SECOND,
            length_ns: 10 * SECOND,
            count: 5,
            p99_ns: 1_100_000,
        };
        assert_eq!(found[0].worst, worst);
    }

    #[test]
    fn peers_are_apart_and_the_one_that_took_most_time_is_first() {
        let other = ExchangeSum { peer: "10.0.0.3".to_owned(), ..row(110, 8192, 500, 9000) };
        let found = services(&[row(110, 8192, 98, 9000), other]);
        let peers: Vec<&str> = found.iter().map(|service| service.peer.as_str()).collect();
        assert_eq!(peers, ["10.0.0.3", "10.0.0.2"]);
    }

    #[test]
    fn rows_of_a_damaged_trace_are_no_panic() {
        let huge = ExchangeSum {
            at_least_ns: u64::MAX,
            count: u64::MAX,
            total_ns: u64::MAX,
            interval_ns: u64::MAX,
            ..row(110, 0, 1, 1)
        };
        let found = services(&[huge.clone(), huge, row(1, 0, 0, 0)]);
        assert_eq!(found[0].latency.count, u64::MAX);
    }
}
