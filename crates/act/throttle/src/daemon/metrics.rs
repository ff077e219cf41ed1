//! Writes the status in Prometheus' text format, for node_exporter's textfile collector.

use std::fmt::{self, Write as _};
use std::io;
use std::path::Path;

use super::status::{Status, TaskStatus};
use crate::whole::write_whole;

/// Writes the metrics so that a reader never sees half of them.
pub(super) fn write(path: &Path, status: &Status) -> io::Result<()> {
    write_whole(path, text(status).as_bytes())
}

fn text(status: &Status) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = fill(&mut out, status);
    out
}

fn fill(out: &mut String, status: &Status) -> fmt::Result {
    // 1. Figures of each task.
    type Figure = fn(&TaskStatus) -> f64;
    let of_tasks: [(&str, &str, Figure); 6] = [
        ("frozen", "Whether the task is frozen.", |task| f64::from(u8::from(task.frozen))),
        ("frozen_seconds_total", "Time that the task was frozen.", |task| task.frozen_s),
        ("freezes_total", "How often the task was frozen.", |task| task.freezes as f64),
        ("bytes_total", "Bytes that the task has read and written.", |task| task.bytes as f64),
        ("device_seconds_total", "Time that disks spent on the task's requests.", |t| t.device_s),
        ("queue_seconds_total", "Time that the task's requests waited before disks.", |t| {
            t.queue_s
        }),
    ];
    for (name, help, figure) in of_tasks {
        head(out, name, help)?;
        for task in &status.tasks {
            let cgroup = label(&task.cgroup.to_string_lossy());
            let class = label(&task.class);
            writeln!(
                out,
                "luc_throttle_{name}{{task=\"{cgroup}\",class=\"{class}\"}} {}",
                figure(task)
            )?;
        }
    }
    // 2. Figures of each disk, and orders by reason.
    head(out, "disk_busy_seconds_total", "Time that the disk was busy.")?;
    for disk in &status.disks {
        let name = label(&disk.name);
        writeln!(out, "luc_throttle_disk_busy_seconds_total{{disk=\"{name}\"}} {}", disk.busy_s)?;
    }
    head(out, "orders_total", "Freezes and thaws by reason.")?;
    for order in &status.orders {
        writeln!(
            out,
            "luc_throttle_orders_total{{action=\"{}\",reason=\"{}\"}} {}",
            label(&order.action),
            label(&order.reason),
            order.count
        )?;
    }
    // 3. Figures of the throttle itself.
    let Status { thawed_by_guardian, thawed_at_limit, looks, looking_s, .. } = *status;
    let single = [
        (
            "thawed_by_guardian_total",
            "Cgroups that the guardian thawed.",
            thawed_by_guardian as f64,
        ),
        (
            "thawed_at_limit_total",
            "Cgroups frozen for as long as is allowed.",
            thawed_at_limit as f64,
        ),
        ("looks_total", "Looks at the disks.", looks as f64),
        ("looking_seconds_total", "Time spent looking and deciding.", looking_s),
    ];
    for (name, help, value) in single {
        head(out, name, help)?;
        writeln!(out, "luc_throttle_{name} {value}")?;
    }
    Ok(())
}

/// Writes the head of a metric, which is a counter if its name says that it is a total.
fn head(out: &mut String, name: &str, help: &str) -> fmt::Result {
    let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
    writeln!(out, "# HELP luc_throttle_{name} {help}")?;
    writeln!(out, "# TYPE luc_throttle_{name} {kind}")
}

/// Escapes backslash, quote and newline in a label's value.
fn label(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
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
        let status = Status { tasks: vec![task], looks: 7, looking_s: 0.5, ..Status::default() };
        let text = text(&status);
        let line = "luc_throttle_frozen{task=\"a\\\"} 1\\nb\",class=\"batch\"} 1";
        assert!(text.lines().any(|found| found == line), "{text}");
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let value = line.rsplit(' ').next().expect("a value");
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
}
