//! Detects slow requests: compares each segment's 99th percentile with those of the segments before.

use std::collections::{HashMap, VecDeque};

use luc_stats::quantile;
use luc_units::number_formats::FormattedTime;

use crate::endpoint::Endpoint;
use crate::explain::ServiceTimes;

/// Maximum number of earlier segments in a forecast.
const MAX_SEGMENTS: usize = 60;
/// Minimum number of earlier segments for a forecast.
const MIN_SEGMENTS: usize = 6;
/// Minimum number of answered requests of a service in a segment. With fewer, its 99th percentile says nothing.
const MIN_REQUESTS: u64 = 50;

/// Service that became slow.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowService {
    pub process: String,
    pub endpoint: Endpoint,
    /// 99th percentile of a segment's requests, ns.
    pub p99_ns: u64,
    /// Forecast of the 99th percentile, ns.
    pub forecast_ns: u64,
}

impl std::fmt::Display for SlowService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let process = luc_units::plain(&self.process);
        let [p99, forecast] = [self.p99_ns, self.forecast_ns].map(FormattedTime::from);
        write!(f, "{process} at {}: p99 is {p99}, and was {forecast}", self.endpoint)
    }
}

/// Forecasts of services: medians of the 99th percentiles of earlier segments.
#[derive(Debug)]
pub struct SlowServiceDetector {
    factor: f64,
    before: HashMap<(String, Endpoint), VecDeque<u64>>,
}

impl SlowServiceDetector {
    /// Creates forecasts. A service is slow if its 99th percentile is more than `factor` times the forecast.
    #[must_use]
    pub fn new(factor: f64) -> Self {
        Self { factor, before: HashMap::new() }
    }

    /// Checks the services of the next segment. Returns the one that became slowest, if any.
    pub fn look(&mut self, services: &[ServiceTimes]) -> Option<SlowService> {
        let slow = services.iter().filter_map(|service| self.check_service(service));
        let ratio = |slow: &SlowService| slow.p99_ns as f64 / slow.forecast_ns.max(1) as f64;
        let slow = slow.max_by(|one, other| ratio(one).total_cmp(&ratio(other)));
        for service in services.iter().filter(|service| has_enough(service)) {
            let key = (service.process.clone(), service.endpoint());
            let before = self.before.entry(key).or_default();
            before.extend(service.p99_ns);
            if before.len() > MAX_SEGMENTS {
                before.pop_front();
            }
        }
        slow
    }

    fn check_service(&self, service: &ServiceTimes) -> Option<SlowService> {
        let p99_ns = service.p99_ns.filter(|_| has_enough(service))?;
        let before = self.before.get(&(service.process.clone(), service.endpoint()))?;
        if before.len() < MIN_SEGMENTS {
            return None;
        }
        let mut sorted: Vec<u64> = before.iter().copied().collect();
        sorted.sort_unstable();
        let forecast_ns = quantile(&sorted, 0.5)?;
        (p99_ns as f64 > self.factor * forecast_ns as f64).then(|| SlowService {
            process: service.process.clone(),
            endpoint: service.endpoint(),
            p99_ns,
            forecast_ns,
        })
    }
}

fn has_enough(service: &ServiceTimes) -> bool {
    service.answered >= MIN_REQUESTS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(port: u16, answered: u64, p99_ns: u64) -> ServiceTimes {
        ServiceTimes {
            host: "web".to_owned(),
            process: "searchd".to_owned(),
            port,
            path: None,
            requests: answered,
            answered,
            p50_ns: Some(1),
            p99_ns: Some(p99_ns),
            max_ns: None,
        }
    }

    #[test]
    fn a_service_is_slow_against_its_own_past() {
        let mut watch = SlowServiceDetector::new(3.0);
        for number in 0..6 {
            // Port 2 is always slow, and port 1 after nothing is known yet.
            let services = [service(1, 50, 100 + number), service(2, 50, 9000)];
            assert_eq!(watch.look(&services), None);
        }
        assert_eq!(watch.look(&[service(1, 50, 300), service(2, 50, 9000)]), None);
        let slow = watch.look(&[service(1, 50, 350), service(2, 50, 9000)]).expect("slow");
        assert_eq!((slow.p99_ns, slow.forecast_ns), (350, 103));
        assert_eq!(slow.endpoint, Endpoint::Port(1));
        let slow = watch.look(&[service(1, 50, 400), service(2, 50, 90_000)]).expect("slow");
        assert_eq!(slow.endpoint, Endpoint::Port(2));
    }

    #[test]
    fn few_requests_say_nothing() {
        let mut watch = SlowServiceDetector::new(3.0);
        for _ in 0..10 {
            watch.look(&[service(1, 50, 100)]);
        }
        assert_eq!(watch.look(&[service(1, 49, 100_000)]), None);
        assert_eq!(watch.look(&[service(7, 50, 100_000)]), None);
    }

    #[test]
    fn what_stays_slow_is_usual_some_time() {
        let mut watch = SlowServiceDetector::new(3.0);
        for _ in 0..MAX_SEGMENTS {
            watch.look(&[service(1, 50, 100)]);
        }
        let slow = (0..MAX_SEGMENTS).filter(|_| watch.look(&[service(1, 50, 1000)]).is_some());
        // As long as it is not most of what is known.
        assert_eq!(slow.count(), MAX_SEGMENTS / 2 + 1);
    }
}
