//! Part `prediction`: the gain by batching that `luc explain` predicts, beside the gate's gain. It also shows the
//! errors of the split and the models of an fsync.

use luc_harness::cells;
use luc_harness::report::{NOTATION, Page, Table, Target, number, or_dash, spread};
use luc_stats::median;
use serde_json::Value;

use crate::disks::{DiskSpec, EXT4, FLUSH_6MS};
use crate::error::EvaluateError;
use crate::harness::{Harness, figure};
use crate::rounds::{self, BenchRun, BenchRuns, Job, Under, mean_ms};

const STOCK: &str = "stock";
const GATE: &str = "gate";
const RECORDED: &str = "recorded";

/// Maximum mean error of predicted rates.
const MAX_MEAN_ERROR: f64 = 0.10;
/// Minimum gain that counts as one, as in `luc explain`.
const MIN_GAIN: f64 = 0.05;
const MAX_MODEL_ERROR: f64 = 0.05;

const FLUSH_2MS: DiskSpec = DiskSpec {
    model: &["--model", "fixed", "--flush", "2ms", "--write", "50us", "--read", "50us"],
    ..EXT4
};
const HARD_DISK: DiskSpec = DiskSpec { model: &["--model", "hdd"], ..EXT4 };
const CLOUD: DiskSpec = DiskSpec { model: &["--model", "cloud"], ..EXT4 };
const FAST_COMMIT: DiskSpec =
    DiskSpec { model: FLUSH_6MS, fs: "ext4", mkfs: "-i 4096 -J size=1024 -O fast_commit" };

/// Name, disk, and words of `luc bench`.
const CELLS: [(&str, DiskSpec, &[&str]); 13] = [
    ("1 thread", EXT4, &["metarates", "--threads", "1"]),
    ("2 threads", EXT4, &["metarates", "--threads", "2"]),
    ("4 threads", EXT4, &["metarates", "--threads", "4"]),
    ("8 threads", EXT4, &["metarates", "--threads", "8"]),
    ("16 threads", EXT4, &["metarates", "--threads", "16"]),
    ("32 threads", EXT4, &["metarates", "--threads", "32"]),
    ("16 processes", EXT4, &["metarates", "--threads", "16", "--processes"]),
    ("8 threads that think 10 ms", EXT4, &["metarates", "--threads", "8", "--think", "10ms"]),
    ("8 threads, flush of 2 ms", FLUSH_2MS, &["metarates", "--threads", "8"]),
    ("8 threads, hard disk", HARD_DISK, &["metarates", "--threads", "8"]),
    ("8 threads, cloud disk", CLOUD, &["metarates", "--threads", "8"]),
    ("8 threads, fast_commit", FAST_COMMIT, &["metarates", "--threads", "8"]),
    ("varmail, 16 threads", EXT4, &["varmail", "--threads", "16", "--parameters", "luc"]),
];

struct PredictionCell {
    stock: Vec<f64>,
    gate: Vec<f64>,
    predicted: Vec<f64>,
    gain: f64,
    obtained: f64,
}

impl PredictionCell {
    /// Predicted rate over the obtained one, less 1.
    fn error(&self) -> Option<f64> {
        Some(median(&self.predicted)? / median(&self.gate)? - 1.0)
    }

    /// Whether a gain was predicted exactly where there is one.
    fn sign_is_right(&self) -> bool {
        if self.gain >= MIN_GAIN { self.obtained > 0.0 } else { self.obtained < MIN_GAIN }
    }
}

pub(super) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let repeats = harness.options.repeats.unwrap_or(3);
    let seconds = harness.options.seconds.unwrap_or(4.0);
    let length = ["--seconds".to_owned(), seconds.to_string()];
    let jobs: Vec<Job> = CELLS
        .iter()
        .flat_map(|(cell, disk, words)| {
            let settings = [(STOCK, Under::Bare), (GATE, Under::Gate), (RECORDED, Under::Recorder)];
            let words = words.iter().map(ToString::to_string);
            let words: Vec<String> = words.chain(length.clone()).collect();
            settings.map(|(setting, under)| Job {
                cell: (*cell).to_owned(),
                setting,
                disk: *disk,
                words: words.clone(),
                under,
            })
        })
        .collect();
    let runs = rounds::run(harness, &jobs, repeats)?;
    Ok(page(harness, &runs, repeats, seconds))
}

/// Returns the operations per second of either workload.
fn rate(run: &BenchRun) -> Option<f64> {
    let key = ["creations_per_second", "flowops_per_second"];
    key.iter().find_map(|key| figure(&run.bench, key).ok())
}

/// Returns the rate under the gate that a run's trace predicts.
fn predicted(run: &BenchRun) -> Option<f64> {
    Some(rate(run)? * (1.0 + gain(run)?))
}

/// Ratio of the mean fsync by its split to the mean that the program measured. They cover different times, by the
/// warm-up.
fn against_own(run: &BenchRun) -> Option<f64> {
    let own_ms = mean_ms(run, &["fsync", "fsyncfile2", "fsyncfile3"])?;
    Some(figure(&run.explained["syncs"]["latency"], "mean_ns").ok()? / 1e6 / own_ms)
}

fn gain(run: &BenchRun) -> Option<f64> {
    figure(&run.explained["batching"], "gain").ok()
}

fn cell(runs: &BenchRuns, name: &str) -> Option<PredictionCell> {
    let stock = runs.figures(name, STOCK, rate);
    let gate = runs.figures(name, GATE, rate);
    let obtained = median(&gate)? / median(&stock)? - 1.0;
    Some(PredictionCell {
        gain: median(&runs.figures(name, RECORDED, gain))?,
        predicted: runs.figures(name, RECORDED, predicted),
        obtained,
        stock,
        gate,
    })
}

fn page(harness: &Harness, runs: &BenchRuns, repeats: usize, seconds: f64) -> Page {
    let mut table = Table::new(&[
        "setting",
        "stock, ops/s",
        "predicted, ops/s",
        "gate, ops/s",
        "predicted gain",
        "obtained gain",
        "error of the rate",
        "sign",
    ]);
    let percent = |share: f64| format!("{:+.1} %", share * 100.0);
    let mut errors = Vec::new();
    let (mut signs, mut cells) = (0, 0);
    for (name, _, _) in CELLS.iter().filter(|(name, ..)| harness.options.wants(name)) {
        let Some(cell) = cell(runs, name) else {
            continue;
        };
        let error = cell.error();
        errors.extend(error.map(f64::abs));
        cells += 1;
        signs += usize::from(cell.sign_is_right());
        table.row(cells![
            name,
            spread(&cell.stock),
            spread(&cell.predicted),
            spread(&cell.gate),
            percent(cell.gain),
            percent(cell.obtained),
            or_dash(error.map(percent)),
            if cell.sign_is_right() { "right" } else { "**wrong**" }.to_owned()
        ]);
    }
    let mean_error = (!errors.is_empty()).then(|| errors.iter().sum::<f64>() / errors.len() as f64);
    let (models, model_targets) = models(harness, runs);
    let mut targets = vec![
        Target::below(
            "predicted against obtained ops/s, mean error over the settings,",
            mean_error,
            MAX_MEAN_ERROR,
        ),
        Target::new(
            "the sign of the gain is right in every setting",
            signs == cells && cells > 0,
            format!("{signs} of {cells}"),
        ),
    ];
    targets.extend(model_targets);
    Page {
        title: "What batching would gain, predicted and obtained; the models of an fsync"
            .to_owned(),
        about: format!(
            "`luc bench` for {seconds} s, {repeats} times each: alone, under `luc run --policy auto`, and alone under \
             `luc record`, whose trace is explained. The prediction is made from the trace alone: its gain times the rate \
             of the recorded run; the gate runs without a recorder. Disks: flush of 6 ms and 20 µs for a \
             request unless the setting says otherwise. {NOTATION}"
        ),
        tables: vec![
            ("Rates:".to_owned(), table),
            ("The split and the models, in the recorded runs:".to_owned(), models),
        ],
        targets,
    }
}

/// Makes the table of sums of the parts, and of the errors of Algorithm 4.1 and of LUC's model.
fn models(harness: &Harness, runs: &BenchRuns) -> (Table, Vec<Target>) {
    let mut table = Table::new(&[
        "setting",
        "fsyncs",
        "split within 1 %",
        "sum of the split over the program's own measurement",
        "commits waited per fsync",
        "error of Algorithm 4.1",
        "error by transaction id",
    ]);
    let mut ours = Vec::new();
    let (mut close, mut all) = (0.0, 0.0);
    for (name, _, _) in CELLS.iter().filter(|(name, ..)| harness.options.wants(name)) {
        let of = |get: &dyn Fn(&Value) -> Option<f64>| -> Vec<f64> {
            runs.figures(name, RECORDED, |run| get(&run.explained))
        };
        let model = |key: &'static str| of(&|found| figure(&found["fsync_model"], key).ok());
        let sum = |values: Vec<f64>| values.iter().sum::<f64>();
        let count = sum(of(&|found| figure(&found["syncs"]["latency"], "count").ok()));
        let near = sum(of(&|found| figure(&found["syncs"], "closed").ok()));
        (close, all) = (close + near, all + count);
        let error = model("our_error");
        ours.extend(median(&error));
        let percent = |values: &[f64]| {
            median(values).map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0))
        };
        table.row(cells![
            name,
            number(count),
            percent(&[near / count.max(1.0)]),
            or_dash(
                median(&runs.figures(name, RECORDED, against_own))
                    .map(|ratio| format!("{ratio:.3}"))
            ),
            or_dash(median(&model("commits_waited")).map(number)),
            percent(&model("error")),
            percent(&error)
        ]);
    }
    let mean = (!ours.is_empty()).then(|| ours.iter().sum::<f64>() / ours.len() as f64);
    let targets = vec![
        Target::at_least(
            "share of fsyncs whose parts sum to the measured time within 1 %",
            (all > 0.0).then(|| close / all),
            0.99,
        ),
        Target::below(
            "LUC's prediction of an fsync's time by transaction id, mean error,",
            mean,
            MAX_MODEL_ERROR,
        ),
    ];
    (table, targets)
}
