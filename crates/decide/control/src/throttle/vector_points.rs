//! Vector Points: how many tasks of a given demand a disk can serve (WiseThrottling, section 3.4).
//!
//! A Vector Point `<A-BW, N-CO>` is a limit. N-CO tasks that each want at least A-BW hurt each other more than is
//! allowed. [`vector_points`] takes them from degradation curves that were measured before. [`LossCurve`] learns at
//! run time which speed-up a number of running tasks has. It needs no threshold, and forgets.

use std::collections::BTreeMap;

/// Part of the peak above which the paper limits the sum of demands (section 3.4.2).
pub const BW_RATIO_LIMIT: f64 = 0.5;
/// Half-life of an observation, ns.
const HALF_LIFE_NS: f64 = 60e9;
/// Observation time after which a point is trusted, ns.
const MIN_TRUSTED_NS: f64 = 40e6;
/// Part of the best speed-up that counts as equally good.
const MIN_BEST_FRACTION: f64 = 0.99;

/// Measured point of a degradation curve: tasks of equal demand that run together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Degradation {
    /// Number of tasks that ran together.
    pub tasks: u32,
    /// Rate of each task alone, bytes per second.
    pub demand_bytes_per_s: f64,
    /// Part of that rate lost by running together: 0 nothing, 1 everything.
    pub loss: f64,
}

/// A point `<A-BW, N-CO>`: `tasks` tasks of at least `demand_bytes_per_s` on average are too many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VectorPoint {
    /// A-BW: mean demand of a task, bytes per second.
    pub demand_bytes_per_s: f64,
    /// N-CO: number of co-runners.
    pub tasks: u32,
}

/// Computes Vector Points from measured curves. For each number of tasks from 2, takes the highest demand that is still
/// bearable: all curves up to it stay within the allowed loss (section 3.4.1, step 1). Merges neighbours whose demands
/// differ by less than `merge_within`, a part of the larger demand. The one with more tasks stays (step 2). The result
/// ascends in tasks.
#[must_use]
pub fn vector_points(
    curves: &[Degradation],
    allowed_loss: f64,
    merge_within: f64,
) -> Vec<VectorPoint> {
    let mut by_tasks: BTreeMap<u32, Vec<Degradation>> = BTreeMap::new();
    for point in curves.iter().filter(|point| point.tasks >= 2) {
        by_tasks.entry(point.tasks).or_default().push(*point);
    }
    let mut points: Vec<VectorPoint> = Vec::new();
    for (tasks, mut curve) in by_tasks {
        curve.sort_by(|a, b| a.demand_bytes_per_s.total_cmp(&b.demand_bytes_per_s));
        let bearable = curve.iter().take_while(|point| point.loss <= allowed_loss).last();
        let demand_bytes_per_s = bearable.map_or(0.0, |point| point.demand_bytes_per_s);
        let next = VectorPoint { demand_bytes_per_s, tasks };
        match points.last_mut() {
            Some(last) if is_near(last.demand_bytes_per_s, demand_bytes_per_s, merge_within) => {
                *last = next
            }
            _ => points.push(next),
        }
    }
    points
}

fn is_near(a: f64, b: f64, within: f64) -> bool {
    (a - b).abs() <= within * a.max(b)
}

/// Finds the first Vector Point that tasks with these demands, in bytes per second, violate. Its N-CO highest demands
/// then have a mean of at least A-BW.
#[must_use]
pub fn find_violated<'a>(
    points: &'a [VectorPoint],
    demands_bytes_per_s: &[f64],
) -> Option<&'a VectorPoint> {
    let mut demands = demands_bytes_per_s.to_vec();
    demands.sort_by(|a, b| b.total_cmp(a));
    points.iter().find(|point| {
        let n = point.tasks as usize;
        n > 0
            && demands.len() >= n
            && demands[..n].iter().sum::<f64>() / f64::from(point.tasks) >= point.demand_bytes_per_s
    })
}

/// BW_Ratio: sum of the demands over the peak of the disk, all in bytes per second (section 3.4.2).
#[must_use]
pub fn bw_ratio(demands_bytes_per_s: &[f64], peak_bytes_per_s: f64) -> f64 {
    demands_bytes_per_s.iter().sum::<f64>() / peak_bytes_per_s
}

/// Observations of one number of running tasks.
#[derive(Clone, Copy, Debug, Default)]
struct CurvePoint {
    /// Sum of speed-up times observation time, ns.
    weighted_ns: f64,
    /// Sum of observation times, ns.
    time_ns: f64,
    at_ns: u64,
}

impl CurvePoint {
    fn aged(self, now_ns: u64) -> Self {
        let keep = 0.5_f64.powf(now_ns.saturating_sub(self.at_ns) as f64 / HALF_LIFE_NS);
        Self { weighted_ns: self.weighted_ns * keep, time_ns: self.time_ns * keep, at_ns: now_ns }
    }
}

/// Loss curve that is learned at run time: the speed-up of each number of running tasks.
///
/// The *speed-up* of a running set is the sum over its tasks of their present rate over their solo rate. It is 1 for
/// one task, and the number of tasks if they do not hurt each other. It is below 1 if they do (the paper's degradation,
/// summed).
#[derive(Clone, Debug, Default)]
pub struct LossCurve {
    points: BTreeMap<usize, CurvePoint>,
}

impl LossCurve {
    /// Adds the speed-up of `tasks` tasks that ran together for `time_ns` until `now_ns`.
    pub fn add(&mut self, tasks: usize, speed_up: f64, time_ns: u64, now_ns: u64) {
        let point = self.points.entry(tasks).or_default();
        *point = point.aged(now_ns);
        point.weighted_ns += speed_up * time_ns as f64;
        point.time_ns += time_ns as f64;
    }

    /// Like [`add`](Self::add), but forgets earlier observations of this number of tasks.
    pub fn replace(&mut self, tasks: usize, speed_up: f64, time_ns: u64, now_ns: u64) {
        self.points.remove(&tasks);
        self.add(tasks, speed_up, time_ns, now_ns);
    }

    /// Speed-up of `tasks` tasks that run together, if it is known well enough. One task alone has 1 by definition.
    #[must_use]
    pub fn speed_up(&self, tasks: usize, now_ns: u64) -> Option<f64> {
        if tasks == 1 {
            return Some(1.0);
        }
        let point = self.points.get(&tasks)?.aged(now_ns);
        (point.time_ns >= MIN_TRUSTED_NS).then(|| point.weighted_ns / point.time_ns)
    }

    /// Known numbers of tasks with their speed-up, ascending.
    #[must_use]
    pub fn known(&self, now_ns: u64) -> Vec<(usize, f64)> {
        let more = self.points.keys().filter(|tasks| **tasks > 1);
        std::iter::once(1)
            .chain(more.copied())
            .filter_map(|tasks| Some((tasks, self.speed_up(tasks, now_ns)?)))
            .collect()
    }

    /// Number of `waiting` tasks that should run: the smallest that is as good as the best known number. `None`: all.
    #[must_use]
    pub fn best(&self, waiting: usize, now_ns: u64) -> Option<usize> {
        let known = self.known(now_ns);
        let highest = known.iter().map(|(_, speed_up)| *speed_up).fold(0.0, f64::max);
        let (tasks, _) =
            known.iter().find(|(_, speed_up)| *speed_up >= MIN_BEST_FRACTION * highest)?;
        (*tasks < waiting).then_some(*tasks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: f64 = 1e6;

    /// Curves of a disk that serves `budget` MB/s in all; demand beyond that is lost.
    fn curves(budget: f64) -> Vec<Degradation> {
        let demands = [1.5, 5.1, 8.0, 12.0, 16.0, 20.0, 24.3, 26.4];
        let point = |tasks: u32, demand: f64| Degradation {
            tasks,
            demand_bytes_per_s: demand * MB,
            loss: (1.0 - budget / (f64::from(tasks) * demand)).max(0.0),
        };
        (1..=8).flat_map(|tasks| demands.map(|demand| point(tasks, demand))).collect()
    }

    #[test]
    fn a_point_is_the_highest_demand_under_the_line() {
        let points = vector_points(&curves(45.0), 0.10, 0.0);
        // Two tasks of 24.3 lose 7.4 %, two of 26.4 lose 14.8 %; three bear 16 (6.3 %), not 20.
        assert_eq!((points[0].tasks, points[0].demand_bytes_per_s), (2, 24.3 * MB));
        assert_eq!((points[1].tasks, points[1].demand_bytes_per_s), (3, 16.0 * MB));
    }

    #[test]
    fn neighbours_with_equal_demand_are_merged_into_the_one_with_more_tasks() {
        let all = vector_points(&curves(45.0), 0.10, 0.0);
        assert_eq!(all.iter().map(|p| p.tasks).collect::<Vec<_>>(), [2, 3, 4, 6, 8]);
        let merged = vector_points(&curves(45.0), 0.10, 0.3);
        assert_eq!(merged.iter().map(|p| p.tasks).collect::<Vec<_>>(), [2, 4, 6, 8]);
    }

    #[test]
    fn a_loss_that_is_never_bearable_gives_a_point_at_zero() {
        let unbearable = Degradation { tasks: 2, demand_bytes_per_s: MB, loss: 0.9 };
        let points = vector_points(&[unbearable], 0.1, 0.0);
        assert!(find_violated(&points, &[0.5 * MB, 0.1 * MB]).is_some());
    }

    #[test]
    fn a_point_is_violated_by_enough_tasks_of_enough_demand() {
        let points = [VectorPoint { demand_bytes_per_s: 24.3 * MB, tasks: 2 }];
        assert!(find_violated(&points, &[30.0 * MB]).is_none());
        assert!(find_violated(&points, &[30.0 * MB, 10.0 * MB]).is_none());
        assert!(find_violated(&points, &[1.0 * MB, 30.0 * MB, 24.0 * MB]).is_some());
    }

    #[test]
    fn bw_ratio_is_the_papers() {
        let ratio = bw_ratio(&[26.4 * MB, 26.4 * MB], 90.0 * MB);
        assert!((ratio - 0.587).abs() < 0.001 && ratio > BW_RATIO_LIMIT);
    }

    #[test]
    fn a_disk_with_an_arm_runs_one_and_a_parallel_one_runs_all() {
        let mut arm = LossCurve::default();
        arm.add(2, 0.2, 50_000_000, 0);
        assert_eq!(arm.best(4, 0), Some(1));
        let mut array = LossCurve::default();
        array.add(2, 1.9, 50_000_000, 0);
        assert_eq!(array.best(4, 0), Some(2), "more is to be tried");
        array.add(4, 1.8, 50_000_000, 0);
        assert_eq!(array.best(4, 0), Some(2));
        assert_eq!(array.best(2, 0), None, "both may run");
    }

    #[test]
    fn too_little_and_too_old_is_not_trusted() {
        let mut curve = LossCurve::default();
        curve.add(2, 1.5, 10_000_000, 0);
        assert_eq!(curve.speed_up(2, 0), None);
        curve.add(2, 1.5, 50_000_000, 0);
        assert!(curve.speed_up(2, 0).is_some());
        assert_eq!(curve.speed_up(2, 120_000_000_000), None, "a quarter of 60 ms");
        curve.add(2, 0.5, 60_000_000, 120_000_000_000);
        assert!(curve.speed_up(2, 120_000_000_000).unwrap() < 0.8, "the new counts most");
    }
}
