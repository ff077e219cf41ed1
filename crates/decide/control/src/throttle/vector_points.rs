//! Vector Points: how much demand a disk bears from how many tasks (WiseThrottling, section 3.4).
//!
//! A Vector Point `<A-BW, N-CO>` says that N-CO tasks that each want at least A-BW hurt each other more than is
//! allowed. Off-line they are taken from measured degradation curves ([`vector_points`]); on line [`LossCurve`]
//! learns from turns what a number of running tasks is worth, which needs no threshold and forgets.

use std::collections::BTreeMap;

/// The paper regulates when the sum of demands is above this part of the peak (section 3.4.2).
pub const BW_RATIO_LIMIT: f64 = 0.5;
/// What was learned of a number of tasks counts half after this time, ns.
const HALF_LIFE_NS: f64 = 60e9;
/// A point is trusted when it rests on this much time, ns.
const TRUSTED_NS: f64 = 40e6;
/// A number of running tasks is as good as the best when it reaches this part of it.
const AS_GOOD: f64 = 0.99;

/// A measured point of a degradation curve: tasks of equal demand beside each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Degradation {
    /// How many ran together.
    pub tasks: u32,
    /// What each of them moves alone, bytes per second.
    pub demand_bytes_per_s: f64,
    /// Part of that which it lost together: 0 nothing, 1 everything.
    pub loss: f64,
}

/// `<A-BW, N-CO>`: `tasks` tasks of at least `demand_bytes_per_s` on average are too many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VectorPoint {
    /// A-BW: mean demand of a task, bytes per second.
    pub demand_bytes_per_s: f64,
    /// N-CO: number of co-runners.
    pub tasks: u32,
}

/// Vector Points from measured curves: for each number of tasks (2 and more) the highest demand up to which all
/// curves stay under the allowed loss (section 3.4.1, step 1). Neighbours whose demands differ by less than
/// `merge_within` (a part of the larger) become one, the one with more tasks (step 2). Ascending in tasks.
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

/// The first Vector Point that tasks with these demands (bytes per second) violate: N-CO of them or more have a mean
/// of at least A-BW. The highest demands are taken, since a violation by some is one.
#[must_use]
pub fn violated<'a>(
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

/// BW_Ratio: the sum of the demands over the peak of the disk, all in bytes per second (section 3.4.2).
#[must_use]
pub fn bw_ratio(demands_bytes_per_s: &[f64], peak_bytes_per_s: f64) -> f64 {
    demands_bytes_per_s.iter().sum::<f64>() / peak_bytes_per_s
}

/// What is known of one number of running tasks.
#[derive(Clone, Copy, Debug, Default)]
struct Point {
    /// Speed-up times the time over which it was seen, ns.
    weighted_ns: f64,
    /// That time, ns.
    time_ns: f64,
    at_ns: u64,
}

impl Point {
    fn aged(self, now_ns: u64) -> Self {
        let keep = 0.5_f64.powf(now_ns.saturating_sub(self.at_ns) as f64 / HALF_LIFE_NS);
        Self { weighted_ns: self.weighted_ns * keep, time_ns: self.time_ns * keep, at_ns: now_ns }
    }
}

/// The loss curve, learned on line: what a number of tasks that run together is worth.
///
/// The *speed-up* of a running set is the sum over its tasks of their rate now over their rate alone: 1 for one task,
/// its size where tasks do not hurt each other, and below 1 where they do (the paper's degradation, summed).
#[derive(Clone, Debug, Default)]
pub struct LossCurve {
    points: BTreeMap<usize, Point>,
}

impl LossCurve {
    /// Adds what `tasks` tasks together were worth during `time_ns` that ended at `now_ns`.
    pub fn add(&mut self, tasks: usize, speed_up: f64, time_ns: u64, now_ns: u64) {
        let point = self.points.entry(tasks).or_default();
        let aged = point.aged(now_ns);
        *point = Point {
            weighted_ns: aged.weighted_ns + speed_up * time_ns as f64,
            time_ns: aged.time_ns + time_ns as f64,
            at_ns: now_ns,
        };
    }

    /// Forgets what is known of a number of tasks: it is about to be measured anew.
    pub fn forget(&mut self, tasks: usize) {
        self.points.remove(&tasks);
    }

    /// What `tasks` tasks together are worth, where enough is known. One alone is worth 1 by definition.
    #[must_use]
    pub fn speed_up(&self, tasks: usize, now_ns: u64) -> Option<f64> {
        if tasks == 1 {
            return Some(1.0);
        }
        let point = self.points.get(&tasks)?.aged(now_ns);
        (point.time_ns >= TRUSTED_NS).then(|| point.weighted_ns / point.time_ns)
    }

    /// All that is known: numbers of tasks and their speed-up, ascending.
    #[must_use]
    pub fn known(&self, now_ns: u64) -> Vec<(usize, f64)> {
        let more = self.points.keys().filter(|tasks| **tasks > 1);
        std::iter::once(1)
            .chain(more.copied())
            .filter_map(|tasks| Some((tasks, self.speed_up(tasks, now_ns)?)))
            .collect()
    }

    /// How many of `waiting` tasks should run: the fewest that are as good as the best known number. `None`: all.
    #[must_use]
    pub fn best(&self, waiting: usize, now_ns: u64) -> Option<usize> {
        let known = self.known(now_ns);
        let most = known.iter().map(|(_, speed_up)| *speed_up).fold(0.0, f64::max);
        let (tasks, _) = known.iter().find(|(_, speed_up)| *speed_up >= AS_GOOD * most)?;
        (*tasks < waiting).then_some(*tasks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: f64 = 1e6;

    /// A disk that bears `budget` MB/s in all, and loses a part that grows beyond.
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
        assert!(violated(&points, &[0.5 * MB, 0.1 * MB]).is_some());
    }

    #[test]
    fn a_point_is_violated_by_enough_tasks_of_enough_demand() {
        let points = [VectorPoint { demand_bytes_per_s: 24.3 * MB, tasks: 2 }];
        assert!(violated(&points, &[30.0 * MB]).is_none());
        assert!(violated(&points, &[30.0 * MB, 10.0 * MB]).is_none());
        assert!(violated(&points, &[1.0 * MB, 30.0 * MB, 24.0 * MB]).is_some());
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
