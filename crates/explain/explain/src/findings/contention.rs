//! Tasks that ruin each other's disk.

use luc_events::Dev;

use super::actors::names;
use super::finding_inputs::evidence;
use super::{FigureUnit, Finding, FindingFigure, FindingKind};
use crate::actor::Actor;
use crate::disk_contention::{DiskContention, DiskTask, UndisturbedBasis};
use crate::report::{DiskReport, TraceReport};

/// Minimum predicted gain: a smaller one is within the error of the prediction.
const MIN_GAIN: f64 = 0.2;
/// Minimum time of contention: shorter contention is over before anybody could act.
const MIN_TOGETHER_NS: u64 = 500_000_000;
/// Minimum share of the switches of a task that is named.
const MIN_SHARE: f64 = 0.05;

/// Finds disks for which tasks contend.
pub(super) fn on_disks(report: &TraceReport) -> Vec<Finding> {
    let disks = report.disks.iter();
    disks.filter_map(|disk| on_disk(report, disk)).collect()
}

/// Finds contention, if the tasks would be done sooner one after the other.
fn on_disk(report: &TraceReport, disk: &DiskReport) -> Option<Finding> {
    let found = disk.contention.as_ref()?;
    if found.gain < MIN_GAIN || found.together_ns < MIN_TOGETHER_NS {
        return None;
    }
    let least = found.switches as f64 * MIN_SHARE;
    let tasks = found.tasks.iter();
    let tasks: Vec<&DiskTask> =
        tasks.filter(|task| !task.is_kernel && task.switches as f64 >= least).collect();
    if tasks.len() < 2 {
        return None;
    }
    let is_task = |actor: &Actor| tasks.iter().any(|task| task.actor == *actor);
    let mut pairs = found.slowed.iter();
    let worst = pairs.find(|pair| is_task(&pair.victim) && is_task(&pair.culprit));
    Some(Finding {
        kind: FindingKind::DiskContention,
        sentence: format!(
            "{} ruin each other's disk ({}): it moves between them instead of reading and writing{}",
            names(&tasks.iter().map(|task| &task.actor).collect::<Vec<_>>()),
            place(report, disk.dev),
            match found.basis {
                UndisturbedBasis::Assumed => ", if it has an arm, as its times suggest",
                UndisturbedBasis::Seen | UndisturbedBasis::Unknown => "",
            }
        ),
        dev: Some(disk.dev),
        cost_ns: found.lost_ns,
        share: 0.0,
        victim: worst.map(|pair| pair.victim.clone()),
        culprit: worst.map(|pair| pair.culprit.clone()),
        evidence: figures(found, &tasks),
    })
}

/// Returns a mount point on the disk, or its number.
fn place(report: &TraceReport, dev: Dev) -> String {
    let mut on_it = report.file_systems.iter();
    match on_it.find(|found| found.disk == dev && !found.mount_point.is_empty()) {
        Some(found) => found.mount_point.clone(),
        None => format!("device {dev}"),
    }
}

fn figures(found: &DiskContention, tasks: &[&DiskTask]) -> Vec<FindingFigure> {
    let (mut requests, mut await_ns, mut service_ns) = (0, 0.0, 0.0);
    for task in tasks {
        requests += task.requests;
        await_ns += task.await_ns as f64 * task.requests as f64;
        service_ns += task.service_ns as f64 * task.requests as f64;
    }
    let mean = |sum: f64| sum / requests.max(1) as f64;
    let rate = |ns: u64| found.bytes_together as f64 * 1e9 / ns.max(1) as f64;
    vec![
        evidence(
            "time in which they had the disk together",
            found.together_ns as f64,
            FigureUnit::Ns,
        ),
        evidence("the same one after the other", found.apart_ns as f64, FigureUnit::Ns),
        evidence("bytes a second together", rate(found.together_ns), FigureUnit::Bytes),
        evidence("bytes a second without switches", rate(found.apart_ns), FigureUnit::Bytes),
        evidence("switches between tasks", found.switches as f64, FigureUnit::Count),
        evidence("what a switch costs", found.switch_cost_ns as f64, FigureUnit::Ns),
        evidence(
            "mean time of a request, with the wait for others",
            mean(await_ns),
            FigureUnit::Ns,
        ),
        evidence("of that at the device", mean(service_ns), FigureUnit::Ns),
    ]
}
