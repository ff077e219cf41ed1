//! Figures of disks that tasks share, and how they are shown.

use luc_events::{Cgroup, Dev, Tgid};
use luc_explain::{Actor, DiskContention, DiskReport, DiskTask, TaskSlowdown, TraceReport};
use luc_throttle::daemon::ThrottleStatus;
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::{KeyPress, MachineFigures, TopInterval, TopState, interval_text};

const DISK: Dev = Dev(8 << 20);
const MS: u64 = 1_000_000;

fn actor(process: u32) -> Actor {
    Actor { process: Tgid(process), comm: "dd".to_owned(), cgroup: Cgroup(1) }
}

/// Of a second: 450 ms of the device, 50 requests of 128 KiB, 18 ms each, half of it at the device.
fn task(process: u32, seconds: u64) -> DiskTask {
    DiskTask {
        actor: actor(process),
        device_ns: 450 * MS * seconds,
        requests: 50 * seconds,
        bytes: (6_400 << 10) * seconds,
        await_ns: 18 * MS,
        service_ns: 9 * MS,
        undisturbed_bytes_per_s: Some(1e8),
        ..DiskTask::default()
    }
}

/// Returns the report after `seconds` in which two readers and a journal shared a disk.
fn report(seconds: u64) -> TraceReport {
    let journal = DiskTask { is_kernel: true, device_ns: 50 * MS * seconds, ..task(30, seconds) };
    let slowed = |victim, culprit, each_ns| TaskSlowdown {
        victim: actor(victim),
        culprit: actor(culprit),
        waited_ns: each_ns * seconds,
        switches: 40 * seconds,
        switch_ns: 0,
    };
    let contention = DiskContention {
        busy_ns: 950 * MS * seconds,
        together_ns: 1_000 * MS * seconds,
        gain: 8.0,
        efficiency: 0.1,
        switches: 80 * seconds,
        switch_cost_ns: 12 * MS,
        tasks: vec![task(10, seconds), task(11, seconds), journal],
        slowed: vec![slowed(10, 11, 400 * MS), slowed(11, 10, 440 * MS)],
        ..DiskContention::default()
    };
    TraceReport {
        disks: vec![DiskReport {
            dev: DISK,
            contention: Some(contention),
            ..DiskReport::default()
        }],
        ..TraceReport::default()
    }
}

fn throttled() -> ThrottleState {
    let task = |cgroup: &str, since_ns: Option<u64>| {
        serde_json::json!({
            "cgroup": cgroup, "class": "batch", "frozen": since_ns.is_some(), "freezes": 3, "frozen_s": 1.0,
            "longest_frozen_s": 1.0, "bytes": 0, "device_s": 0.0, "queue_s": 0.0, "frozen_since_ns": since_ns,
            "why": "turn",
        })
    };
    let status = serde_json::json!({
        "process": 77, "at_ns": 5_000 * MS, "disks": [], "orders": [], "thawed_by_guardian": 0, "thawed_at_limit": 0,
        "looks": 1, "looking_s": 0.0,
        "tasks": [
            task("system.slice/short.service", Some(4_500 * MS)),
            task("system.slice/backup.service", Some(3_800 * MS)),
            task("system.slice/runs.service", None),
        ],
    });
    ThrottleState::of(&serde_json::from_value::<ThrottleStatus>(status).unwrap())
}

fn interval(throttle: Option<ThrottleState>) -> TopInterval {
    let machine = MachineFigures {
        disk_names: [(DISK, "sda".to_owned())].into(),
        throttle,
        ..MachineFigures::default()
    };
    TopInterval::between(&report(3), &report(5), 2.0, machine)
}

fn screen(interval: TopInterval, width: u16, height: u16) -> Vec<String> {
    let mut top = TopState::new(2_000, false, Vec::new());
    top.update(interval);
    drawn(&mut top, width, height)
}

fn drawn(top: &mut TopState, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| top.draw(frame)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let lines = buffer.content.chunks(usize::from(width).max(1));
    lines.map(|line| line.iter().map(|cell| cell.symbol()).collect()).collect()
}

#[test]
fn figures_are_of_the_interval_alone() {
    let found = interval(None).shared_disks.remove(0);
    assert_eq!((found.name.as_str(), found.tasks), ("sda", 2));
    assert_eq!((found.busy, found.together), (0.95, 1.0));
    assert_eq!(found.switches_per_s, 80.0);
    assert_eq!((found.efficiency, found.switch_ns), (Some(0.1), Some(12 * MS)));
    assert_eq!(found.predicted_gain, Some(8.0));
    assert_eq!((found.await_ns, found.service_ns), (Some(18 * MS), Some(9 * MS)));
    assert_eq!(found.soft(), Some(0.5));
    assert_eq!(found.users.len(), 3, "the journal uses it, too");
    assert_eq!(found.users[0].device, 0.45);
    assert_eq!(found.users[0].bytes_per_s, f64::from(6_400 << 10));
    let (victim, culprit, ns_per_s) = &found.slowed[0];
    assert_eq!((victim.process, culprit.process), (Tgid(11), Tgid(10)));
    assert_eq!(*ns_per_s, 440e6);
}

#[test]
fn a_disk_without_contention_in_the_interval_is_not_shown() {
    let quiet = TopInterval::between(&report(5), &report(5), 2.0, MachineFigures::default());
    assert_eq!(quiet.shared_disks, []);
    let with = screen(interval(None), 80, 24);
    let without = screen(quiet, 80, 24);
    assert!(with.concat().contains("EFFIC") && with.concat().contains("luc throttle top"));
    assert!(!without.concat().contains("EFFIC") && !without.concat().contains("luc throttle"));
}

#[test]
fn what_was_never_seen_without_switches_is_not_known() {
    let unknown = |seconds| {
        let mut report = report(seconds);
        let found = report.disks[0].contention.as_mut().unwrap();
        (found.efficiency, found.gain, found.switch_cost_ns) = (1.0, 0.0, 0);
        found.basis = UndisturbedBasis::Unknown;
        report
    };
    let between = TopInterval::between(&unknown(3), &unknown(5), 2.0, MachineFigures::default());
    let found = &between.shared_disks[0];
    assert_eq!((found.efficiency, found.switch_ns, found.predicted_gain), (None, None, None));
    assert_eq!(found.name, "8:0", "without a name its number");
}

#[test]
fn a_terminal_of_80_columns_has_the_disk_and_whom_the_throttle_has_frozen() {
    let lines = screen(interval(Some(throttled())), 80, 24);
    let disk = lines.iter().find(|line| line.trim_start().starts_with("sda")).unwrap();
    for figure in ["95%", " 2 ", "10%", "50%", "12 ms", "80", "440 ms dd (11) for 10"] {
        assert!(disk.contains(figure), "{figure}: {disk}");
    }
    let throttle = lines.iter().find(|line| line.starts_with("luc throttle top: ")).unwrap();
    let said = "backup.service is frozen for 1.20 s (turn), and 1 more ";
    assert!(throttle.contains(said), "{throttle}");
}

#[test]
fn the_throttle_is_shown_where_nobody_contends() {
    let machine = MachineFigures { throttle: Some(throttled()), ..MachineFigures::default() };
    let lines = screen(TopInterval::between(&report(5), &report(5), 2.0, machine), 80, 24);
    assert!(lines.concat().contains("1 more") && !lines.concat().contains("EFFIC"));
}

#[test]
fn lines_for_scripts_have_the_same_figures() {
    let text = interval_text::IntervalText(&interval(Some(throttled()))).to_string();
    for said in [
        "EFFIC",
        "sda: 45.0 % of its time for dd (10), 6.25 MiB/s",
        "sda: dd (11) waits 440 ms a second while it serves dd (10)",
        "sda: one after the other, predicted +800 %",
        "luc throttle: backup.service is frozen for 1.20 s (turn), and 1 more",
    ] {
        assert!(text.contains(said), "no {said:?} in\n{text}");
    }
    let json = serde_json::to_value(interval(Some(throttled()))).unwrap();
    assert_eq!(json["shared_disks"][0]["switch_ns"], 12 * MS);
    assert_eq!(json["machine"]["throttle"]["frozen"][0]["cgroup"], "system.slice/backup.service");
}

#[test]
fn the_help_explains_the_columns() {
    let mut top = TopState::new(2_000, false, Vec::new());
    top.key(KeyPress::Char('?'));
    let lines = drawn(&mut top, 80, 90);
    for column in SHARED {
        let is_there = |line: &String| line.contains(column.title) && line.contains(column.about);
        assert!(lines.iter().any(is_there), "{}", column.title);
    }
}

proptest! {
    /// Nothing panics on a screen of any size.
    #[test]
    fn it_can_be_drawn_at_any_size(width in 0..130_u16, height in 0..50_u16) {
        screen(interval(Some(throttled())), width, height);
    }
}
