//! Part `kernel-powercut`: whether an acknowledged fsync is durable with `luc.ko`.

use std::time::Duration;

use serde_json::{Value, json};

use super::guest::{Guests, warnings};
use crate::error::EvaluateError;
use crate::guests::succeed;
use crate::harness::{Harness, missing, parse};
use crate::powercut::Tally;
use crate::progress::Progress;
use crate::runs::Runs;

const VERSION: &str = "6.1";
/// Number of cuts of a cell with the module. Nine cells exceed the 200 that the page asks for.
const CUTS: u64 = 23;
/// Number of cuts of a cell for comparison.
const RIVAL_CUTS: u64 = 20;
/// Number of cuts of a cell that must find losses.
const UNSAFE_CUTS: u64 = 5;
/// Number of cuts in one boot, so that a signal loses little.
const CHUNK: u64 = 12;
/// Timeout of a boot. A cut takes some 5 s, on a busy machine much longer.
const BOOT_TIMEOUT: Duration = Duration::from_secs(1800);

#[derive(Debug)]
struct CutCell {
    name: String,
    /// Parameters of `luc.ko`, which is not loaded if this is empty.
    module: String,
    words: String,
    cuts: u64,
}

fn cell(name: &str, module: &str, words: &str, cuts: u64) -> CutCell {
    CutCell { name: name.to_owned(), module: module.to_owned(), words: words.to_owned(), cuts }
}

fn cells(harness: &Harness) -> Vec<CutCell> {
    let wanted = |own: u64| harness.options.cuts.map_or(own, |cuts| cuts.min(own));
    let mut cells = Vec::new();
    for policy in ["delay", "pid", "auto"] {
        for mode in ["ordered", "journal", "writeback"] {
            cells.push(cell(
                &format!("{policy} and copy-out, data={mode}"),
                &format!("policy={policy} copy_out=on"),
                &format!("--mount-options data={mode}"),
                wanted(CUTS),
            ));
        }
    }
    let rivals = wanted(RIVAL_CUTS);
    let fast = "--mkfs-options -Ofast_commit";
    cells.push(cell("stock, data=ordered", "", "", rivals));
    cells.push(cell("stock, fast_commit", "", fast, rivals));
    let auto = "policy=auto copy_out=auto";
    cells.push(cell("auto, fast_commit", auto, fast, rivals));
    cells.push(cell("XFS", "", "--fs xfs", rivals));
    let cuts = wanted(UNSAFE_CUTS);
    let skip = "--unsafe-no-fsync";
    cells.push(cell("stock, clients that skip fsync", "", skip, cuts));
    cells.push(cell("auto, clients that skip fsync", auto, skip, cuts));
    cells.retain(|cell| harness.options.wants(&cell.name));
    cells
}

/// Runs a chunk of a cell in one guest.
fn chunk(guests: &Guests, cell: &CutCell, rounds: u64, seed: u64) -> Result<Value, EvaluateError> {
    let vm = guests
        .machine(BOOT_TIMEOUT)
        .variable("MODULE", &cell.module)
        .variable("WORDS", &format!("--clients 16 --rounds {rounds} --seed {seed} {}", cell.words))
        .script(include_str!("powercut.sh"));
    let outcome = succeed(&vm, "luc powercut in a guest")?;
    let report = outcome.file("report.json").unwrap_or_default();
    let report: Value = parse(&report, "the report of luc powercut")?;
    let number =
        |name| outcome.file(name).and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(0);
    Ok(json!({
        "report": report, "holds": number("holds"), "copies": number("copies"),
        "warnings": warnings(&outcome), "release": guests.release(), "wall_s": outcome.wall.as_secs(),
    }))
}

pub(crate) fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let cells = cells(harness);
    let guests = Guests::prepare(harness, VERSION)?;
    let runs = Runs::open(harness);
    let steps = cells.iter().map(|cell| cell.cuts.div_ceil(CHUNK) as usize).sum();
    let mut progress = Progress::new(harness.part, steps);
    for cell in &cells {
        let mut tally = Tally::default();
        while tally.rounds < cell.cuts {
            let rounds = CHUNK.min(cell.cuts - tally.rounds);
            let seed = harness.options.seed + tally.rounds;
            let key = json!({ "cell": cell.name, "rounds": rounds, "seed": seed });
            let before = tally.rounds;
            tally.add(&runs.get(&key, || chunk(&guests, cell, rounds, seed))?["report"])?;
            if tally.rounds == before {
                return Err(missing("a round of luc powercut"));
            }
            progress.step(&format!("{}: {}", cell.name, tally.text()));
        }
    }
    Ok(())
}
