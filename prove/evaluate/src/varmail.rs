//! Part `varmail`: the mail server on a hard disk.

use super::disks::{DiskSpec, EXT4};
use super::error::EvaluateError;
use super::harness::{Harness, figure};
use super::report::{NOTATION, Page, Table, Target, middle, ratio, spread};
use super::rounds::{self, Job, Run, Runs, Under, mean_ms, p99_ms};

/// Name, clients, `--parameters`.
const CELLS: [(&str, &str, &str); 3] = [
    ("16 threads, Filebench's parameters", "16", "filebench"),
    ("16 threads, the LUC paper's parameters", "16", "luc"),
    ("64 threads, the LUC paper's parameters", "64", "luc"),
];
const LEAST_RATIO: f64 = 1.4;
const FSYNCS: [&str; 2] = ["fsyncfile2", "fsyncfile3"];
const DISK: DiskSpec = DiskSpec {
    model: &["--model", "hdd"],
    ..EXT4
};

pub(super) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let repeats = harness.options.repeats.unwrap_or(5);
    let seconds = harness.options.seconds.unwrap_or(10.0);
    let jobs: Vec<Job> = CELLS
        .iter()
        .flat_map(|(cell, clients, parameters)| {
            [("stock", false), ("gate", true)].map(|(setting, gated)| Job {
                cell: (*cell).to_owned(),
                setting,
                disk: DISK,
                words: words(clients, parameters, seconds),
                under: Under::gate_if(gated),
            })
        })
        .collect();
    let runs = rounds::run(harness, &jobs, repeats)?;
    Ok(page(harness, &runs, repeats, seconds))
}

fn words(clients: &str, parameters: &str, seconds: f64) -> Vec<String> {
    let seconds = seconds.to_string();
    [
        "varmail",
        "--threads",
        clients,
        "--parameters",
        parameters,
        "--seconds",
        &seconds,
    ]
    .map(str::to_owned)
    .into()
}

fn page(harness: &Harness, runs: &Runs, repeats: usize, seconds: f64) -> Page {
    let rate = |run: &Run| figure(&run.bench, "flowops_per_second").ok();
    let fsync = |run: &Run| mean_ms(run, &FSYNCS);
    let fsync_p99 = |run: &Run| p99_ms(run, &FSYNCS);
    let mut table = Table::new(&[
        "cell",
        "stock, ops/s",
        "gate, ops/s",
        "ratio",
        "stock, mean fsync, ms",
        "gate, mean fsync, ms",
        "stock, p99, ms",
        "gate, p99, ms",
    ]);
    let mut targets = Vec::new();
    for (cell, ..) in CELLS
        .iter()
        .filter(|(cell, ..)| harness.options.wants(cell))
    {
        let of = |setting: &str, figure: &dyn Fn(&Run) -> Option<f64>| {
            runs.figures(cell, setting, figure)
        };
        let gain = runs.ratio(cell, ("gate", "stock"), rate, harness.options.seed);
        table.row(vec![
            (*cell).to_owned(),
            spread(&of("stock", &rate)),
            spread(&of("gate", &rate)),
            ratio(gain.as_ref()),
            middle(&of("stock", &fsync)),
            middle(&of("gate", &fsync)),
            middle(&of("stock", &fsync_p99)),
            middle(&of("gate", &fsync_p99)),
        ]);
        targets.push(Target::at_least(
            format!("{cell}: ops/s, gate over stock,"),
            gain.map(|gain| gain.ratio),
            LEAST_RATIO,
        ));
    }
    Page {
        title: "A mail server (varmail)".to_owned(),
        about: format!(
            "`luc bench varmail` for {seconds} s, {repeats} times, on ext4 on an emulated hard disk \
             (model hdd), alone and under `luc run --policy auto`. Filebench's parameters: 1000 \
             files of 16 KB; the LUC paper's: 256 files of 1 KB. {NOTATION}"
        ),
        tables: vec![(
            "Filebench's operations per second, and the wait for an fsync:".to_owned(),
            table,
        )],
        targets,
    }
}
