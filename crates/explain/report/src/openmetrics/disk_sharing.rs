//! Tasks that share a disk, as metrics.

use std::collections::BTreeMap;

use luc_events::Cgroup;
use luc_explain::{DiskContention, DiskReport, UndisturbedBasis};

use super::seconds;
use luc_units::metric_families::{MetricFamilies, MetricLabels};

/// Adds the figures of a disk that tasks share.
pub(super) fn sharing(families: &mut MetricFamilies, disk: &DiskReport) {
    let Some(found) = &disk.contention else {
        return;
    };
    let labels = MetricLabels::new().with("device", disk.dev);
    let together = (
        "luc_disk_together_seconds",
        "Time in which a disk was busy with requests of several tasks in turn.",
        seconds(found.together_ns),
    );
    let predicted = [
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
        (
            "luc_disk_turns_predicted_gain_ratio",
            "Predicted gain in bytes per second of one task after the other, as a fraction.",
            found.gain,
        ),
    ];
    let is_known = found.basis != UndisturbedBasis::Unknown;
    let predicted = predicted.into_iter().filter(|_| is_known);
    for (name, help, value) in [together].into_iter().chain(predicted) {
        families.gauge(name, help, &labels, value);
    }
    let help = "Times that a disk went from task to task while they contended.";
    families.counter("luc_disk_switches", help, &labels, found.switches as f64);
    cgroups(families, &labels, found);
    slowed(families, &labels, found);
}

/// Adds the disk's use by cgroups. Response time less device time is the wait for other requests.
fn cgroups(families: &mut MetricFamilies, labels: &MetricLabels, found: &DiskContention) {
    let mut sums: BTreeMap<Cgroup, (u64, u64, u64)> = BTreeMap::new();
    for task in found.tasks.iter().filter(|task| !task.is_kernel) {
        let sum = sums.entry(task.actor.cgroup).or_default();
        let response_ns = task.await_ns.saturating_mul(task.requests);
        *sum = (
            sum.0.saturating_add(task.device_ns),
            sum.1.saturating_add(response_ns),
            sum.2.saturating_add(task.switch_ns),
        );
    }
    for (cgroup, (device_ns, response_ns, switch_ns)) in sums {
        let labels = labels.with("cgroup", cgroup);
        let counters = [
            (
                "luc_disk_cgroup_device_seconds",
                "A shared disk's time for requests of a cgroup.",
                device_ns,
            ),
            (
                "luc_disk_cgroup_await_seconds",
                "Time of these requests from being queued to their end.",
                response_ns,
            ),
            (
                "luc_disk_cgroup_switch_seconds",
                "What these requests took longer since they came after another task's.",
                switch_ns,
            ),
        ];
        for (name, help, ns) in counters {
            families.counter(name, help, &labels, seconds(ns));
        }
    }
}

/// Adds the waits of cgroups for each other.
fn slowed(families: &mut MetricFamilies, labels: &MetricLabels, found: &DiskContention) {
    let mut sums: BTreeMap<(Cgroup, Cgroup), u64> = BTreeMap::new();
    for pair in found.slowed.iter().filter(|pair| pair.waited_ns > 0) {
        let of = (pair.victim.cgroup, pair.culprit.cgroup);
        let sum = sums.entry(of).or_default();
        *sum = sum.saturating_add(pair.waited_ns);
    }
    for ((victim, culprit), ns) in sums {
        let labels = labels.with("victim", victim).with("culprit", culprit);
        let help = "Time in which a cgroup had a request out while a shared disk served a task of another, or of itself.";
        families.counter("luc_disk_waited_seconds", help, &labels, seconds(ns));
    }
}
