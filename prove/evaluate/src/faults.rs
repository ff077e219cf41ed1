//! Part `faults`: whether a failed write reaches the program that asked for it. It is tried on this kernel and on the
//! distribution's kernels. It also checks whether the trial finds a known defect.

mod defect;
mod guest;

use luc_harness::cells;
use luc_harness::report::{Page, Table, Target, or_dash};
use serde_json::{Value, json};

use crate::error::EvaluateError;
use crate::harness::{Harness, array, count, line};
use crate::progress::Progress;

/// Minimum number of failed requests on all kernels together.
const MIN_FAILED_REQUESTS: u64 = 1_000;
/// Versions of the distribution's kernels: one in which ext4 gives EIO for every failure, one in which it gives the
/// disk's own errno.
const GUESTS: [&str; 2] = ["6.1", "6.12"];
/// Options for notifications of system calls in place of the library.
const NOTIFIED: [&str; 2] = ["--reach", "notify"];
/// Options for the kernel module. It runs in guests alone, so that it cannot harm this machine.
const MODULE: [&str; 2] = ["--level", "kernel"];
/// Name of the cell with the gate that had the defect.
const DEFECT: &str = "the gate of commit 02e2902";
const HEADS: [&str; 7] = [
    "where",
    "Linux",
    "policy",
    "trials",
    "failed requests",
    "calls or commits held",
    "differences",
];

/// A place for trials, and the options that say what holds the calls.
#[derive(Debug)]
struct FaultCell {
    name: String,
    place: CellPlace,
    words: &'static [&'static str],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CellPlace {
    Here,
    /// A guest with a kernel of this version.
    Guest(&'static str),
    /// This machine, with the gate that had the defect.
    Defect,
}

impl FaultCell {
    fn all() -> Vec<Self> {
        let guests = GUESTS.map(|version| (format!("guest, {version}"), CellPlace::Guest(version)));
        let mut cells = vec![("this kernel".to_owned(), CellPlace::Here)];
        cells.extend(guests);
        let each = cells.into_iter().flat_map(|(name, place)| {
            let notified = (format!("{name}, notified"), place, &NOTIFIED[..]);
            let module = (format!("{name}, luc.ko"), place, &MODULE[..]);
            let module = (place != CellPlace::Here).then_some(module);
            [(name, place, &[][..]), notified].into_iter().chain(module)
        });
        each.chain([(DEFECT.to_owned(), CellPlace::Defect, &[][..])])
            .map(|(name, place, words)| Self { name, place, words })
            .collect()
    }

    /// Returns the report of `luc faults`, or the reason why the gate with the defect cannot be tried.
    fn report(&self, harness: &Harness) -> Result<Result<Value, String>, EvaluateError> {
        match self.place {
            CellPlace::Here => here(harness, self).map(Ok),
            CellPlace::Guest(version) => {
                let has_module = self.words == MODULE;
                guest::report(harness, version, self.words, has_module).map(Ok)
            }
            CellPlace::Defect => defect::report(harness),
        }
    }
}

/// Sums over the trials of a cell.
#[derive(Debug, Default)]
struct FaultSum {
    trials: u64,
    failed: u64,
    differences: u64,
    /// Policies under which the gate held no call.
    idle: Vec<String>,
}

pub(super) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let mut cells = FaultCell::all();
    cells.retain(|cell| harness.options.wants(&cell.name));
    let mut progress = Progress::new(harness.part, cells.len());
    let mut table = Table::new(&HEADS);
    let mut told =
        Table::of_words(&["where", "Linux", "told by fsync changed_errnos than the disk answered"]);
    let (mut targets, mut all) = (Vec::new(), FaultSum::default());
    for cell in &cells {
        let name = &cell.name;
        let report = match cell.report(harness)? {
            Ok(report) => report,
            Err(reason) => {
                targets.push(Target::new(
                    format!("{name}: differences are found"),
                    false,
                    format!("not made: {reason}"),
                ));
                continue;
            }
        };
        harness.keep(json!({ "cell": name, "faults": report }));
        let sum = rows(name, &report, &mut table)?;
        if cell.words.is_empty() && cell.place != CellPlace::Defect {
            told.row(cells![
                name,
                report["kernel"].as_str().unwrap_or_default(),
                changed_errnos(&report)
            ]);
        }
        progress.step(&format!("{name}: {} differences", sum.differences));
        targets.extend(judge(cell, &report, &sum));
        if cell.place != CellPlace::Defect {
            all.failed += sum.failed;
        }
    }
    targets.push(Target::new(
        format!("at least {MIN_FAILED_REQUESTS} failed requests"),
        all.failed >= MIN_FAILED_REQUESTS,
        format!("{}", all.failed),
    ));
    Ok(Page {
        title: "Failed writes".to_owned(),
        about: "A program writes to a file of which one block cannot be written and synchronizes it, twice, then closes it, \
            while 8 threads beside it append and fsync. What each of the three calls returns is compared with the same \
            without luc: every errno of the block layer that the kernel carries, with fsync, fdatasync, msync(MS_SYNC) \
            and pwrite to a file opened with O_SYNC and O_DSYNC; the first, a middle and the last block; overwritten and \
            preallocated files; with and without closing and opening the file again before the call; mounted with \
            errors=continue and errors=remount-ro; and every flush of the disk failing. Policy engaged is auto once the \
            others have engaged it. Notified, the calls are held by notifications of system calls instead of the library \
            (`luc faults --reach notify`). With luc.ko it is commits that are held, and journals are written from copies \
            (`--level kernel`, copy-out on); it is compared with luc.ko off. The gate of commit 02e2902 lost errors: it is built from that commit and \
            tried in the same way."
            .to_owned(),
        tables: vec![
            ("What the trials came to:".to_owned(), table),
            (
                "What the kernel itself tells, without luc:".to_owned(),
                told,
            ),
        ],
        targets,
    })
}

/// Returns the targets of a cell. A gate with a known defect must show differences.
fn judge(cell: &FaultCell, report: &Value, sum: &FaultSum) -> Vec<Target> {
    let name = &cell.name;
    let differences = format!("{} in {} trials", sum.differences, sum.trials);
    if cell.place == CellPlace::Defect {
        let what = format!("{name}: differences are found");
        return vec![Target::new(what, sum.differences > 0, differences)];
    }
    let held = match sum.idle.is_empty() {
        true => "it did".to_owned(),
        false => format!("not under {}", sum.idle.join(", ")),
    };
    let mut targets = vec![
        Target::new(format!("{name}: 0 differences"), sum.differences == 0, differences),
        Target::new(
            format!("{name}: calls were held under every policy but off"),
            sum.idle.is_empty(),
            held,
        ),
    ];
    if let Some(warnings) = report["warnings"].as_array() {
        targets.push(Target::new(
            format!("{name}: no warning of the kernel but of the disk and its file system"),
            warnings.is_empty(),
            warnings.first().and_then(Value::as_str).unwrap_or("none"),
        ));
    }
    targets
}

/// Runs the whole matrix on this machine.
fn here(harness: &Harness, cell: &FaultCell) -> Result<Value, EvaluateError> {
    let words = [&["faults", "--json"], cell.words].concat();
    let report = harness.json(&words)?;
    harness.keep(json!({ "cell": cell.name, "command": line(&harness.luc(&words)) }));
    Ok(report)
}

/// Adds a row for each policy, and returns their sums.
fn rows(cell: &str, report: &Value, table: &mut Table) -> Result<FaultSum, EvaluateError> {
    let mut sum = FaultSum {
        trials: count(report, "trials")?,
        failed: count(report, "failed_requests")?,
        ..FaultSum::default()
    };
    for row in array(&report["policies"], "policies")? {
        let policy = row["policy"].as_str();
        let differences = count(row, "differences")?;
        sum.differences += differences;
        if row["held_calls"] == 0 && policy != Some("off") {
            sum.idle.push(policy.unwrap_or_default().to_owned());
        }
        table.row(cells![
            cell,
            report["kernel"].as_str().unwrap_or_default(),
            policy.unwrap_or("without luc"),
            count(row, "trials")?,
            count(row, "failed_requests")?,
            or_dash(row["held_calls"].as_u64()),
            if policy.is_some() { differences.to_string() } else { "-".to_owned() }
        ]);
    }
    Ok(sum)
}

/// Returns the errnos that the kernel itself turns into others.
fn changed_errnos(report: &Value) -> String {
    let fields = report["reported"].as_object();
    let changed: Vec<String> = fields
        .into_iter()
        .flatten()
        .filter(|(answered, told)| told.as_str() != Some(answered.as_str()))
        .map(|(answered, told)| format!("{answered} as {}", told.as_str().unwrap_or_default()))
        .collect();
    if changed.is_empty() { "none".to_owned() } else { changed.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kernel_is_tried_at_each_level() {
        let names = FaultCell::all().into_iter().map(|cell| cell.name);
        assert_eq!(
            names.collect::<Vec<_>>(),
            [
                "this kernel",
                "this kernel, notified",
                "guest, 6.1",
                "guest, 6.1, notified",
                "guest, 6.1, luc.ko",
                "guest, 6.12",
                "guest, 6.12, notified",
                "guest, 6.12, luc.ko",
                DEFECT
            ]
        );
    }

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
        assert_eq!(changed_errnos(&report), "ENODATA as EIO");
        assert!(rows("x", &json!({}), &mut table).is_err());
    }
}
