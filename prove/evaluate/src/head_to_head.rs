//! Part `head-to-head`: ext4, its fast commits, and XFS; ext4 also under the gate.

use super::disks::{DiskSpec, EXT4, XFS};
use super::error::EvaluateError;
use super::harness::Harness;
use super::powercut::{self, HEADS, Tally};
use super::progress::Progress;
use super::report::{NOTATION, Page, Table, Target, middle, ratio, spread};
use super::rounds::{self, Job, Run, Runs, Under, files_per_s, mean_ms, p99_ms};

const CLIENTS: [usize; 3] = [4, 16, 32];
const FAST_COMMIT: DiskSpec = DiskSpec {
    mkfs: "-i 4096 -J size=1024 -O fast_commit",
    ..EXT4
};

/// Name, disk, gated; the words of `luc powercut` besides.
const SETTINGS: [(&str, DiskSpec, bool, &[&str]); 5] = [
    ("ext4", EXT4, false, &[]),
    ("ext4 + gate", EXT4, true, &[]),
    (
        "fast_commit",
        FAST_COMMIT,
        false,
        &["--mkfs-options", "-O fast_commit"],
    ),
    (
        "fast_commit + gate",
        FAST_COMMIT,
        true,
        &["--mkfs-options", "-O fast_commit"],
    ),
    ("XFS", XFS, false, &["--fs", "xfs"]),
];

/// A setting, what it is compared with, and the ratio wanted.
const WANTED: [(&str, &str, f64); 2] = [
    ("ext4 + gate", "fast_commit", 0.9),
    ("fast_commit + gate", "fast_commit", 0.98),
];

/// Power cuts of each setting.
const CUTS: u64 = 50;
/// Settings that must lose nothing.
const SAFE: [&str; 2] = ["ext4", "ext4 + gate"];

fn cell(clients: usize) -> String {
    format!("{clients} clients")
}

pub(super) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let repeats = harness.options.repeats.unwrap_or(5);
    let seconds = harness.options.seconds.unwrap_or(5.0);
    let jobs: Vec<Job> = CLIENTS
        .iter()
        .flat_map(|&clients| {
            SETTINGS.map(|(setting, disk, gated, _)| Job {
                cell: cell(clients),
                setting,
                disk,
                words: rounds::metarates(clients, false, seconds),
                under: Under::gate_if(gated),
            })
        })
        .collect();
    let wanted = jobs.iter().any(|job| harness.options.wants(&job.cell));
    let mut tables = Vec::new();
    let mut targets = Vec::new();
    if wanted {
        let runs = rounds::run(harness, &jobs, repeats)?;
        speed(harness, &runs, &mut tables, &mut targets);
    }
    safety(harness, &mut tables, &mut targets)?;
    Ok(Page {
        title: "Head to head: fast commits and XFS".to_owned(),
        about: format!(
            "`luc bench metarates` with client threads and files of 1 KB for {seconds} s, {repeats} \
             times, on a disk that takes 20 µs for a request and 6 ms for a flush: on ext4, on ext4 \
             made with `-O fast_commit`, and on XFS; \"+ gate\" is under `luc run --policy auto`. \
             {NOTATION}"
        ),
        tables,
        targets,
    })
}

fn speed(
    harness: &Harness,
    runs: &Runs,
    tables: &mut Vec<(String, Table)>,
    targets: &mut Vec<Target>,
) {
    let fsync = |run: &Run| mean_ms(run, &["fsync"]);
    let fsync_p99 = |run: &Run| p99_ms(run, &["fsync"]);
    let seed = harness.options.seed;
    let mut table = Table::new(&[
        "clients, setting",
        "files/s",
        "over ext4",
        "mean fsync, ms",
        "p99, ms",
    ]);
    for cell in CLIENTS
        .map(cell)
        .iter()
        .filter(|cell| harness.options.wants(cell))
    {
        for (setting, ..) in SETTINGS {
            let over = runs.ratio(cell, (setting, "ext4"), files_per_s, seed);
            table.row(vec![
                format!("{cell}, {setting}"),
                spread(&runs.figures(cell, setting, files_per_s)),
                if setting == "ext4" {
                    "1".to_owned()
                } else {
                    ratio(over.as_ref())
                },
                middle(&runs.figures(cell, setting, fsync)),
                middle(&runs.figures(cell, setting, fsync_p99)),
            ]);
        }
        for (setting, other, least) in WANTED {
            let over = runs.ratio(cell, (setting, other), files_per_s, seed);
            targets.push(Target::at_least(
                format!("{cell}: files/s, {setting} over {other},"),
                over.map(|interval| interval.ratio),
                least,
            ));
        }
    }
    tables.push(("Throughput and waits:".to_owned(), table));
}

fn safety(
    harness: &Harness,
    tables: &mut Vec<(String, Table)>,
    targets: &mut Vec<Target>,
) -> Result<(), EvaluateError> {
    let cuts = harness.options.cuts.unwrap_or(CUTS);
    let name = |setting: &str| format!("power cuts, {setting}");
    let trials: Vec<_> = SETTINGS
        .iter()
        .filter(|(setting, ..)| harness.options.wants(&name(setting)))
        .collect();
    if trials.is_empty() {
        return Ok(());
    }
    let mut progress = Progress::new(harness.part, trials.len() * powercut::steps(cuts));
    let mut table = Table::new(&[&["setting"], &HEADS[..]].concat());
    for (setting, _, gated, words) in trials {
        let policy: &[&str] = if *gated { &["--policy", "auto"] } else { &[] };
        let words = [&["--clients", "16"], policy, words].concat();
        let tally: Tally = powercut::trial(harness, &name(setting), &words, cuts, &mut progress)?;
        table.row([vec![(*setting).to_owned()], tally.cells()].concat());
        if SAFE.contains(setting) {
            let what = format!("{setting}: nothing lost, torn, not mountable or unclean");
            targets.push(Target::new(what, tally.bad() == 0, tally.text()));
        }
    }
    tables.push((
        "What power cuts lost (`luc powercut`, 16 client threads):".to_owned(),
        table,
    ));
    Ok(())
}
