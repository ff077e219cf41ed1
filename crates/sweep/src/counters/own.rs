//! What a workload says of itself: the operations in the report of a built-in one.

use serde_json::Value;

use super::Counters;

/// What is taken of each operation.
const FIGURES: [&str; 4] = ["count", "mean_us", "p50_us", "p99_us"];

/// The figures of each operation that was done at all; none where standard output is no such report.
pub(super) fn counters(stdout: &str) -> Counters {
    let report: Value = serde_json::from_str(stdout).unwrap_or_default();
    let operations = report.get("operations").and_then(Value::as_array);
    let mut counters = Counters::new();
    for operation in operations.into_iter().flatten() {
        let Some(name) = operation.get("operation").and_then(Value::as_str) else {
            continue;
        };
        if operation.get("count").and_then(Value::as_f64) == Some(0.0) {
            continue;
        }
        for figure in FIGURES {
            if let Some(value) = operation.get(figure).and_then(Value::as_f64) {
                counters.insert(format!("operation.{name}.{figure}"), value);
            }
        }
    }
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for text in [
            "",
            "done",
            "{}",
            r#"{"operations": 3}"#,
            r#"[{"operation": 1}]"#,
        ] {
            assert!(counters(text).is_empty(), "{text}");
        }
    }
}
