//! Counters from the workload's report, and from the gate's.

use std::collections::BTreeMap;

use serde_json::Value;

use super::CounterValues;

/// Figures taken from each operation of a report.
const OPERATION_FIGURES: [&str; 4] = ["count", "mean_us", "p50_us", "p99_us"];

/// Reads the figures of each operation that occurred; none if standard output is no report.
pub(super) fn counters(stdout: &str) -> CounterValues {
    let report: Value = serde_json::from_str(stdout).unwrap_or_default();
    let operations = report.get("operations").and_then(Value::as_array);
    let mut counters = CounterValues::new();
    for operation in operations.into_iter().flatten() {
        let Some(name) = operation.get("operation").and_then(Value::as_str) else {
            continue;
        };
        if operation.get("count").and_then(Value::as_f64) == Some(0.0) {
            continue;
        }
        for figure in OPERATION_FIGURES {
            if let Some(value) = operation.get(figure).and_then(Value::as_f64) {
                counters.insert(format!("operation.{name}.{figure}"), value);
            }
        }
    }
    counters
}

/// Reads the numbers of a report that a plan names, by their JSON pointers.
pub(crate) fn read_named(report: &Value, names: &BTreeMap<String, String>) -> CounterValues {
    let number = |(name, pointer): (&String, &String)| {
        let number = report.pointer(pointer).and_then(Value::as_f64)?;
        Some((format!("report.{name}"), number))
    };
    names.iter().filter_map(number).collect()
}

/// Figures taken from the report of `luc run`.
const GATE_FIGURES: [&str; 5] =
    ["gated", "rounds", "mean_wait_us", "mean_write_back_us", "timed_out"];

/// Returns the gate's figures on the file system mounted at `mount`, of the report of `luc run`; of the busiest one
/// without it.
pub(crate) fn gate(report: &str, mount: Option<&str>) -> CounterValues {
    let report: Value = serde_json::from_str(report).unwrap_or_default();
    let all = report["file_systems"].as_array().cloned().unwrap_or_default();
    let is_it = |one: &&Value| mount.is_none_or(|mount| one["mount_point"] == mount);
    let Some(found) = all.iter().find(is_it) else {
        return CounterValues::new();
    };
    let figure = |name: &str| Some((format!("gate.{name}"), found["gate"][name].as_f64()?));
    let mut counters: CounterValues = GATE_FIGURES.into_iter().filter_map(figure).collect();
    let gains = ["decision", "flush_decision"].map(|law| found["gate"][law]["gain"].as_f64());
    if let Some(gain) = gains.into_iter().flatten().reduce(f64::max) {
        counters.insert("gate.gain".to_owned(), gain);
    }
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_a_plan_names() {
        let report = serde_json::json!({ "a": { "median_us": 2.5 }, "b": "text" });
        let names = [("x", "/a/median_us"), ("y", "/b"), ("z", "/c")];
        let names = names.map(|(name, pointer)| (name.to_owned(), pointer.to_owned()));
        let found = read_named(&report, &names.into());
        assert_eq!(found, CounterValues::from([("report.x".to_owned(), 2.5)]));
    }

    #[test]
    fn the_gate_speaks_of_the_target_s_file_system() {
        let of = |mount: &str, gated: u32| {
            serde_json::json!({ "mount_point": mount, "gate": {
                "gated": gated, "mean_wait_us": 1.5, "decision": { "gain": 1.2 }, "flush_decision": null } })
        };
        let report = serde_json::json!({ "file_systems": [of("/", 3), of("/m", 4)] }).to_string();
        let found = gate(&report, Some("/m"));
        assert_eq!((found["gate.gated"], found["gate.gain"]), (4.0, 1.2));
        assert_eq!(gate(&report, None)["gate.gated"], 3.0);
        assert!(gate(&report, Some("/n")).is_empty() && gate("", None).is_empty());
    }

    #[test]
    fn operations_of_a_report() {
        let text = r#"{"operations": [
            {"operation": "fsync", "count": 3, "mean_us": 1.5, "p50_us": 1.0, "p90_us": 2.0, "p99_us": 2.5},
            {"operation": "logwrite", "count": 0, "mean_us": 0.0, "p50_us": 0.0, "p99_us": 0.0}
        ]}"#;
        let counters = counters(text);
        assert_eq!(counters["operation.fsync.count"], 3.0);
        assert_eq!(counters["operation.fsync.p99_us"], 2.5);
        assert_eq!(counters.len(), 4);
    }

    #[test]
    fn others_say_nothing() {
        for text in ["", "done", "{}", r#"{"operations": 3}"#, r#"[{"operation": 1}]"#] {
            assert!(counters(text).is_empty(), "{text}");
        }
    }
}
