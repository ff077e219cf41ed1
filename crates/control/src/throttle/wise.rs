//! The paper's policy, as printed (WiseThrottling, section 4): for comparison, not for use.
//!
//! At each check interval: tasks that are due by their `dtimeslice` and busy are candidates; while the sum of demands
//! or a Vector Point is violated, the candidate with the highest demand (*sensitivity*) is suspended; else those
//! suspended longest are resumed, few at a time. Threads are tasks of their own here, so they count one by one. Its
//! weak point is that demand is read under contention (see the tests).

mod profile;

use std::collections::BTreeMap;

use super::sample::{Action, Class, Decision, Order, Policy, Reason, Sample, TaskId, TaskSample};
use super::vector_points::{BW_RATIO_LIMIT, VectorPoint, bw_ratio, violated};
pub use profile::{Profile, profile};

/// Settings of [`Wise`], by the paper's names.
#[derive(Clone, Debug, PartialEq)]
pub struct WiseConfig {
    /// CHECK_INTERVAL, ns: 1 s and more.
    pub check_interval_ns: u64,
    /// IO_BUSY_THRESHOLD: a task is busy above this, bytes per second.
    pub busy_bytes_per_s: u64,
    /// Peak bandwidth of the disk, bytes per second.
    pub peak_bytes_per_s: f64,
    /// BW_Ratio: the sum of demands may be this part of the peak.
    pub bw_ratio: f64,
    /// Vector Points of the disk.
    pub vector_points: Vec<VectorPoint>,
    /// TURNABLE_ext: after so many idle inspections in a row a task is inspected more rarely.
    pub turnable_ext: u32,
    /// TURNABLE_sht: after so many busy inspections in a row a task is inspected more often.
    pub turnable_sht: u32,
    /// X: by how much.
    pub factor: u64,
    /// RESUME_GROUP: part of the co-runners that are resumed at a check at most.
    pub resume_group: f64,
}

impl WiseConfig {
    /// The paper's settings, for a disk of this peak (bytes per second) with these Vector Points. The threshold is not
    /// given there: 1 MB/s is assumed.
    #[must_use]
    pub fn paper(peak_bytes_per_s: f64, vector_points: Vec<VectorPoint>) -> Self {
        Self {
            check_interval_ns: 1_000_000_000,
            busy_bytes_per_s: 1_000_000,
            peak_bytes_per_s,
            bw_ratio: BW_RATIO_LIMIT,
            vector_points,
            turnable_ext: 10,
            turnable_sht: 5,
            factor: 2,
            resume_group: 0.25,
        }
    }
}

/// A task's description `<dtimeslice, sensitivity>`, and what it takes to keep it.
#[derive(Clone, Copy, Debug)]
struct Description {
    dtimeslice: u64,
    initial_dtimeslice: u64,
    sensitivity: f64,
    /// Its present I/O, bytes per second.
    demand: f64,
    idle: u32,
    busy: u32,
    /// The check at which it was suspended.
    suspended: Option<u64>,
    bytes: u64,
}

/// The paper's policy for one disk.
#[derive(Clone, Debug)]
pub struct Wise {
    config: WiseConfig,
    /// From the static module.
    profiles: BTreeMap<TaskId, u64>,
    tasks: BTreeMap<TaskId, Description>,
    /// Checks so far; `None` before the first look.
    checks: Option<u64>,
    checked_ns: u64,
}

impl Wise {
    /// A policy that has seen nothing yet.
    #[must_use]
    pub fn new(config: WiseConfig) -> Self {
        Self {
            config,
            profiles: BTreeMap::new(),
            tasks: BTreeMap::new(),
            checks: None,
            checked_ns: 0,
        }
    }

    /// What the static module found for a task: its initial `dtimeslice`. 1 where nothing is said.
    pub fn describe(&mut self, task: TaskId, dtimeslice: u64) {
        self.profiles.insert(task, dtimeslice.max(1));
    }

    /// A task's present `<dtimeslice, sensitivity>`: check intervals, and bytes per second.
    #[must_use]
    pub fn description(&self, task: TaskId) -> Option<(u64, f64)> {
        self.tasks
            .get(&task)
            .map(|task| (task.dtimeslice, task.sensitivity))
    }

    /// Reads everybody's I/O since the last check.
    fn read(&mut self, tasks: &[TaskSample], elapsed_ns: u64) {
        let elapsed_s = (elapsed_ns as f64 / 1e9).max(1e-9);
        self.tasks.retain(|id, _| {
            tasks
                .iter()
                .any(|task| task.task == *id && task.class == Class::Batch)
        });
        for sample in tasks.iter().filter(|task| task.class == Class::Batch) {
            let initial = self.profiles.get(&sample.task).copied().unwrap_or(1);
            let task = self.tasks.entry(sample.task).or_insert(Description {
                dtimeslice: initial,
                initial_dtimeslice: initial,
                sensitivity: 0.0,
                demand: 0.0,
                idle: 0,
                busy: 0,
                suspended: None,
                bytes: sample.bytes,
            });
            task.demand = sample.bytes.saturating_sub(task.bytes) as f64 / elapsed_s;
            task.bytes = sample.bytes;
        }
    }

    fn is_busy(&self, task: &Description) -> bool {
        task.demand > self.config.busy_bytes_per_s as f64
    }

    /// Candidate_Queue_Setup (Fig. 18a): due, busy and running tasks, highest sensitivity first.
    fn candidates(&mut self, check: u64) -> Vec<TaskId> {
        let busy_above = self.config.busy_bytes_per_s as f64;
        let mut queue: Vec<(f64, TaskId)> = Vec::new();
        for (id, task) in &mut self.tasks {
            let is_due = check.is_multiple_of(task.dtimeslice) && task.suspended.is_none();
            if is_due && task.demand > busy_above {
                task.sensitivity = task.demand;
                queue.push((task.sensitivity, *id));
            }
        }
        queue.sort_by(|a, b| b.0.total_cmp(&a.0));
        queue.into_iter().map(|(_, id)| id).collect()
    }

    /// Whether those that run ask for too much.
    fn is_violated(&self) -> bool {
        let running = self.tasks.values().filter(|task| task.suspended.is_none());
        let demands: Vec<f64> = running.map(|task| task.demand).collect();
        bw_ratio(&demands, self.config.peak_bytes_per_s) > self.config.bw_ratio
            || violated(&self.config.vector_points, &demands).is_some()
    }

    /// Coordination (Fig. 18b): suspends the most sensitive while anything is violated, else resumes.
    fn coordinate(&mut self, candidates: &[TaskId], check: u64) -> Vec<Order> {
        if !self.is_violated() {
            return self.resume();
        }
        let mut orders = Vec::new();
        for id in candidates {
            if !self.is_violated() {
                break;
            }
            if let Some(task) = self.tasks.get_mut(id) {
                task.suspended = Some(check);
                orders.push(order(*id, Action::Freeze));
            }
        }
        orders
    }

    /// Resumes the longest suspended, at most a part of all.
    fn resume(&mut self) -> Vec<Order> {
        let most = ((self.tasks.len() as f64 * self.config.resume_group) as usize).max(1);
        let mut suspended: Vec<(u64, TaskId)> = self
            .tasks
            .iter()
            .filter_map(|(id, task)| Some((task.suspended?, *id)))
            .collect();
        suspended.sort_unstable();
        suspended.truncate(most);
        let mut orders = Vec::new();
        for (_, id) in suspended {
            if let Some(task) = self.tasks.get_mut(&id) {
                task.suspended = None;
                orders.push(order(id, Action::Thaw));
            }
        }
        orders
    }

    /// SelfTuning_Adaptive_Dtimeslice (Fig. 16b), for the tasks that were due and ran. The counters start again after
    /// each change.
    fn tune(&mut self, due: &[TaskId]) {
        for id in due {
            let Some(mut task) = self.tasks.get(id).copied() else {
                continue;
            };
            if self.is_busy(&task) {
                (task.busy, task.idle) = (task.busy + 1, 0);
                if task.busy >= self.config.turnable_sht {
                    task.dtimeslice =
                        (task.dtimeslice / self.config.factor.max(1)).max(task.initial_dtimeslice);
                    task.busy = 0;
                }
            } else {
                (task.busy, task.idle) = (0, task.idle + 1);
                if task.idle >= self.config.turnable_ext {
                    task.dtimeslice = task.dtimeslice.saturating_mul(self.config.factor.max(1));
                    task.idle = 0;
                }
            }
            self.tasks.insert(*id, task);
        }
    }

    fn check(&mut self, check: u64) -> Vec<Order> {
        let is_due = |task: &Description| check.is_multiple_of(task.dtimeslice);
        if !self.tasks.values().any(is_due) {
            return Vec::new();
        }
        let due: Vec<TaskId> = self
            .tasks
            .iter()
            .filter(|(_, task)| is_due(task) && task.suspended.is_none())
            .map(|(id, _)| *id)
            .collect();
        let candidates = self.candidates(check);
        let orders = self.coordinate(&candidates, check);
        self.tune(&due);
        orders
    }
}

fn order(task: TaskId, action: Action) -> Order {
    Order {
        task,
        action,
        reason: Reason::Rule,
    }
}

impl Policy for Wise {
    fn decide(&mut self, sample: &Sample<'_>) -> Decision {
        let elapsed_ns = sample.now_ns.saturating_sub(self.checked_ns);
        let is_first = self.checks.is_none();
        let mut orders = Vec::new();
        if is_first || elapsed_ns >= self.config.check_interval_ns {
            self.read(sample.tasks, elapsed_ns);
            self.checked_ns = sample.now_ns;
            let check = self.checks.map_or(0, |checks| checks + 1);
            if !is_first {
                orders = self.check(check - 1);
            }
            self.checks = Some(check);
        }
        Decision {
            orders,
            look_again_ns: self.checked_ns + self.config.check_interval_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::DiskSample;
    use super::*;

    const MB: u64 = 1_000_000;

    /// Drives the policy second by second with the demands of each task, in MB/s.
    struct Driver {
        wise: Wise,
        tasks: Vec<TaskSample>,
        now_ns: u64,
    }

    impl Driver {
        fn new(config: WiseConfig, dtimeslices: &[u64]) -> Self {
            let mut wise = Wise::new(config);
            let ids = (0..dtimeslices.len() as u32).map(TaskId);
            for (id, dtimeslice) in ids.clone().zip(dtimeslices) {
                wise.describe(id, *dtimeslice);
            }
            let mut driver = Self {
                wise,
                tasks: ids.map(TaskSample::new).collect(),
                now_ns: 0,
            };
            driver.look();
            driver
        }

        fn look(&mut self) -> Vec<(u32, Action)> {
            let decision = self.wise.decide(&Sample {
                now_ns: self.now_ns,
                disk: DiskSample::default(),
                tasks: &self.tasks,
            });
            for order in &decision.orders {
                self.tasks[order.task.0 as usize].frozen = order.action == Action::Freeze;
            }
            decision
                .orders
                .iter()
                .map(|order| (order.task.0, order.action))
                .collect()
        }

        /// A second in which tasks that are not frozen moved this much.
        fn second(&mut self, demands_mb: &[u64]) -> Vec<(u32, Action)> {
            self.now_ns += 1_000_000_000;
            for (task, demand) in self.tasks.iter_mut().zip(demands_mb) {
                task.bytes += if task.frozen { 0 } else { demand * MB };
            }
            self.look()
        }

        fn dtimeslice(&self, task: u32) -> u64 {
            self.wise.description(TaskId(task)).unwrap().0
        }
    }

    fn config() -> WiseConfig {
        let point = |demand: f64, tasks| VectorPoint {
            demand_bytes_per_s: demand * 1e6,
            tasks,
        };
        // The one point that the paper names, and three like those of Fig. 10.
        let points = vec![
            point(24.3, 2),
            point(16.0, 3),
            point(12.0, 5),
            point(8.0, 7),
        ];
        WiseConfig::paper(90e6, points)
    }

    #[test]
    fn figure_17_the_interval_grows_while_idle_and_shrinks_when_busy() {
        let mut driver = Driver::new(config(), &[1]);
        let mut seen = Vec::new();
        for second in 0..56 {
            // x264: busy until 15, idle until 35, then it writes back.
            let is_busy = !(15..36).contains(&second);
            driver.second(&[if is_busy { 9 } else { 0 }]);
            seen.push(driver.dtimeslice(0));
        }
        let changes: Vec<(usize, u64)> = (1..seen.len())
            .filter(|s| seen[*s] != seen[s - 1])
            .map(|s| (s, seen[s]))
            .collect();
        assert_eq!(changes, [(24, 2), (44, 1)]);
    }

    #[test]
    fn figure_19_suspends_the_most_sensitive_and_resumes_the_longest_suspended() {
        use Action::{Freeze, Thaw};
        // Task 0, task 1, the two threads of task 2 (as 2 and 3), the two threads of task 3 (as 4 and 5).
        let mut driver = Driver::new(
            WiseConfig {
                turnable_ext: 2,
                ..config()
            },
            &[2, 2, 3, 3, 1, 1],
        );
        let nothing: Vec<(u32, Action)> = Vec::new();
        assert_eq!(driver.second(&[30, 20, 12, 11, 0, 0]), [(0, Freeze)]);
        assert_eq!(driver.dtimeslice(4), 1);
        assert_eq!(
            driver.second(&[30, 0, 25, 23, 0, 0]),
            nothing,
            "violated, but nobody due is busy"
        );
        assert_eq!(driver.dtimeslice(4), 2);
        assert_eq!(
            driver.second(&[30, 0, 25, 23, 0, 0]),
            nothing,
            "task 1 need not be suspended"
        );
        assert_eq!(
            driver.second(&[30, 0, 25, 23, 0, 0]),
            [(2, Freeze)],
            "one thread of task 2"
        );
        assert_eq!(
            driver.second(&[30, 5, 25, 8, 0, 0]),
            [(0, Thaw)],
            "the longest suspended"
        );
        assert_eq!(driver.dtimeslice(4), 4);
        assert_eq!(
            driver.second(&[15, 5, 25, 8, 0, 0]),
            nothing,
            "nobody is due"
        );
        assert_eq!(driver.second(&[15, 5, 25, 8, 0, 0]), [(2, Thaw)]);
        assert_eq!(
            driver.wise.description(TaskId(0)).unwrap().1,
            15e6,
            "sensitivity follows the I/O"
        );
    }

    #[test]
    fn demand_read_under_contention_suspends_nobody() {
        // Measured: four readers that want 95 MB/s each got 19.4 MB/s together.
        let mut driver = Driver::new(config(), &[1, 1, 1, 1]);
        for _ in 0..9 {
            assert!(driver.second(&[5, 5, 5, 5]).is_empty());
        }
    }

    #[test]
    fn nobody_is_ordered_between_checks() {
        let mut driver = Driver::new(config(), &[1, 1]);
        driver.tasks[0].bytes += 80 * MB;
        driver.now_ns += 500_000_000;
        assert!(driver.look().is_empty());
    }
}
