//! Part `faults`: whether a failed write reaches the program that asked for it. It is tried on this kernel and on the
//! distribution's kernels. It also checks whether the trial finds a known defect.

mod defect;
mod guest;

use serde_json::{Value, json};

use crate::error::EvaluateError;
use crate::harness::{Harness, array, count, line};
use crate::progress::Progress;

/// Versions of the distribution's kernels: one in which ext4 gives EIO for every failure, one in which it gives the
/// disk's own errno.
const GUESTS: [&str; 2] = ["6.1", "6.12"];
/// Options for notifications of system calls in place of the library.
const NOTIFIED: [&str; 2] = ["--reach", "notify"];
/// Options for the kernel module. It runs in guests alone, so that it cannot harm this machine.
const MODULE: [&str; 2] = ["--level", "kernel"];
/// Name of the cell with the gate that had the defect.
const DEFECT: &str = "the gate of commit 02e2902";

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

pub(super) fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let mut cells = FaultCell::all();
    cells.retain(|cell| harness.options.wants(&cell.name));
    let mut progress = Progress::new(harness.part, cells.len());
    for cell in &cells {
        let name = &cell.name;
        let report = match cell.report(harness)? {
            Ok(report) => report,
            Err(reason) => {
                progress.step(&format!("{name}: not made: {reason}"));
                harness.keep(json!({ "cell": name, "not_made": reason }));
                continue;
            }
        };
        harness.keep(json!({ "cell": name, "faults": report }));
        let mut differences = 0;
        for row in array(&report["policies"], "policies")? {
            differences += count(row, "differences")?;
        }
        progress.step(&format!("{name}: {differences} differences"));
    }
    Ok(())
}

/// Runs the whole matrix on this machine.
fn here(harness: &Harness, cell: &FaultCell) -> Result<Value, EvaluateError> {
    let words = [&["faults", "--json"], cell.words].concat();
    let report = harness.json(&words)?;
    harness.keep(json!({ "cell": cell.name, "command": line(&harness.luc(&words)) }));
    Ok(report)
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
}
