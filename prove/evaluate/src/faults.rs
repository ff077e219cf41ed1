//! Part `faults`: whether a failed write reaches the program that asked, on this kernel and on distributions', and whether
//! the trial finds the defect that it was made for.

mod defect;
mod guest;

use luc_claims::report::{Page, Table, Target};
use serde_json::{Value, json};

use super::error::EvaluateError;
use super::harness::{Harness, line, missing};
use super::progress::Progress;

/// Failed requests that all kernels together are to reach.
const LEAST_FAILED: u64 = 1_000;
/// The distribution's kernels: one in which ext4 gives EIO for every failure, one in which it gives the disk's own errno.
const GUESTS: [&str; 2] = ["6.1", "6.12"];
/// The cell of this machine.
const HERE: &str = "this kernel";
/// The cell of the gate that had the defect.
const DEFECT: &str = "the gate of commit 02e2902";
const HEADS: [&str; 7] = [
    "where",
    "Linux",
    "policy",
    "trials",
    "failed requests",
    "calls held",
    "differences",
];

/// What the trials of a cell came to.
#[derive(Debug, Default)]
struct Sum {
    trials: u64,
    failed: u64,
    differences: u64,
    /// Policies under which the gate held nothing.
    idle: Vec<String>,
}

pub(super) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let guests = GUESTS.map(|version| (format!("guest, {version}"), version));
    let cells: Vec<&str> = [HERE]
        .into_iter()
        .chain(guests.iter().map(|(name, _)| name.as_str()))
        .chain([DEFECT])
        .filter(|cell| harness.options.wants(cell))
        .collect();
    let mut progress = Progress::new(harness.part, cells.len());
    let mut table = Table::new(&HEADS);
    let mut told = Table::of_words(&[
        "where",
        "Linux",
        "told by fsync otherwise than the disk answered",
    ]);
    let (mut targets, mut all) = (Vec::new(), Sum::default());
    for cell in cells {
        let report = if cell == HERE {
            here(harness)?
        } else if cell == DEFECT {
            match defect::report(harness)? {
                Ok(report) => report,
                Err(reason) => {
                    targets.push(Target::new(
                        format!("{DEFECT}: differences are found"),
                        false,
                        format!("not made: {reason}"),
                    ));
                    continue;
                }
            }
        } else {
            let version = guests.iter().find(|(name, _)| name == cell);
            guest::report(harness, version.map_or("", |(_, version)| version))?
        };
        harness.keep(json!({ "cell": cell, "faults": report }));
        let sum = rows(cell, &report, &mut table)?;
        told.row(vec![
            cell.to_owned(),
            report["kernel"].as_str().unwrap_or_default().to_owned(),
            otherwise(&report),
        ]);
        progress.step(&format!("{cell}: {} differences", sum.differences));
        if cell == DEFECT {
            targets.push(Target::new(
                format!("{DEFECT}: differences are found"),
                sum.differences > 0,
                format!("{} in {} trials", sum.differences, sum.trials),
            ));
            continue;
        }
        targets.push(Target::new(
            format!("{cell}: 0 differences"),
            sum.differences == 0,
            format!("{} in {} trials", sum.differences, sum.trials),
        ));
        targets.push(Target::new(
            format!("{cell}: the gate held calls under every policy but off"),
            sum.idle.is_empty(),
            if sum.idle.is_empty() {
                "it did".to_owned()
            } else {
                format!("not under {}", sum.idle.join(", "))
            },
        ));
        all.failed += sum.failed;
    }
    targets.push(Target::new(
        format!("at least {LEAST_FAILED} failed requests"),
        all.failed >= LEAST_FAILED,
        format!("{}", all.failed),
    ));
    Ok(Page {
        title: "Failed writes under the gate".to_owned(),
        about: "A program writes to a file of which one block cannot be written and synchronizes it, twice, then closes it, \
            while 8 threads beside it append and fsync. What each of the three calls returns is compared with the same \
            without the gate: every errno of the block layer that the kernel carries, with fsync, fdatasync, msync(MS_SYNC) \
            and pwrite to a file opened with O_SYNC and O_DSYNC; the first, a middle and the last block; overwritten and \
            preallocated files; with and without closing and opening the file again before the call; mounted with \
            errors=continue and errors=remount-ro; and every flush of the disk failing. Policy engaged is auto once the \
            others have engaged it. The gate of commit 02e2902 lost errors: it is built from that commit and \
            tried in the same way."
            .to_owned(),
        tables: vec![
            ("What the trials came to:".to_owned(), table),
            (
                "What the kernel itself tells, without the gate:".to_owned(),
                told,
            ),
        ],
        targets,
    })
}

/// The whole matrix on this machine.
fn here(harness: &Harness) -> Result<Value, EvaluateError> {
    let words = ["faults", "--json"];
    let report = harness.json(&words)?;
    harness.keep(json!({ "cell": HERE, "command": line(&harness.luc(&words)) }));
    Ok(report)
}

/// Adds a row for each policy.
fn rows(cell: &str, report: &Value, table: &mut Table) -> Result<Sum, EvaluateError> {
    let count = |value: &Value, key: &str| value[key].as_u64().ok_or_else(|| missing(key));
    let mut sum = Sum {
        trials: count(report, "trials")?,
        failed: count(report, "failed_requests")?,
        ..Sum::default()
    };
    let policies = report["policies"].as_array();
    for row in policies.ok_or_else(|| missing("policies"))? {
        let policy = row["policy"].as_str();
        let differences = count(row, "differences")?;
        sum.differences += differences;
        if row["held_calls"] == 0 && policy != Some("off") {
            sum.idle.push(policy.unwrap_or_default().to_owned());
        }
        table.row(vec![
            cell.to_owned(),
            report["kernel"].as_str().unwrap_or_default().to_owned(),
            policy.unwrap_or("no gate").to_owned(),
            count(row, "trials")?.to_string(),
            count(row, "failed_requests")?.to_string(),
            row["held_calls"]
                .as_u64()
                .map_or_else(|| "-".to_owned(), |calls| calls.to_string()),
            if policy.is_some() {
                differences.to_string()
            } else {
                "-".to_owned()
            },
        ]);
    }
    Ok(sum)
}

/// Errnos that the kernel itself turns into others.
fn otherwise(report: &Value) -> String {
    let fields = report["reported"].as_object();
    let changed: Vec<String> = fields
        .into_iter()
        .flatten()
        .filter(|(answered, told)| told.as_str() != Some(answered.as_str()))
        .map(|(answered, told)| format!("{answered} as {}", told.as_str().unwrap_or_default()))
        .collect();
    if changed.is_empty() {
        "none".to_owned()
    } else {
        changed.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_report() {
        let report = json!({ "kernel": "6.12", "trials": 4, "failed_requests": 9,
            "reported": { "EIO": "EIO", "ENODATA": "EIO" },
            "policies": [
                { "policy": null, "trials": 2, "failed_requests": 3, "differences": 0, "held_calls": null },
                { "policy": "off", "trials": 2, "failed_requests": 3, "differences": 0, "held_calls": 0 },
                { "policy": "auto", "trials": 2, "failed_requests": 3, "differences": 1, "held_calls": 0 },
            ] });
        let mut table = Table::new(&HEADS);
        let sum = rows("x", &report, &mut table).expect("figures");
        assert_eq!((sum.trials, sum.failed, sum.differences), (4, 9, 1));
        assert_eq!(sum.idle, ["auto"]);
        assert!(!table.is_empty());
        assert_eq!(otherwise(&report), "ENODATA as EIO");
        assert!(rows("x", &json!({}), &mut table).is_err());
    }
}
