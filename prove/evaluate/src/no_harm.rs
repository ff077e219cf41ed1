//! Part `no-harm`: the gate where it cannot help, and what a call costs while it stands aside.

use super::disengaged;
use super::disks::{DiskSpec, EXT4, FLUSH_6MS, XFS};
use super::error::EvaluateError;
use super::harness::Harness;
use super::report::{NOTATION, Page, Table, Target, ratio, spread};
use super::rounds::{self, Job, Runs, Under, calls_per_s};

const CLIENTS: [usize; 4] = [1, 2, 4, 16];
const THINKS: [&str; 3] = ["0", "1ms", "10ms"];
const FLUSHES: [(&str, &[&str]); 4] = [
    (
        "0",
        &[
            "--model", "fixed", "--flush", "0us", "--write", "20us", "--read", "20us",
        ],
    ),
    (
        "100us",
        &[
            "--model", "fixed", "--flush", "100us", "--write", "20us", "--read", "20us",
        ],
    ),
    (
        "1ms",
        &[
            "--model", "fixed", "--flush", "1ms", "--write", "20us", "--read", "20us",
        ],
    ),
    ("6ms", FLUSH_6MS),
];
/// Logs overwritten in place, and logs allocated in advance.
const OVERWRITE: (&str, &[&str]) = ("overwrite", &["overwrite", "--file-size", "4m"]);
const PREALLOCATED: (&str, &[&str]) = (
    "preallocated append",
    &["append", "--preallocate", "16m", "--record-size", "4k"],
);
/// A cell is harmed if its ratio is below this with 97.5 % certainty.
const LEAST_HIGH: f64 = 0.98;

/// A cell's name, its disk, and its words of `luc bench`.
fn cells(seconds: f64) -> Vec<(String, DiskSpec, Vec<String>)> {
    let mut cells = Vec::new();
    for (flush, model) in FLUSHES {
        for clients in CLIENTS {
            for think in THINKS {
                let mut words = rounds::metarates(clients, false, seconds);
                words.extend(["--think".to_owned(), think.to_owned()]);
                cells.push((
                    format!("ext4, flush {flush}, {clients} clients, think {think}"),
                    DiskSpec { model, ..EXT4 },
                    words,
                ));
            }
        }
    }
    irregular(&mut cells, seconds);
    let words = rounds::metarates(16, false, seconds);
    cells.push(("XFS, flush 6ms, 16 clients, think 0".to_owned(), XFS, words));
    cells
}

/// Adds callers that need no commit, logs that are allocated in advance, chance and a slow caller.
fn irregular(cells: &mut Vec<(String, DiskSpec, Vec<String>)>, seconds: f64) {
    let mut add = |flush: &str, model, clients: usize, what: &str, words: &[&str]| {
        let mut all: Vec<String> = words.iter().map(ToString::to_string).collect();
        all.extend(["--threads".to_owned(), clients.to_string()]);
        all.extend(["--seconds".to_owned(), seconds.to_string()]);
        let name = format!("ext4, flush {flush}, {clients} clients, {what}");
        cells.push((name, DiskSpec { model, ..EXT4 }, all));
    };
    let create = ["metarates", "--file-size", "1k"];
    let slow = ["--slow-clients", "1", "--slow-factor", "10"];
    for (flush, model) in FLUSHES {
        if ["100us", "6ms"].contains(&flush) {
            for clients in [1, 4, 16] {
                add(flush, model, clients, OVERWRITE.0, OVERWRITE.1);
                add(flush, model, clients, PREALLOCATED.0, PREALLOCATED.1);
            }
        }
        if ["1ms", "6ms"].contains(&flush) {
            for clients in [4, 16] {
                for mean in ["1ms", "10ms"] {
                    let think = ["--think", mean, "--think-distribution", "exponential"];
                    let what = format!("think {mean} on average, exponential");
                    add(
                        flush,
                        model,
                        clients,
                        &what,
                        &[&create[..], &think].concat(),
                    );
                }
            }
        }
        let what = "one of them 10 times slower";
        add(flush, model, 8, what, &[&create[..], &slow].concat());
        if flush == "6ms" {
            for (name, words) in [OVERWRITE, PREALLOCATED] {
                let what = format!("{name}, {what}");
                add(flush, model, 8, &what, &[words, &slow].concat());
            }
        }
    }
}

pub(super) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let repeats = harness.options.repeats.unwrap_or(5);
    let seconds = harness.options.seconds.unwrap_or(2.0);
    let cells = cells(seconds);
    let jobs: Vec<Job> = cells
        .iter()
        .flat_map(|(cell, disk, words)| {
            [("stock", false), ("gate", true)].map(|(setting, gated)| Job {
                cell: cell.clone(),
                setting,
                disk: *disk,
                words: words.clone(),
                under: Under::gate_if(gated),
            })
        })
        .collect();
    let wanted: Vec<&String> = cells
        .iter()
        .map(|(cell, ..)| cell)
        .filter(|cell| harness.options.wants(cell))
        .collect();
    let mut page = Page {
        title: "No harm where there is nothing to gain".to_owned(),
        about: format!(
            "`luc bench metarates` with client threads and files of 1 KB for {seconds} s, {repeats} \
             times, alone and under `luc run --policy auto`, on disks that take 20 µs for a request \
             and a time for a flush, with a pause of each client between files. \"overwrite\" is `luc \
             bench overwrite`: 8 KB written in place and an fdatasync, which needs a flush and no \
             commit; \"preallocated append\" is `luc bench append --preallocate 16m --record-size 4k`: \
             4 KB into a log that was allocated in advance, whose fdatasync needs a commit. {NOTATION}"
        ),
        ..Page::default()
    };
    if !wanted.is_empty() {
        let runs = rounds::run(harness, &jobs, repeats)?;
        sweep(harness, &runs, &wanted, &mut page);
    }
    if harness.options.wants(disengaged::CELL) {
        disengaged::run(harness, repeats.max(2), &mut page)?;
    }
    Ok(page)
}

fn sweep(harness: &Harness, runs: &Runs, cells: &[&String], page: &mut Page) {
    let mut table = Table::new(&["cell", "stock, calls/s", "gate, calls/s", "ratio"]);
    let mut judged = 0;
    let mut harmed = Vec::new();
    let mut lowest = f64::INFINITY;
    for cell in cells {
        let of = |setting| runs.figures(cell, setting, calls_per_s);
        let gain = runs.ratio(cell, ("gate", "stock"), calls_per_s, harness.options.seed);
        table.row(vec![
            (*cell).clone(),
            spread(&of("stock")),
            spread(&of("gate")),
            ratio(gain.as_ref()),
        ]);
        if let Some(gain) = gain {
            judged += 1;
            lowest = lowest.min(gain.high);
            if gain.high < LEAST_HIGH {
                harmed.push(format!("{cell} ({:.3})", gain.high));
            }
        }
    }
    let figure = if harmed.is_empty() {
        format!("of {judged} cells judged the lowest such end is {lowest:.3}")
    } else {
        format!("{} of {judged}: {}", harmed.len(), harmed.join("; "))
    };
    page.targets.push(Target::new(
        format!("no cell whose ratio's interval ends below {LEAST_HIGH}"),
        harmed.is_empty() && judged == cells.len(),
        figure,
    ));
    page.tables
        .push(("Throughput with the gate over without:".to_owned(), table));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cells_are_there_once() {
        let mut names: Vec<String> = cells(4.0).into_iter().map(|(name, ..)| name).collect();
        assert_eq!(names.len(), 75);
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 75);
    }
}
