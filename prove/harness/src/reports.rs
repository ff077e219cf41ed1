//! Reports of `luc run --json`.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::error::EvaluateError;
use crate::harness::{elements, read_json};

/// Returns the report of `luc run` on the file system of a disk, as `loop3`.
pub fn of_disk<'v>(report: &'v Value, device: &str) -> &'v Value {
    let mut rows = elements(&report["file_systems"]).iter();
    rows.find(|row| row["device"] == json!(device)).unwrap_or(&Value::Null)
}

/// Reads the files `luc-*.json` of a folder.
///
/// # Errors
/// [`EvaluateError`]: a file cannot be read.
pub fn reports(folder: &Path) -> Result<Vec<Value>, EvaluateError> {
    let failed = || EvaluateError::file("read", folder);
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed())? {
        let path = entry.map_err(failed())?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("luc-") && name.ends_with(".json") {
            paths.push(path);
        }
    }
    paths.iter().map(|path| read_json(path)).collect()
}

/// Sums the reports of all `luc run`s of a run on the disk's file system. They share the rounds, and so the decision.
#[must_use]
pub fn summary(reports: &[Value], device: &str) -> Value {
    let rows: Vec<&Value> = reports.iter().map(|report| of_disk(report, device)).collect();
    let sum = |of: &dyn Fn(&Value) -> f64| -> f64 { rows.iter().map(|row| of(row)).sum() };
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let gated = sum(&|row| number(&row["gate"]["gated"]));
    let mean = |key: &str| {
        let total = sum(&|row| number(&row["gate"]["gated"]) * number(&row["gate"][key]));
        (gated > 0.0).then(|| total / gated)
    };
    let busiest = rows
        .iter()
        .max_by(|a, b| number(&a["gate"]["gated"]).total_cmp(&number(&b["gate"]["gated"])));
    let gate = busiest.map(|row| &row["gate"]);
    let mut unreached: BTreeMap<&str, u64> = BTreeMap::new();
    for program in reports.iter().filter_map(|report| report["unreached"].as_array()).flatten() {
        let name = program["program"].as_str().unwrap_or_default();
        *unreached.entry(name).or_default() += program["processes"].as_u64().unwrap_or(0);
    }
    let refused = reports.iter().find_map(|report| report["refused"].as_str());
    json!({
        "runs": reports.len(), "notified": reports.iter().filter(|report| !report["notified"].is_null()).count(),
        "calls": sum(&|row| ["fsyncs", "fdatasyncs", "msyncs"].iter().map(|kind| number(&row[*kind])).sum()),
        "gated": gated, "mean_wait_us": mean("mean_wait_us"), "mean_write_back_us": mean("mean_write_back_us"),
        "decision": gate.map(|gate| &gate["decision"]), "flush_decision": gate.map(|gate| &gate["flush_decision"]),
        "unreached": unreached, "refused": refused,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_instances_said_is_added_up() {
        let report = |gated: f64, wait: f64| {
            json!({ "notified": null, "refused": null,
                    "unreached": [{ "program": "postgres", "processes": 2 }],
                    "file_systems": [
                { "device": "loop9", "fsyncs": 99 },
                { "device": "loop1", "fsyncs": 3, "fdatasyncs": 4, "msyncs": 0,
                  "gate": { "gated": gated, "mean_wait_us": wait, "decision": { "state": "engaged" } } },
            ]})
        };
        let all = summary(&[report(1.0, 1000.0), report(3.0, 2000.0)], "loop1");
        assert_eq!(all["calls"], 14.0);
        assert_eq!(all["gated"], 4.0);
        assert_eq!(all["mean_wait_us"], 1750.0);
        assert_eq!(all["unreached"]["postgres"], 4);
        assert_eq!(all["decision"]["state"], "engaged");
        assert_eq!(all["notified"], 0);
        assert_eq!(summary(&[], "loop1")["calls"], 0.0);
    }
}
