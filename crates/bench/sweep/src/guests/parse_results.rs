//! Parser of a guest's results.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use luc_vm::GuestOutcome;
use serde_json::Value;

use super::super::counters::report_counters;
use super::super::error::SweepError;
use super::super::plan::SweepPlan;
use super::super::repeat_environment::RepeatEnvironment;
use super::super::results_journal::{PointFailure, RecordedResults, RepeatRecord};
use super::super::sweep_points::SweepPoint;
use super::super::time_scale::GuestSpeed;
use super::batches::GuestBatch;

/// JSON pointer to the figure of a workload file.
pub(crate) const FLOWOPS: &str = "/flowops_per_second";

/// Versions of the programs that made a guest's results.
pub(super) struct GuestVersions<'a> {
    /// Release of the guest's kernel.
    pub(super) kernel: &'a str,
    pub(super) qemu: &'a str,
    /// Versions of mkfs, by file system.
    pub(super) mkfs: &'a BTreeMap<String, String>,
}

/// Parses the repeats of a batch. If only the best is wanted, failures of single points become part of the result.
pub(super) fn records(
    plan: &SweepPlan,
    batch: &GuestBatch,
    outcome: &GuestOutcome,
    versions: &GuestVersions<'_>,
) -> Result<RecordedResults, SweepError> {
    let speed = plan.speed(batch.mips);
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let ended_unix_s = since.map(|time| time.as_secs()).unwrap_or_default();
    let record = |number: usize, point: &SweepPoint| {
        // 1. What the guest left, or the reason of its failure.
        let what = || format!("{} repeat {}", point.key(), batch.round + 1);
        let missing =
            |figure: &str| SweepError::NoFigure { what: what(), figure: figure.to_owned() };
        let file = |kind: &str| outcome.file(&format!("{number}.{kind}"));
        if let Some(said) = file("failed") {
            let words: Vec<&str> = said.split_whitespace().collect();
            return Err(SweepError::InGuest { what: what(), said: words.join(" ") });
        }
        let report = file("json").unwrap_or_default();
        let report: Value = serde_json::from_str(&report).map_err(|_| missing("the report"))?;
        // 2. Figure and counters, in the speed's time.
        let own = point.workload.figure.as_ref();
        let pointer = own
            .and_then(|figure| figure.json.as_deref())
            .or(point.workload.bench.map(|bench| bench.figure()))
            .unwrap_or(FLOWOPS);
        let value = report.pointer(pointer).and_then(Value::as_f64);
        let value = value.filter(|value| value.is_finite() && *value > 0.0);
        let value = value.ok_or_else(|| missing(pointer))?;
        let mut counters = latencies(&report, speed);
        counters.extend(report_counters::read_named(&report, &point.workload.counters));
        counters.extend(module(&values(file("luc"))));
        counters.extend(if plan.disk.is_modelled() {
            disk("disk", &members(file("before")), &members(file("disk")))
        } else {
            disk("lagdisk", &values(file("before")), &values(file("disk")))
        });
        Ok(RepeatRecord {
            key: point.key(),
            round: batch.round,
            value: round(speed.scale_figure(value, point.unit())),
            warm_up: None,
            environment: RepeatEnvironment {
                started_unix_s: ended_unix_s.saturating_sub(outcome.wall.as_secs()),
                kernel: versions.kernel.to_owned(),
                qemu: Some(versions.qemu.to_owned()),
                mkfs: point.target.fs.as_ref().and_then(|fs| versions.mkfs.get(fs).cloned()),
                mount: file("mount").map(|line| mount(&line)),
                caches_dropped: true,
                io_pressure_us: None,
                cpu_pressure_us: None,
                stolen_share: 0.0,
                load: 0.0,
                governor: None,
                frequency_khz: None,
            },
            energy: None,
            per_gross_joule: None,
            per_net_joule: None,
            counters,
            discarded: Vec::new(),
        })
    };
    let mut results = RecordedResults::default();
    for (number, point) in (1..).zip(&batch.points) {
        match record(number, point) {
            Ok(record) => results.records.push(record),
            // One impossible candidate does not end the sweep.
            Err(error) if plan.stop.best && error.is_of_one_point() => {
                results.failures.push(PointFailure {
                    key: point.key(),
                    round: batch.round,
                    failed: error.to_string(),
                });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(results)
}

/// Returns number, mean, median and 99th percentile of each operation.
fn latencies(report: &Value, speed: GuestSpeed) -> BTreeMap<String, f64> {
    let rows = report["operations"].as_array().cloned().unwrap_or_default();
    let mut counters = BTreeMap::new();
    for row in rows {
        let Some(operation) = row["operation"].as_str() else {
            continue;
        };
        let Some(count) = row["count"].as_f64().filter(|count| *count > 0.0) else { continue };
        counters.insert(format!("operation.{operation}.count"), count);
        for figure in ["mean_us", "p50_us", "p99_us"] {
            if let Some(us) = row[figure].as_f64() {
                let name = format!("operation.{operation}.{figure}");
                counters.insert(name, round(speed.scale_time(us)));
            }
        }
    }
    counters
}

/// Reads the module's counters since the mount, which include the preparation of files. The module's clock is stretched
/// like the guest's other times.
fn module(stats: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    let counted = [
        "commits",
        "commits_by_fsync",
        "fsyncs",
        "fsyncs_waited_two",
        "holds",
        "writes",
        "writes_delayed",
        "copies",
        "hold_ns",
        "write_delay_ns",
    ];
    let value = |name: &str| Some((format!("luc.{name}"), round(*stats.get(name)?)));
    counted.into_iter().filter_map(value).collect()
}

/// Returns the disk's counters of the workload alone.
fn disk(
    kind: &str,
    before: &BTreeMap<String, f64>,
    after: &BTreeMap<String, f64>,
) -> BTreeMap<String, f64> {
    let counted = ["reads", "writes", "flushes", "read_bytes", "write_bytes", "written_bytes"];
    let since = |name: &str| Some((format!("{kind}.{name}"), after.get(name)? - before.get(name)?));
    counted.into_iter().filter_map(since).collect()
}

/// Returns type, source and options of a line of /proc/mounts.
fn mount(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        [source, _, fs, options, ..] => format!("{fs} {source} {options}"),
        _ => line.trim().to_owned(),
    }
}

/// Parses lines of a name and a number; other lines are left out.
fn values(text: Option<String>) -> BTreeMap<String, f64> {
    let text = text.unwrap_or_default();
    let line = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.trim().parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// Parses the numbers of a JSON object.
fn members(text: Option<String>) -> BTreeMap<String, f64> {
    let object: Value = serde_json::from_str(&text.unwrap_or_default()).unwrap_or_default();
    let object = object.as_object().cloned().unwrap_or_default();
    let number = |(name, value): (String, Value)| Some((name, value.as_f64()?));
    object.into_iter().filter_map(number).collect()
}

/// Rounds to six significant digits.
fn round(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::super::super::time_scale::TimeScale;
    use super::*;

    const TWICE: GuestSpeed = GuestSpeed { shift: 0, scale: TimeScale { permille: 2000 } };

    #[test]
    fn counters_have_the_time_of_the_speed() {
        let report = serde_json::json!({ "operations": [
            { "operation": "fsync", "count": 4, "mean_us": 30.0, "p99_us": 50.0 } ] });
        let found = latencies(&report, TWICE);
        assert_eq!(found.get("operation.fsync.mean_us"), Some(&15.0));
        assert_eq!(found.get("operation.fsync.count"), Some(&4.0));
        let stats = values(Some("commits 3\nhold_ns 1000\nstate auto\n".to_owned()));
        let found = module(&stats);
        assert_eq!(found.get("luc.commits"), Some(&3.0));
        // In the module's own clock, which is as slow as the guest's other times.
        assert_eq!(found.get("luc.hold_ns"), Some(&1000.0));
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn the_disk_s_counts_are_of_the_workload() {
        let [before, after] = [5, 9].map(|n| values(Some(format!("flushes {n}\nserial 0\n"))));
        let found = disk("lagdisk", &before, &after);
        assert_eq!(found.get("lagdisk.flushes"), Some(&4.0));
        assert_eq!(found.len(), 1);
        let [before, after] = [1, 3].map(|n| {
            let text = serde_json::json!({ "name": "drive", "written_bytes": n });
            members(Some(text.to_string()))
        });
        let found = disk("disk", &before, &after);
        assert_eq!(found.get("disk.written_bytes"), Some(&2.0));
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn a_mount_is_type_source_and_options() {
        let line = "/dev/lagdisk0 /mnt ext4 rw,relatime 0 0\n";
        assert_eq!(mount(line), "ext4 /dev/lagdisk0 rw,relatime");
    }
}
