//! Part `kernel-powercut`: whether an acknowledged fsync is durable with `luc.ko`.

use std::time::Duration;

use luc_harness::report::{Page, Table, Target};
use serde_json::{Value, json};

use super::guest::{Guests, warnings};
use crate::error::EvaluateError;
use crate::guests::succeed;
use crate::harness::{Harness, count, elements, missing, parse};
use crate::powercut::{HEADS, Tally};
use crate::progress::Progress;
use crate::runs::Runs;

const VERSION: &str = "6.1";
/// Minimum number of cuts of the cells with the module together.
const MIN_CUTS: u64 = 200;
/// Number of cuts of a cell with the module. Nine cells exceed [`MIN_CUTS`].
const CUTS: u64 = 23;
/// Number of cuts of a cell for comparison.
const RIVAL_CUTS: u64 = 20;
/// Number of cuts of a cell that must find losses.
const UNSAFE_CUTS: u64 = 5;
/// Number of cuts in one boot, so that a signal loses little.
const CHUNK: u64 = 12;
/// Timeout of a boot. A cut takes some 5 s, on a busy machine much longer.
const BOOT_TIMEOUT: Duration = Duration::from_secs(1800);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    Clean,
    /// Losses, which show that the trial can see them.
    Losses,
    /// Any result, for a rival.
    Anything,
}

#[derive(Debug)]
struct CutCell {
    name: String,
    /// Parameters of `luc.ko`, which is not loaded if this is empty.
    module: String,
    words: String,
    cuts: u64,
    expect: Expect,
}

fn cell(name: &str, module: &str, words: &str, cuts: u64, expect: Expect) -> CutCell {
    CutCell {
        name: name.to_owned(),
        module: module.to_owned(),
        words: words.to_owned(),
        cuts,
        expect,
    }
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
                Expect::Clean,
            ));
        }
    }
    let rivals = wanted(RIVAL_CUTS);
    let fast = "--mkfs-options -Ofast_commit";
    cells.push(cell("stock, data=ordered", "", "", rivals, Expect::Clean));
    cells.push(cell("stock, fast_commit", "", fast, rivals, Expect::Anything));
    let auto = "policy=auto copy_out=auto";
    cells.push(cell("auto, fast_commit", auto, fast, rivals, Expect::Anything));
    cells.push(cell("XFS", "", "--fs xfs", rivals, Expect::Anything));
    let cuts = wanted(UNSAFE_CUTS);
    let skip = "--unsafe-no-fsync";
    cells.push(cell("stock, clients that skip fsync", "", skip, cuts, Expect::Losses));
    cells.push(cell("auto, clients that skip fsync", auto, skip, cuts, Expect::Losses));
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

/// Sums over the boots of a cell.
#[derive(Debug, Default)]
struct CutSum {
    tally: Tally,
    holds: u64,
    copies: u64,
    kept_sectors: u64,
    lost_sectors: u64,
    warnings: usize,
}

impl CutSum {
    fn add(&mut self, result: &Value) -> Result<(), EvaluateError> {
        self.tally.add(&result["report"])?;
        self.kept_sectors += count(&result["report"], "sectors_kept")?;
        self.lost_sectors += count(&result["report"], "sectors_lost")?;
        self.holds += count(result, "holds")?;
        self.copies += count(result, "copies")?;
        self.warnings += elements(&result["warnings"]).len();
        Ok(())
    }

    fn cells(&self) -> Vec<String> {
        let more =
            [self.kept_sectors, self.lost_sectors, self.holds, self.copies, self.warnings as u64];
        [self.tally.cells(), more.map(|count| count.to_string()).into()].concat()
    }
}

pub(crate) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let cells = cells(harness);
    let guests = Guests::prepare(harness, VERSION)?;
    let runs = Runs::open(harness);
    let steps = cells.iter().map(|cell| cell.cuts.div_ceil(CHUNK) as usize).sum();
    let mut progress = Progress::new(harness.part, steps);
    let more = ["sectors kept", "sectors lost", "commits held", "copies", "warnings"];
    let mut table = Table::new(&[&["setting"], &HEADS[..], &more].concat());
    let mut targets = Vec::new();
    let (mut all, mut warned) = (Tally::default(), 0);
    for cell in &cells {
        let mut sum = CutSum::default();
        while sum.tally.rounds < cell.cuts {
            let rounds = CHUNK.min(cell.cuts - sum.tally.rounds);
            let seed = harness.options.seed + sum.tally.rounds;
            let key = json!({ "cell": cell.name, "rounds": rounds, "seed": seed });
            let before = sum.tally.rounds;
            sum.add(&runs.get(&key, || chunk(&guests, cell, rounds, seed))?)?;
            if sum.tally.rounds == before {
                return Err(missing("a round of luc powercut"));
            }
            progress.step(&format!("{}: {}", cell.name, sum.tally.text()));
        }
        table.row([vec![cell.name.clone()], sum.cells()].concat());
        warned += sum.warnings;
        match cell.expect {
            Expect::Clean => targets.push(sum.tally.claim_clean(&cell.name)),
            Expect::Losses => {
                let found = sum.tally.lost + sum.tally.torn > 0;
                let what = format!("{}: the trial finds the losses", cell.name);
                targets.push(Target::new(what, found, sum.tally.text()));
            }
            Expect::Anything => {}
        }
        if cell.expect == Expect::Clean && !cell.module.is_empty() {
            all.rounds += sum.tally.rounds;
            all.acknowledged += sum.tally.acknowledged;
            let figure = format!("{} holds, {} copies", sum.holds, sum.copies);
            let acted = sum.copies > 0 && (sum.holds > 0 || cell.name.starts_with("auto"));
            targets.push(Target::new(
                format!("{}: the module was at work", cell.name),
                acted,
                figure,
            ));
        }
    }
    targets.push(Target::new(
        format!("at least {MIN_CUTS} cuts with the module"),
        all.rounds >= MIN_CUTS,
        format!("{} cuts, {} acknowledged", all.rounds, all.acknowledged),
    ));
    targets.push(Target::new("no warning in any kernel's log", warned == 0, format!("{warned}")));
    Ok(Page {
        title: "Power cuts under luc.ko".to_owned(),
        about: format!(
            "In a virtual machine with Linux {}, two processors and a lagdisk with a volatile cache (a flush \
             takes 2 ms, a write 50 us), each cut makes a fresh file system, lets 16 clients write files, \
             fsync them and say so, cuts the power after 0.1 to 1 s (of the unflushed sectors a drawn share \
             persists, in a quarter of the cuts none), mounts what is left, checks every acknowledged file, \
             and runs the file system's checker. Copy-out is on; other parameters are the module's own. \
             Clients that skip their fsyncs show that losses are found.",
            guests.release()
        ),
        tables: vec![("What the cuts came to:".to_owned(), table)],
        targets,
    })
}
