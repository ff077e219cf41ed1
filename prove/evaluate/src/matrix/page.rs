//! The page: a matrix per server, and what of the slides' conclusions holds.

use std::collections::BTreeSet;

use luc_sweep::selection::{Candidate, FEWEST_ROUNDS, Side};

use super::super::guests::Results;
use super::super::report::{Page, Table, Target, spread};
use super::cells::{CONFIGS, DISK_MIB, LOADS, SCALE, SECONDS};
use super::conclusions::{self, improvement};
use super::figures::{Figures, middle};
use super::guest::Cell;

/// The page of what is there.
pub(super) fn page(results: &Results<Cell>) -> Page {
    let all = Figures::all(results);
    let mut tables = vec![
        (
            "**What of the slides' conclusions holds**, by the figures below:".to_owned(),
            conclusions::table(&all),
        ),
        (
            "**The selection matrix** (safe ones only; the improvement is over the defaults of the slides' file \
             systems, its least and its greatest):"
                .to_owned(),
            selection_matrix(&all),
        ),
    ];
    for figures in &all {
        tables.push((
            format!(
                "**{}** ({}; {} MiB of memory), ops/s, best first:",
                figures.load.name, figures.load.files, figures.load.memory_mib
            ),
            matrix(figures),
        ));
    }
    tables.retain(|(_, table)| !table.is_empty());
    Page {
        title: "The energy slides' matrix, on an emulated hard disk".to_owned(),
        about: about(&all),
        tables,
        targets: vec![complete(&all)],
    }
}

/// Every file system with its default and two options, in enough rounds, on each server.
fn complete(all: &[Figures]) -> Target {
    let systems: BTreeSet<&str> = CONFIGS.iter().map(|config| config.file_system).collect();
    let measured = |figures: &&Figures| {
        systems.iter().all(|system| {
            let enough = figures
                .candidates
                .iter()
                .filter(|one| one.file_system == *system && one.rates.len() >= FEWEST_ROUNDS);
            enough.count() >= 3
        })
    };
    let whole = all.iter().filter(measured).count();
    let rounds = all
        .iter()
        .flat_map(|figures| figures.candidates.iter().map(|one| one.rates.len()));
    let (least, most) = (rounds.clone().min().unwrap_or(0), rounds.max().unwrap_or(0));
    Target::new(
        format!(
            "{} servers, each on {} file systems with the default and two options or more, {FEWEST_ROUNDS} rounds or \
             more",
            LOADS.len(),
            systems.len()
        ),
        whole == LOADS.len(),
        format!("{whole} servers, {least} to {most} rounds"),
    )
}

fn about(all: &[Figures]) -> String {
    let terms = all
        .iter()
        .find_map(|figures| figures.selection.as_ref())
        .map_or_else(String::new, |found| {
            format!(
                " Ratios are of the same round; the intervals of a server's ratios hold all together with {} % \
                 (Bonferroni over {} pairs), so with few rounds they are wide.",
                found.terms.confidence * 100.0,
                found.pairs
            )
        });
    format!(
        "\"Evaluating Performance and Energy in File System Server Workloads\" (Sehgal, Tarasov, Zadok; FAST 2010) ran \
         four servers on ext2, ext3, ReiserFS and XFS with their options, on Linux 2.6.18. Here the same servers \
         (`slides-web`, `slides-file`, `slides-mail`, `slides-database` of `luc bench filebench`) run on Linux 6.1, the \
         slides' file systems beside ext4, btrfs and f2fs; ext2 and ext3 are ext4's code, as in every kernel of today. \
         \"default\" is mkfs and mount without options (atimes are relatime, the slides' were strict).\n\n\
         **Scale**: {SCALE}. The number of files (of the database: their size) is the slides' divided by it. \
         Threads and the proportions of the loops are the slides', I/O sizes too, but for buffers of 128 KiB (web, mail; \
         practically no file is larger) and 256 KiB (file) instead of 1 MB, since 100 of those would fill the memory. \
         The file server's memory is the slides' 2 GiB divided by the scale; that of the others is less, so that no \
         file set fits. It is all that the benchmark and the page cache have, and includes about 20 to 35 MiB of the \
         benchmark's. The readers of the database compute for 2,000 loops, not 200,000, between two reads.\n\n\
         **Disk**: `luc disk` (FUSE and a loop device) in the guest, model `hdd`: 7200 rpm, seek 8.5 ms on average, \
         60 to 125 MB/s, 16 MiB of write-back cache, flushes; {DISK_MIB} MiB over the whole stroke, in huge pages, out \
         of the page cache's memory. No command queueing: mq-deadline sorts above it.\n\n\
         **Time** is virtual: a thousand million instructions a second on one processor, idle time skipped. So figures \
         do not depend on the machine that made them, and the same seed gives the same figures. A round is a seed: \
         the same files and choices for all. Each run has a fresh disk and file system, makes its files, syncs, drops the \
         caches and runs for {SECONDS} s of virtual time from cold. Ops/joule are **unavailable** in a virtual \
         machine; the slides found them nearly linear in ops/s.\n\n\
         In parentheses: of a median the range of its rounds (its 95 % interval from 6 rounds on); of a ratio its \
         interval.{terms} UNSAFE is what may lose acknowledged data in a power cut beyond what the program risks; it is \
         never best. ext4's fast commits have lost some as well ([head-to-head](head-to-head.md))."
    )
}

/// As the slides' own: a row per server.
fn selection_matrix(all: &[Figures]) -> Table {
    let mut table = Table::new(&[
        "server",
        "best",
        "not shown to be worse",
        "improvement over the slides' defaults",
        "over its own default",
    ]);
    for figures in all {
        let Some(best) = figures.best() else {
            continue;
        };
        let as_good: Vec<String> = figures
            .among_the_best()
            .iter()
            .filter(|one| one.name() != best.name())
            .map(|one| one.name())
            .collect();
        let own = figures
            .gain(&best.file_system, &best.options)
            .filter(|_| !best.is_default)
            .map_or_else(|| "-".to_owned(), |gain| format!("{:.2}x", gain.median));
        table.row(vec![
            figures.load.name.to_owned(),
            best.name(),
            match (&figures.selection, as_good.is_empty()) {
                (None, _) => "too few rounds".to_owned(),
                (_, true) => "none".to_owned(),
                _ => as_good.join(", "),
            },
            improvement(figures).unwrap_or_else(|| "-".to_owned()),
            own,
        ]);
    }
    table
}

/// A server's candidates, best first.
fn matrix(figures: &Figures) -> Table {
    let mut table = Table::new(&[
        "file system",
        "ops/s",
        "over its default",
        "the best is so many times as good",
        "",
    ]);
    let mut order: Vec<usize> = (0..figures.candidates.len()).collect();
    let rate = |at: usize| middle(&figures.candidates[at]);
    order.sort_by(|&a, &b| rate(b).total_cmp(&rate(a)));
    for at in order {
        let candidate = &figures.candidates[at];
        let gain = figures
            .gain(&candidate.file_system, &candidate.options)
            .filter(|_| !candidate.is_default);
        table.row(vec![
            candidate.name(),
            spread(&candidate.rates),
            gain.map_or_else(|| "-".to_owned(), |gain| format!("{:.2}x", gain.median)),
            against_best(figures, at),
            mark(candidate),
        ]);
    }
    table
}

fn against_best(figures: &Figures, at: usize) -> String {
    let Some(selection) = &figures.selection else {
        return "too few rounds".to_owned();
    };
    if selection.rate.best == at {
        return "best".to_owned();
    }
    let Some(found) = selection.rate.against(at) else {
        return "too few rounds".to_owned();
    };
    let verdict = match found.best_is {
        Side::Better => "",
        Side::Worse => ", better than the best",
        Side::NotDistinguishable => ", no significant difference",
    };
    format!(
        "{:.2} ({:.2} to {:.2}){verdict}",
        found.ratio, found.low, found.high
    )
}

fn mark(candidate: &Candidate) -> String {
    match (&candidate.danger, candidate.is_default) {
        (Some(danger), true) => format!("default, UNSAFE: {danger}"),
        (Some(danger), false) => format!("UNSAFE: {danger}"),
        (None, true) => "default".to_owned(),
        (None, false) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::figures;
    use super::*;

    #[test]
    fn the_matrix_is_in_order_and_marks_what_is_unsafe() {
        let found = figures(
            LOADS[0],
            &[
                ("ext3", "default", 100.0),
                ("ext2", "default", 300.0),
                ("xfs", "default", 200.0),
            ],
        );
        let text = matrix(&found).to_string();
        let rows: Vec<&str> = text.lines().skip(2).collect();
        assert!(
            rows[0].contains("ext2 default") && rows[0].contains("UNSAFE: no journal"),
            "{text}"
        );
        assert!(
            rows[1].contains("xfs default") && rows[1].contains("| best |"),
            "{text}"
        );
        assert!(
            rows[2].contains("ext3 default") && rows[2].contains("2.00 ("),
            "{text}"
        );
        // The slides' defaults have ext2 among them.
        let text = selection_matrix(&[found]).to_string();
        let row = "| web | xfs default | none | 0.67x to 2.00x |";
        assert!(text.contains(row), "{text}");
        assert_eq!(complete(&[]).met, Some(false));
    }
}
