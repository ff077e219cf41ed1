//! Part `metarates`: how many more files per second, and how much of what is possible.

use luc_stats::median;

use super::disks::{EXT4, EXT4_SMALL_JOURNAL};
use super::error::EvaluateError;
use super::harness::{Harness, figure};
use super::report::{NOTATION, Page, Table, Target, middle, ratio, spread};
use super::rounds::{self, Job, Run, Runs, Under, files_per_s, mean_ms, p99_ms};

/// Clients; what the ratio and the share of the limit are to reach.
const CLIENTS: [(usize, f64, f64); 4] = [
    (4, 1.85, 0.90),
    (16, 1.8, 0.85),
    (32, 1.7, 0.85),
    (64, 1.5, 0.70),
];
const KINDS: [(&str, bool); 2] = [("threads", false), ("processes", true)];
const SETTINGS: [(&str, bool); 2] = [("stock", false), ("gate", true)];

/// Clients of the cells whose journal fills, which run this many times as long.
const CHECKPOINTED: [usize; 2] = [16, 64];
const CHECKPOINTED_LONGER: f64 = 2.0;

fn checkpointed_cell(clients: usize) -> String {
    format!("{clients} threads, 64 MiB journal")
}

fn cell(clients: usize, kind: &str) -> String {
    format!("{clients} {kind}")
}

pub(super) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let repeats = harness.options.repeats.unwrap_or(5);
    let seconds = harness.options.seconds.unwrap_or(5.0);
    let mut jobs = Vec::new();
    for (clients, ..) in CLIENTS {
        for (kind, processes) in KINDS {
            jobs.extend(SETTINGS.map(|(setting, gated)| Job {
                cell: cell(clients, kind),
                setting,
                disk: EXT4,
                words: rounds::metarates(clients, processes, seconds),
                under: Under::gate_if(gated),
            }));
            // Of no kind, but measured anew for each, close in time to what it is compared with.
            jobs.push(Job {
                cell: cell(clients, kind),
                setting: "commit",
                disk: EXT4,
                words: commit_words(clients),
                under: Under::Bare,
            });
        }
    }
    for clients in CHECKPOINTED {
        jobs.extend(SETTINGS.map(|(setting, gated)| Job {
            cell: checkpointed_cell(clients),
            setting,
            disk: EXT4_SMALL_JOURNAL,
            words: rounds::metarates(clients, false, CHECKPOINTED_LONGER * seconds),
            under: Under::gate_if(gated),
        }));
    }
    let runs = rounds::run(harness, &jobs, repeats)?;
    Ok(page(harness, &runs, repeats, seconds))
}

fn commit_words(clients: usize) -> Vec<String> {
    let clients = clients.to_string();
    [
        "commit",
        "--files",
        &clients,
        "--rounds",
        "50",
        "--file-size",
        "1k",
    ]
    .map(str::to_owned)
    .into()
}

fn page(harness: &Harness, runs: &Runs, repeats: usize, seconds: f64) -> Page {
    let fsync = |run: &Run| mean_ms(run, &["fsync"]);
    let fsync_p99 = |run: &Run| p99_ms(run, &["fsync"]);
    let limit = |run: &Run| figure(&run.bench, "files_per_second").ok();
    let commit_ms = |run: &Run| {
        let total = figure(&run.bench["total"], "median_us").ok()?;
        Some(total / 1e3)
    };
    let mut rates = Table::new(&[
        "clients",
        "stock, files/s",
        "gate, files/s",
        "ratio",
        "T_commit(N), ms",
        "share of N / T_commit, stock",
        "share, gate",
    ]);
    let mut waits = Table::new(&[
        "clients",
        "stock, mean fsync, ms",
        "gate, mean fsync, ms",
        "stock, p99, ms",
        "gate, p99, ms",
        "stock, flushes per commit",
        "gate, flushes per commit",
    ]);
    let mut targets = Vec::new();
    for (clients, least_ratio, least_share) in CLIENTS {
        for (kind, _) in KINDS {
            let cell = cell(clients, kind);
            if !harness.options.wants(&cell) {
                continue;
            }
            let of = |setting: &str, figure: &dyn Fn(&Run) -> Option<f64>| {
                runs.figures(&cell, setting, figure)
            };
            let limit = median(&of("commit", &limit));
            let share = |setting| Some(median(&of(setting, &files_per_s))? / limit?);
            let gain = runs.ratio(&cell, ("gate", "stock"), files_per_s, harness.options.seed);
            let shown = |share: Option<f64>| share.map_or("-".to_owned(), |s| format!("{s:.2}"));
            rates.row(vec![
                cell.clone(),
                spread(&of("stock", &files_per_s)),
                spread(&of("gate", &files_per_s)),
                ratio(gain.as_ref()),
                spread(&of("commit", &commit_ms)),
                shown(share("stock")),
                shown(share("gate")),
            ]);
            let flushes = |run: &Run| run.flushes_per_commit;
            waits.row(vec![
                cell.clone(),
                spread(&of("stock", &fsync)),
                spread(&of("gate", &fsync)),
                middle(&of("stock", &fsync_p99)),
                middle(&of("gate", &fsync_p99)),
                middle(&of("stock", &flushes)),
                middle(&of("gate", &flushes)),
            ]);
            targets.push(Target::at_least(
                format!("{cell}: files/s, gate over stock,"),
                gain.map(|gain| gain.ratio),
                least_ratio,
            ));
            targets.push(Target::at_least(
                format!("{cell}: share of N / T_commit"),
                share("gate"),
                least_share,
            ));
            let stock = median(&of("stock", &fsync)).unwrap_or(f64::NAN);
            targets.push(Target::below(
                format!("{cell}: mean fsync, ms, with the gate"),
                median(&of("gate", &fsync)),
                stock,
            ));
        }
    }
    let mut checkpointed = Table::new(&[
        "clients",
        "stock, files/s",
        "gate, files/s",
        "ratio",
        "stock, flushes per commit",
        "gate, flushes per commit",
    ]);
    for cell in CHECKPOINTED.map(checkpointed_cell) {
        if !harness.options.wants(&cell) {
            continue;
        }
        let of = |setting: &str, figure: &dyn Fn(&Run) -> Option<f64>| {
            runs.figures(&cell, setting, figure)
        };
        let flushes = |run: &Run| run.flushes_per_commit;
        let gain = runs.ratio(&cell, ("gate", "stock"), files_per_s, harness.options.seed);
        checkpointed.row(vec![
            cell.clone(),
            spread(&of("stock", &files_per_s)),
            spread(&of("gate", &files_per_s)),
            ratio(gain.as_ref()),
            middle(&of("stock", &flushes)),
            middle(&of("gate", &flushes)),
        ]);
    }
    let longer = CHECKPOINTED_LONGER * seconds;
    Page {
        title: "File creation (metarates)".to_owned(),
        about: format!(
            "Each client creates, writes (1 KB), fsyncs and closes file after file for {seconds} s, \
             {repeats} times; on ext4 on a disk that takes 20 µs for a request and 6 ms for a flush. \
             \"stock\" is `luc bench metarates` alone, \"gate\" the same under \
             `luc run --policy auto`. T_commit(N) is the time of one commit that serves N new files \
             (`luc bench commit`, one thread, 50 rounds), and N / T_commit what perfect batching \
             without overlap gives. The journal is 1 GiB, as on a disk of 128 GiB or more; the last \
             table has {longer} s on the 64 MiB of a small disk, which fill on the way, sooner the \
             faster files are made: from then on everybody waits for checkpoints, with the gate and \
             without. {NOTATION}"
        ),
        tables: vec![
            ("Throughput, and how much of the limit:".to_owned(), rates),
            ("Waits, and the disk's flushes:".to_owned(), waits),
            ("With a journal that fills:".to_owned(), checkpointed),
        ],
        targets,
    }
}
