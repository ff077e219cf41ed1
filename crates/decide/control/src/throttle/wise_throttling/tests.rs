//! The paper's worked examples, and where its rules fall short.

use super::super::policy_input::DiskSample;
use super::*;

const MB: u64 = 1_000_000;

/// Drives the policy second by second with the demands of each task, in MB/s.
struct Driver {
    wise: WisePolicy,
    tasks: Vec<TaskSample>,
    now_ns: u64,
}

impl Driver {
    fn new(config: WiseConfig, dtimeslices: &[u64]) -> Self {
        let mut wise = WisePolicy::new(config);
        let ids = (0..dtimeslices.len() as u32).map(TaskId);
        for (id, dtimeslice) in ids.clone().zip(dtimeslices) {
            wise.describe(id, *dtimeslice);
        }
        let mut driver = Self { wise, tasks: ids.map(TaskSample::new).collect(), now_ns: 0 };
        driver.look();
        driver
    }

    fn look(&mut self) -> Vec<(u32, FreezeAction)> {
        let decision = self.wise.decide(&ThrottleSample {
            now_ns: self.now_ns,
            disk: DiskSample::default(),
            tasks: &self.tasks,
        });
        for order in &decision.orders {
            self.tasks[order.task.0 as usize].frozen = order.action == FreezeAction::Freeze;
        }
        decision.orders.iter().map(|order| (order.task.0, order.action)).collect()
    }

    /// Runs one second in which tasks that are not frozen move this much.
    fn second(&mut self, demands_mb: &[u64]) -> Vec<(u32, FreezeAction)> {
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
    let point = |demand: f64, tasks| VectorPoint { demand_bytes_per_s: demand * 1e6, tasks };
    // The one point that the paper names, and three like those of Fig. 10.
    let points = vec![point(24.3, 2), point(16.0, 3), point(12.0, 5), point(8.0, 7)];
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
    let changes: Vec<(usize, u64)> =
        (1..seen.len()).filter(|s| seen[*s] != seen[s - 1]).map(|s| (s, seen[s])).collect();
    assert_eq!(changes, [(24, 2), (44, 1)]);
}

#[test]
fn figure_19_suspends_the_most_sensitive_and_resumes_the_longest_suspended() {
    use FreezeAction::{Freeze, Thaw};
    // Task 0, task 1, the two threads of task 2 (as 2 and 3), the two threads of task 3 (as 4 and 5).
    let mut driver = Driver::new(WiseConfig { turnable_ext: 2, ..config() }, &[2, 2, 3, 3, 1, 1]);
    let nothing: Vec<(u32, FreezeAction)> = Vec::new();
    assert_eq!(driver.second(&[30, 20, 12, 11, 0, 0]), [(0, Freeze)]);
    assert_eq!(driver.dtimeslice(4), 1);
    assert_eq!(driver.second(&[30, 0, 25, 23, 0, 0]), nothing, "violated, but nobody due is busy");
    assert_eq!(driver.dtimeslice(4), 2);
    assert_eq!(driver.second(&[30, 0, 25, 23, 0, 0]), nothing, "task 1 need not be suspended");
    assert_eq!(driver.second(&[30, 0, 25, 23, 0, 0]), [(2, Freeze)], "one thread of task 2");
    assert_eq!(driver.second(&[30, 5, 25, 8, 0, 0]), [(0, Thaw)], "the longest suspended");
    assert_eq!(driver.dtimeslice(4), 4);
    assert_eq!(driver.second(&[15, 5, 25, 8, 0, 0]), nothing, "nobody is due");
    assert_eq!(driver.second(&[15, 5, 25, 8, 0, 0]), [(2, Thaw)]);
    assert_eq!(driver.wise.description(TaskId(0)).unwrap().1, 15e6, "sensitivity follows the I/O");
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

#[test]
fn ablations_change_who_is_suspended_and_when() {
    use FreezeAction::Freeze;
    let first = |suspend_first| {
        let config = WiseConfig { suspend_first, ..config() };
        Driver::new(config, &[1, 1, 1]).second(&[20, 30, 10])
    };
    assert_eq!(first(SuspendFirst::MostSensitive), [(1, Freeze)]);
    assert_eq!(first(SuspendFirst::LeastSensitive)[0], (2, Freeze));
    assert_eq!(first(SuspendFirst::Oldest)[0], (0, Freeze));
    let mut fixed = Driver::new(WiseConfig { self_tuning: false, ..config() }, &[1]);
    for _ in 0..30 {
        fixed.second(&[0]);
    }
    assert_eq!(fixed.dtimeslice(0), 1);
}
