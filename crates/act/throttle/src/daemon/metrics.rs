//! Writes the status in Prometheus' text format, for node_exporter's textfile collector.

use std::io;
use std::path::Path;

use luc_units::metric_families::{MetricFamilies, MetricFormat, MetricLabels};

use super::throttle_status::{TaskStatus, ThrottleStatus};
use crate::replace_file::write_whole;

/// Writes the metrics so that a reader never sees half of them.
pub(super) fn write(path: &Path, status: &ThrottleStatus) -> io::Result<()> {
    write_whole(path, text(status).as_bytes())
}

fn text(status: &ThrottleStatus) -> String {
    let mut all = MetricFamilies::default();
    // 1. Figures of each task.
    type Figure = fn(&TaskStatus) -> f64;
    let totals: [(&str, &str, Figure); 5] = [
        ("luc_throttle_frozen_seconds", "Time that the task was frozen.", |task| task.frozen_s),
        ("luc_throttle_freezes", "How often the task was frozen.", |task| task.freezes as f64),
        ("luc_throttle_bytes", "Bytes that the task has read and written.", |task| {
            task.bytes as f64
        }),
        ("luc_throttle_device_seconds", "Time that disks spent on the task's requests.", |task| {
            task.device_s
        }),
        (
            "luc_throttle_queue_seconds",
            "Time that the task's requests waited before disks.",
            |task| task.queue_s,
        ),
    ];
    for task in &status.tasks {
        let labels = MetricLabels::new()
            .with("task", task.cgroup.to_string_lossy())
            .with("class", &task.class);
        let frozen = f64::from(u8::from(task.frozen));
        all.gauge("luc_throttle_frozen", "Whether the task is frozen.", &labels, frozen);
        for (name, help, figure) in totals {
            all.counter(name, help, &labels, figure(task));
        }
    }
    // 2. Figures of each disk, and orders by reason.
    for disk in &status.disks {
        let labels = MetricLabels::new().with("disk", &disk.name);
        let help = "Time that the disk was busy.";
        all.counter("luc_throttle_disk_busy_seconds", help, &labels, disk.busy_s);
    }
    for order in &status.orders {
        let labels =
            MetricLabels::new().with("action", &order.action).with("reason", &order.reason);
        let help = "Freezes and thaws by reason.";
        all.counter("luc_throttle_orders", help, &labels, order.count as f64);
    }
    // 3. Figures of the throttle itself.
    let ThrottleStatus { thawed_by_guardian, thawed_at_limit, looks, looking_s, .. } = *status;
    for (name, help, value) in [
        (
            "luc_throttle_thawed_by_guardian",
            "Cgroups that the guardian thawed.",
            thawed_by_guardian as f64,
        ),
        (
            "luc_throttle_thawed_at_limit",
            "Cgroups frozen for as long as is allowed.",
            thawed_at_limit as f64,
        ),
        ("luc_throttle_looks", "Looks at the disks.", looks as f64),
        ("luc_throttle_looking_seconds", "Time spent looking and deciding.", looking_s),
    ] {
        all.counter(name, help, &MetricLabels::new(), value);
    }
    all.text(MetricFormat::Prometheus)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_hostile_name_stays_one_label() {
        let task = TaskStatus {
            cgroup: PathBuf::from("a\"} 1\nb"),
            class: "batch".to_owned(),
            frozen: true,
            frozen_s: 1.5,
            ..TaskStatus::default()
        };
        let status = ThrottleStatus {
            tasks: vec![task],
            looks: 7,
            looking_s: 0.5,
            ..ThrottleStatus::default()
        };
        let text = text(&status);
        let line = "luc_throttle_frozen{task=\"a\\\"} 1\\nb\",class=\"batch\"} 1";
        assert!(text.lines().any(|found| found == line), "{text}");
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let value = line.rsplit(' ').next().expect("a value");
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
}
