//! A filter that keeps the few messages that bound an offset most.

use std::collections::VecDeque;

use crate::offset_points::OffsetPoint;

/// Length of the intervals, ns; of each one message is kept.
const KEEP_INTERVAL_NS: i64 = 4_000_000;
/// Length of the intervals whose best messages give the slope, ns.
const SLOPE_INTERVAL_NS: i64 = 1_000_000_000;
/// Number of slopes whose median is taken.
const MAX_SLOPES: usize = 15;

/// Direction of messages between two hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairDirection {
    /// From A to B: the lowest message bounds most.
    Forward,
    /// From B to A: the highest message bounds most.
    Backward,
}

/// A filter of the messages of one direction while they come in, so that a recorder can keep them. Of each 4 ms it
/// keeps the one that bounds most, once the drift of the clocks is subtracted. Leaving messages out only loosens
/// bounds.
///
/// The drift is the median of the slopes between the best messages of successive seconds. So single slow messages, and
/// jumps, do not count.
#[derive(Debug, Clone)]
pub struct MessageThinner {
    direction: PairDirection,
    kept: Lowest,
    second: Lowest,
    last_best: Option<OffsetPoint>,
    slopes: VecDeque<f64>,
    slope: f64,
}

/// The lowest point of an interval.
#[derive(Debug, Clone)]
struct Lowest {
    length_ns: i64,
    found: Option<OffsetPoint>,
}

impl Lowest {
    /// Adds a point. Returns the lowest of the last interval if the point is of another one.
    fn add(
        &mut self,
        point: OffsetPoint,
        height: impl Fn(OffsetPoint) -> f64,
    ) -> Option<OffsetPoint> {
        let interval = |point: OffsetPoint| point.at_ns().div_euclid(self.length_ns);
        match self.found {
            Some(last) if interval(last) == interval(point) => {
                if height(point) < height(last) {
                    self.found = Some(point);
                }
                None
            }
            _ => self.found.replace(point),
        }
    }
}

impl MessageThinner {
    /// Returns a filter of the messages of a direction.
    #[must_use]
    pub fn new(direction: PairDirection) -> Self {
        let lowest = |length_ns| Lowest { length_ns, found: None };
        Self {
            direction,
            kept: lowest(KEEP_INTERVAL_NS),
            second: lowest(SLOPE_INTERVAL_NS),
            last_best: None,
            slopes: VecDeque::with_capacity(MAX_SLOPES),
            slope: 0.0,
        }
    }

    /// Adds a message. Returns the one to keep of an interval that is over with it. Messages come in the order of their
    /// times; a late one may be kept in addition.
    pub fn add(&mut self, point: OffsetPoint) -> Option<OffsetPoint> {
        // Heights are relative to the best of the last second: a float has no room for years in ns.
        let origin = self.last_best.unwrap_or(point);
        let (slope, sign) = (self.slope, self.sign());
        let height = move |point: OffsetPoint| {
            let rise = (point.offset_ns() - origin.offset_ns()) as f64;
            sign * (rise - slope * (point.at_ns() - origin.at_ns()) as f64)
        };
        if let Some(best) = self.second.add(point, height) {
            self.learn(best);
        }
        self.kept.add(point, height)
    }

    /// Returns the message to keep of the last interval.
    pub fn finish(self) -> Option<OffsetPoint> {
        self.kept.found
    }

    fn sign(&self) -> f64 {
        match self.direction {
            PairDirection::Forward => 1.0,
            PairDirection::Backward => -1.0,
        }
    }

    fn learn(&mut self, best: OffsetPoint) {
        let Some(last) = self.last_best.replace(best) else {
            return;
        };
        let length_ns = best.at_ns() - last.at_ns();
        if length_ns <= 0 {
            return;
        }
        if self.slopes.len() == MAX_SLOPES {
            self.slopes.pop_front();
        }
        let rise = (best.offset_ns() - last.offset_ns()) as f64;
        self.slopes.push_back(rise / length_ns as f64);
        let mut sorted: Vec<f64> = self.slopes.iter().copied().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        self.slope = sorted[sorted.len() / 2];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thin(
        direction: PairDirection,
        points: impl Iterator<Item = OffsetPoint>,
    ) -> Vec<OffsetPoint> {
        let mut thinner = MessageThinner::new(direction);
        let mut kept: Vec<OffsetPoint> = points.filter_map(|point| thinner.add(point)).collect();
        kept.extend(thinner.finish());
        kept
    }

    #[test]
    fn one_of_each_interval_is_kept() {
        let point = |at_us: i64, offset| OffsetPoint::forward(at_us * 1000, at_us * 1000 + offset);
        let all = [(0, 9), (1000, 5), (3999, 7), (4000, 8), (9000, 3), (9001, 2)];
        let all: Vec<OffsetPoint> =
            all.iter().map(|&(at, offset)| point(at, offset).expect("in range")).collect();
        let low = thin(PairDirection::Forward, all.iter().copied());
        assert_eq!(low, [all[1], all[3], all[5]]);
        let high = thin(PairDirection::Backward, all.iter().copied());
        assert_eq!(high, [all[0], all[3], all[4]]);
        assert_eq!(MessageThinner::new(PairDirection::Forward).finish(), None);
    }

    #[test]
    fn the_drift_is_taken_off() {
        // 500 µs/s are 2 µs in 4 ms: without taking them off the first message of each 4 ms would be the lowest.
        let point = |index: i64| {
            let at = index * 1_000_000;
            let delay = if index % 4 == 2 { 0 } else { 500 };
            OffsetPoint::forward(at, at + at / 2000 + delay).expect("in range")
        };
        let kept = thin(PairDirection::Forward, (0..5000).map(point));
        let late = kept.iter().filter(|point| point.at_ns() > 2_500_000_000);
        assert!(late.clone().count() > 600);
        assert!(late.clone().all(|point| point.at_ns() / 1_000_000 % 4 == 2));
    }

    #[test]
    fn extremes_do_not_overflow() {
        let far = crate::MAX_TIME_NS;
        let times = [(-far, far), (far, -far), (0, 0), (far, far), (-far, -far), (-far, far)];
        for direction in [PairDirection::Forward, PairDirection::Backward] {
            let points = times.map(|(a, b)| OffsetPoint::forward(a, b).expect("in range"));
            assert!(!thin(direction, points.into_iter()).is_empty());
        }
    }
}
