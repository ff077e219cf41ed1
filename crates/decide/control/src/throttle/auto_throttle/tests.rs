//! Rules of the policy, one at a time. Its figures are in [`super::super::simulated_disks`].

use super::super::policy_input::{DiskSample, TaskSample};
use super::*;

const MS: u64 = 1_000_000;

/// Tasks whose activity the test sets, at looks 10 ms apart.
struct Bench {
    auto: AutoThrottle,
    now_ns: u64,
    disk: DiskSample,
    tasks: Vec<TaskSample>,
}

impl Bench {
    fn new(config: AutoThrottleConfig, tasks: u32) -> Self {
        Self {
            auto: AutoThrottle::new(config),
            now_ns: MS,
            disk: DiskSample::default(),
            tasks: (0..tasks).map(|id| TaskSample::new(TaskId(id))).collect(),
        }
    }

    /// All tasks that are not frozen use the disk for 10 ms and slow each other down; then the policy looks.
    fn busy_look(&mut self) -> Vec<FreezeOrder> {
        self.now_ns += 10 * MS;
        let running = self.running().len().max(1) as u64;
        for task in self.tasks.iter_mut().filter(|task| !task.frozen) {
            task.bytes += 1_000_000 / running / running;
            task.requests += 8;
            task.device_ns += 10 * MS / running;
            task.last_submit_ns = self.now_ns;
        }
        self.look()
    }

    fn busy_looks(&mut self, count: u32) -> Vec<FreezeOrder> {
        (0..count).flat_map(|_| self.busy_look()).collect()
    }

    fn look(&mut self) -> Vec<FreezeOrder> {
        let decision = self.auto.decide(&ThrottleSample {
            now_ns: self.now_ns,
            disk: self.disk,
            tasks: &self.tasks,
        });
        for order in &decision.orders {
            self.apply(order);
        }
        decision.orders
    }

    fn apply(&mut self, order: &FreezeOrder) {
        let task = self.tasks.iter_mut().find(|task| task.task == order.task).unwrap();
        task.frozen = order.action == FreezeAction::Freeze;
    }

    fn running(&self) -> Vec<u32> {
        let running = self.tasks.iter().filter(|task| !task.frozen);
        running.map(|task| task.task.0).collect()
    }
}

#[test]
fn one_runs_from_the_first_moment_and_the_next_when_it_ends() {
    let mut bench = Bench::new(AutoThrottleConfig::default(), 3);
    bench.busy_look();
    assert_eq!(bench.running(), [0]);
    bench.tasks.remove(0);
    let orders = bench.look();
    assert_eq!(bench.running(), [1]);
    assert_eq!(orders[0].reason, FreezeReason::Turn);
}

#[test]
fn a_task_that_does_not_use_the_disk_is_not_frozen() {
    let mut bench = Bench::new(AutoThrottleConfig::default(), 2);
    bench.tasks.push(TaskSample::new(TaskId(2)));
    for _ in 0..10 {
        bench.now_ns += 10 * MS;
        bench.tasks[0].last_submit_ns = bench.now_ns;
        assert!(bench.look().is_empty());
    }
    // It submits: it is out of turn.
    bench.now_ns += 10 * MS;
    bench.tasks[0].last_submit_ns = bench.now_ns;
    bench.tasks[2].last_submit_ns = bench.now_ns;
    bench.look();
    assert_eq!(bench.running(), [0, 1]);
}

#[test]
fn whoever_does_nothing_for_20_ms_lets_the_next_in() {
    let mut bench = Bench::new(AutoThrottleConfig::default(), 2);
    bench.busy_look();
    bench.now_ns += 10 * MS;
    assert!(bench.look().is_empty());
    bench.now_ns += 10 * MS;
    let orders = bench.look();
    assert_eq!(orders.len(), 1);
    assert_eq!((orders[0].task, orders[0].reason), (TaskId(1), FreezeReason::Idle));
    assert_eq!(bench.running(), [0, 1], "it may compute");
    bench.busy_look();
    assert_eq!(bench.running(), [1], "until it submits");
}

#[test]
fn a_task_that_is_waited_for_is_thawed_and_not_frozen_at_once() {
    let mut bench = Bench::new(AutoThrottleConfig::default(), 2);
    bench.busy_look();
    let order = bench.auto.thaw_for(TaskId(1), bench.now_ns).unwrap();
    assert_eq!((order.action, order.reason), (FreezeAction::Thaw, FreezeReason::Inversion));
    bench.apply(&order);
    assert!(bench.auto.thaw_for(TaskId(1), bench.now_ns).is_none(), "it runs");
    assert!(bench.auto.thaw_for(TaskId(9), bench.now_ns).is_none(), "there is none");
    assert!(bench.busy_looks(20).is_empty());
    bench.busy_looks(10);
    assert_eq!(bench.running(), [0]);
}

#[test]
fn a_couple_runs_together_until_it_is_over() {
    let mut bench = Bench::new(AutoThrottleConfig::default(), 3);
    bench.auto.couple((TaskId(2), TaskId(0)), FreezeReason::Inversion, bench.now_ns + 1_000 * MS);
    bench.busy_look();
    assert_eq!(bench.running(), [0, 2]);
    bench.busy_looks(110);
    assert_eq!(bench.running().len(), 1);
}

#[test]
fn a_couple_for_a_while_does_not_shorten_one_for_longer() {
    let mut bench = Bench::new(AutoThrottleConfig::default(), 3);
    let pair = (TaskId(0), TaskId(2));
    for (reason, ms) in [(FreezeReason::Inversion, 2_000), (FreezeReason::SameData, 500)] {
        bench.auto.couple(pair, reason, bench.now_ns + ms * MS);
    }
    bench.busy_looks(100);
    assert_eq!(bench.running(), [0, 2]);
    assert!(bench.now_ns > 500 * MS);
}

#[test]
fn who_was_frozen_by_others_is_left_alone() {
    let mut bench = Bench::new(AutoThrottleConfig::default(), 3);
    bench.tasks[0].frozen = true;
    for _ in 0..30 {
        let orders = bench.busy_look();
        assert!(orders.iter().all(|order| order.task != TaskId(0)));
    }
    assert_eq!(bench.running(), [1]);
    // Its owner thaws it: it takes part.
    bench.tasks[0].frozen = false;
    bench.busy_look();
    assert_eq!(bench.running().len(), 1);
}

#[test]
fn a_task_that_comes_frozen_and_was_adopted_gets_its_turn() {
    let mut bench = Bench::new(AutoThrottleConfig::default(), 2);
    for task in &mut bench.tasks {
        task.frozen = true;
        bench.auto.adopt(task.task);
    }
    bench.look();
    assert_eq!(bench.running(), [0]);
}

#[test]
fn a_task_that_others_thawed_is_not_frozen_at_once() {
    let mut bench = Bench::new(AutoThrottleConfig::default(), 2);
    bench.busy_looks(15);
    bench.tasks[1].frozen = false;
    assert!(bench.busy_looks(20).is_empty(), "somebody had a reason");
    bench.busy_looks(10);
    assert_eq!(bench.running(), [0]);
}

#[test]
fn a_protected_request_freezes_batch_at_once_and_its_end_thaws() {
    let mut bench = Bench::new(AutoThrottleConfig::default(), 1);
    bench.tasks.push(TaskSample { class: TaskClass::Protected, ..TaskSample::new(TaskId(7)) });
    bench.tasks[0].last_submit_ns = bench.now_ns;
    bench.look();
    bench.now_ns += MS;
    bench.tasks[0].last_submit_ns = bench.now_ns;
    bench.tasks[1].outstanding = 1;
    bench.tasks[1].last_submit_ns = bench.now_ns;
    let orders = bench.look();
    assert_eq!((orders[0].action, orders[0].reason), (FreezeAction::Freeze, FreezeReason::Protect));
    bench.now_ns += 5 * MS;
    bench.tasks[1].outstanding = 0;
    let orders = bench.look();
    assert_eq!((orders[0].action, orders[0].reason), (FreezeAction::Thaw, FreezeReason::Protect));
}

#[test]
fn a_disk_that_serves_several_is_left_alone_for_protected_tasks_unless_contended() {
    let config = AutoThrottleConfig { prior: DiskPrior::Together, ..AutoThrottleConfig::default() };
    let mut bench = Bench::new(config, 3);
    bench.tasks.push(TaskSample {
        class: TaskClass::Protected,
        outstanding: 1,
        ..TaskSample::new(TaskId(7))
    });
    assert!(bench.busy_looks(100).is_empty(), "its busy time is nothing");
    let mut orders = Vec::new();
    for _ in 0..40 {
        bench.disk.busy_ns += 10 * MS;
        orders.extend(bench.busy_look());
    }
    assert!(orders.iter().any(|order| order.reason == FreezeReason::Protect), "{orders:?}");
}

#[test]
fn what_is_shown_follows_what_is_done() {
    let mut bench = Bench::new(AutoThrottleConfig::default(), 2);
    bench.busy_looks(50);
    let states: Vec<TaskPolicyState> = bench.auto.tasks().collect();
    assert!(states[0].has_turn && !states[0].is_frozen);
    assert!(states[1].is_frozen && !states[1].has_turn && states[1].reason == FreezeReason::Turn);
    assert!(states[0].slowdown < 1.0, "{states:?}");
    let solo = states[0].solo_bytes_per_s.unwrap();
    assert!((solo - 100e6).abs() < 1e6, "1 MB in 10 ms");
    let disk = bench.auto.disk();
    assert!(disk.is_engaged && disk.size == Some(1));
    assert!((disk.efficiency.unwrap() - 1.0).abs() < 0.05);
}

#[test]
fn a_hundred_tasks() {
    let mut bench = Bench::new(AutoThrottleConfig::default(), 100);
    let began = std::time::Instant::now();
    for _ in 0..1_000 {
        bench.busy_look();
    }
    println!("a decision on 100 tasks: {:?}", began.elapsed() / 1_000);
    assert!(!bench.running().is_empty());
}
