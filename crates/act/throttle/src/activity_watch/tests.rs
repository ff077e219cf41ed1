//! Tests with tasks whose sums are known.

use super::activity_sums::{WatchedDiskSums, WatchedTaskSums};
use super::*;
use crate::daemon::TaskDiskUse;

const MS: u64 = 1_000_000;
const MIB: u64 = 1 << 20;

/// Two tasks on one disk that reads 100 MiB/s without switches.
struct Model(ActivitySums);

impl Model {
    fn new() -> Self {
        let task = |cgroup: &str| WatchedTaskSums {
            cgroup: cgroup.to_owned(),
            on: vec![TaskDiskUse::default()],
            ..WatchedTaskSums::default()
        };
        Self(ActivitySums {
            at_ns: 1_000 * MS,
            disks: vec![WatchedDiskSums { name: "sda".to_owned(), ..WatchedDiskSums::default() }],
            tasks: vec![task("a"), task("b")],
            ..ActivitySums::default()
        })
    }

    /// Makes a task read `mib` MiB, by requests of 1 MiB that cost 10 ms and a switch each.
    fn read(&mut self, task: usize, mib: u64, switch_ns: u64) {
        let on = &mut self.0.tasks[task].on[0];
        let service_ns = mib * (10 * MS + switch_ns);
        on.bytes += mib * MIB;
        on.requests += mib;
        on.sequential += if switch_ns == 0 { mib } else { 0 };
        on.device_ns += service_ns;
        let disk = &mut self.0.disks[0];
        disk.bytes += mib * MIB;
        disk.busy_ns += service_ns;
        self.0.at_ns += service_ns;
    }
}

#[test]
fn what_switches_cost_is_known_from_time_alone() {
    let mut model = Model::new();
    let mut displayed = DisplayedActivityState::default();
    displayed.step(model.0.clone());
    for task in [0, 1] {
        model.read(task, 10, 0);
        displayed.step(model.0.clone());
    }
    let alone = displayed.seen();
    assert_eq!(alone.disks[0].efficiency, Some(1.0));
    assert!((alone.disks[0].bytes_per_s / (100 * MIB) as f64 - 1.0).abs() < 0.01);
    for _ in 0..20 {
        model.read(0, 1, 12 * MS);
        model.read(1, 1, 12 * MS);
        displayed.step(model.0.clone());
    }
    let seen = displayed.seen();
    let disk = &seen.disks[0];
    let near =
        |value: Option<f64>, wanted: f64| (value.expect("known") / wanted - 1.0).abs() < 0.01;
    assert!(near(disk.efficiency, 10.0 / 22.0), "{disk:?}");
    assert!(near(disk.switch_ns, 12e6), "{disk:?}");
    assert!(near(disk.lost_bytes_per_s, 100.0 * MIB as f64 * 12.0 / 22.0), "{disk:?}");
    assert_eq!((disk.tasks, seen.tasks.len()), (2, 2));
    assert!((seen.tasks[0].share - 0.5).abs() < 0.01, "{seen:?}");
    assert!(near(seen.tasks[0].slowdown, 1.0), "{seen:?}");
}

#[test]
fn nothing_is_told_of_tasks_that_were_never_alone() {
    let mut model = Model::new();
    let mut displayed = DisplayedActivityState::default();
    displayed.step(model.0.clone());
    for _ in 0..20 {
        model.read(0, 1, 12 * MS);
        model.read(1, 1, 12 * MS);
        displayed.step(model.0.clone());
    }
    let seen = displayed.seen();
    assert_eq!(seen.disks[0].efficiency, None);
    assert!(seen.disks[0].busy > 0.99);
}

#[test]
fn a_frozen_task_falls_behind_fair_sharing() {
    let mut model = Model::new();
    let mut displayed = DisplayedActivityState::default();
    displayed.step(model.0.clone());
    model.read(1, 10, 0);
    displayed.step(model.0.clone());
    model.0.tasks[1].frozen_since_ns = Some(model.0.at_ns);
    model.0.tasks[1].why = "turn".to_owned();
    for _ in 0..20 {
        model.read(0, 10, 0);
        displayed.step(model.0.clone());
    }
    let seen = displayed.seen();
    assert_eq!(seen.tasks[0].cgroup, "a");
    let frozen = &seen.tasks[1];
    assert_eq!((frozen.state, frozen.frozen_ns), (ActivityState::Frozen, 2_000 * MS));
    assert_eq!(frozen.why, "turn");
    // Half of two seconds and the tenth before, over that tenth.
    assert!(frozen.slowdown.is_some_and(|slowdown| slowdown > 9.0), "{frozen:?}");
    assert!(seen.tasks[0].slowdown.is_some_and(|slowdown| slowdown < 0.6));
    assert_eq!(seen.disks[0].waiting, 1);
}

#[test]
fn idle_cgroups_are_not_shown_and_new_ones_have_no_past() {
    let mut model = Model::new();
    let mut displayed = DisplayedActivityState::default();
    displayed.step(model.0.clone());
    model.read(0, 10, 0);
    let mut late = model.0.tasks[0].clone();
    late.cgroup = "late".to_owned();
    model.0.tasks.push(late);
    displayed.step(model.0.clone());
    let seen = displayed.seen();
    let shown: Vec<&str> = seen.tasks.iter().map(|task| task.cgroup.as_str()).collect();
    assert_eq!(shown, ["a"]);
    assert!(displayed.seen().seconds < 1e-9);
}
