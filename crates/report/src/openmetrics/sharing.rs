//! Tasks that share a disk, as metrics.

use luc_explain::DiskReport;

use super::families::{Families, Kind, Labels};
use super::seconds;

/// The figures of one disk that tasks share.
pub(super) fn sharing(families: &mut Families, disk: &DiskReport) {
    let Some(found) = &disk.contention else {
        return;
    };
    let labels = Labels::new().with("device", disk.dev);
    let gauges = [
        (
            "luc_disk_together_seconds",
            "Time in which a disk was busy with requests of several tasks in turn.",
            seconds(found.together_ns),
        ),
        (
            "luc_disk_apart_seconds",
            "The same, predicted for one task after the other.",
            seconds(found.apart_ns),
        ),
        (
            "luc_disk_efficiency_ratio",
            "Bandwidth in that time over what the same requests reach without switches.",
            found.efficiency,
        ),
        (
            "luc_disk_switch_cost_seconds",
            "What a switch from task to task costs in the mean.",
            seconds(found.switch_cost_ns),
        ),
    ];
    for (name, help, value) in gauges {
        families
            .family(name, Kind::Gauge, help)
            .sample("", &labels, value);
    }
    let help = "Times that a disk went from task to task while they contended.";
    families
        .family("luc_disk_switches", Kind::Counter, help)
        .sample("_total", &labels, found.switches as f64);
}
