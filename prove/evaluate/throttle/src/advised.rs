//! Part `throttle-advise`: predictions of `luc throttle advise` for mixes, beside the results of `luc throttle`.

use luc_harness::error::EvaluateError;
use luc_harness::guests;
use luc_harness::harness::{Harness, array, missing, parse};
use luc_harness::progress::Progress;
use luc_harness::report::{Page, Table, Target, change, number as shown};
use luc_harness::runs::Runs;
use luc_stats::median;
use luc_vm::Kernel;
use serde_json::{Value, json};

use super::guest::{boot, cells, script};
use super::mixes::{Mix, Model};
use super::settings::{Setting, plain};
use super::{KERNEL, figures};

/// Time for measuring the guest's disk.
const LEARN_TIME: &str = "13s";
/// Maximum mean error of a prediction, as a part of the result.
const MAX_MEAN_ERROR: f64 = 0.10;
/// Number of throttled runs of a mix. Their results vary with the moment at which they begin.
const THROTTLED_RUNS: usize = 3;
/// Sources of the model that advice is computed from.
const MODEL_SOURCES: [&str; 2] = ["seen", "learned"];
const PREDICTED: [&str; 3] = ["WS", "TP", "worst task"];

fn mixes() -> Vec<Mix> {
    let mut all = vec![
        Mix::streams(4, 32),
        Mix::streams(8, 32),
        Mix { name: "4 long streams".to_owned(), ..Mix::streams(4, 128) },
        Mix::unequal(4, 16),
    ];
    all.extend((0..5).map(Mix::compounded));
    all.push(Mix::on(Model::Ssd, 64));
    all
}

/// Makes the part.
///
/// # Errors
/// [`EvaluateError`].
pub fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let kernel = Kernel::bootable(KERNEL)?;
    let all: Vec<Mix> =
        mixes().into_iter().filter(|mix| harness.options.wants(&mix.name)).collect();
    if all.is_empty() {
        return Err(harness.options.no_cell());
    }
    let seeds = harness.options.repeats.unwrap_or(1) as u64;
    let runs = Runs::open(harness);
    let mut progress = Progress::new(harness.part, all.len() * seeds as usize);
    let mut compared = Vec::new();
    for mix in &all {
        for seed in harness.options.seed..harness.options.seed + seeds {
            let key = json!({ "mix": mix.name, "places": seed });
            let result = runs.get(&key, || in_guest(harness, &kernel, mix, seed))?;
            for knowledge in MODEL_SOURCES {
                compared.push(Prediction::of(mix, knowledge, &result)?);
            }
            progress.step(&format!("{}, places {seed}", mix.name));
        }
    }
    Ok(page(&compared, kernel.release()))
}

/// Runs a mix alone, advised and throttled; then the same after the disk was measured.
fn in_guest(
    harness: &Harness,
    kernel: &Kernel,
    mix: &Mix,
    seed: u64,
) -> Result<Value, EvaluateError> {
    let setting = |policy| Setting { policy, ..plain() };
    let (off, advise, auto) = (setting("off"), setting("advise"), setting("auto"));
    let mut lines = cells(mix, &off, &[]);
    for knowledge in MODEL_SOURCES {
        if knowledge == "learned" {
            lines.push(format!("learn learn {LEARN_TIME}"));
        }
        let mut together = |name: String, setting: &Setting| {
            let line = cells(mix, &off, &[setting]).pop().unwrap_or_default();
            lines.push(line.replacen("together.0", &name, 1));
        };
        together(format!("advise.{knowledge}"), &advise);
        for number in 0..THROTTLED_RUNS {
            together(format!("auto.{knowledge}.{number}"), &auto);
        }
    }
    let outcome = boot(harness, kernel, mix, script(mix, &lines, seed))?;
    let report = |name: String| parse::<Value>(&guests::file(&outcome, &name)?, &name);
    let alone: Result<Vec<Value>, EvaluateError> =
        (1..=mix.kinds.len()).map(|task| report(format!("alone.{task}.json"))).collect();
    let mut result = json!({ "tasks": mix.about(), "alone": alone? });
    for knowledge in MODEL_SOURCES {
        let auto: Result<Vec<Value>, EvaluateError> = (0..THROTTLED_RUNS)
            .map(|number| report(format!("auto.{knowledge}.{number}.json")))
            .collect();
        result[knowledge] = json!({
            "advice": report(format!("advise.{knowledge}.json"))?,
            "auto": auto?,
        });
    }
    result["learn"] = report("learn.json".to_owned())?;
    Ok(result)
}

/// Predictions for a mix, and the results.
#[derive(Debug)]
struct Prediction {
    mix: String,
    knowledge: &'static str,
    predicted: [f64; 3],
    obtained: [f64; 3],
    /// Largest WS less the smallest of the throttled runs, as a part of their median.
    spread: f64,
    /// Mean error of the predicted times alone, as a part of them.
    alone_error: f64,
    /// Model without a throttle, over what was seen.
    model_over_seen: f64,
}

impl Prediction {
    fn of(mix: &Mix, knowledge: &'static str, result: &Value) -> Result<Self, EvaluateError> {
        let alone = array(&result["alone"], "the runs alone")?;
        let alone: Result<Vec<f64>, EvaluateError> =
            alone.iter().map(|run| Ok(seconds(run)?.iter().sum())).collect();
        let alone = alone?;
        let of = &result[knowledge];
        let advice = &of["advice"]["disks"][0];
        let tasks = advice["tasks"]
            .as_array()
            .filter(|tasks| tasks.len() == alone.len())
            .ok_or_else(|| missing("advice on each task"))?;
        let none: Result<Vec<f64>, EvaluateError> =
            tasks.iter().map(|task| number(&task["now_s"])).collect();
        let none = none?;
        let runs = array(&of["auto"], "the runs")?;
        let runs: Result<Vec<_>, EvaluateError> = runs
            .iter()
            .map(|run| Ok(obtained(&alone, &none, &seconds(run)?, number(&run["makespan_s"])?)))
            .collect();
        let runs = runs?;
        let mut alone_error = 0.0;
        for (task, alone) in tasks.iter().zip(&alone) {
            alone_error += (number(&task["alone_s"])? / alone - 1.0).abs() / tasks.len() as f64;
        }
        Ok(Self {
            mix: mix.name.clone(),
            knowledge,
            predicted: [
                number(&advice["then"]["weighted_speedup"])?,
                number(&advice["then"]["throughput_per_s"])?,
                number(&advice["worst"]["then_s"])? / number(&advice["worst"]["now_s"])?,
            ],
            spread: spread(&runs.iter().map(|run| run[0]).collect::<Vec<f64>>()),
            obtained: take_medians(&runs).ok_or_else(|| missing("a throttled run"))?,
            alone_error,
            model_over_seen: number(&advice["model_over_seen"])?,
        })
    }

    /// Errors of the predictions, as parts of the results.
    fn errors(&self) -> [f64; 3] {
        [0, 1, 2].map(|i| self.predicted[i] / self.obtained[i] - 1.0)
    }
}

fn number(value: &Value) -> Result<f64, EvaluateError> {
    value.as_f64().ok_or_else(|| missing("a figure of a run"))
}

/// Returns the time of each command in a run of `luc throttle run`, from its own start.
fn seconds(run: &Value) -> Result<Vec<f64>, EvaluateError> {
    let tasks = array(&run["tasks"], "the tasks of a run")?;
    tasks.iter().map(|task| number(&task["seconds"])).collect()
}

/// Returns WS, TP and the worst task of one run. Its arguments are the times alone, unthrottled and throttled, and the
/// time until all were done.
fn obtained(alone: &[f64], none: &[f64], auto: &[f64], all_done_s: f64) -> [f64; 3] {
    let parts = alone.iter().zip(auto).map(|(alone, auto)| alone / auto);
    let worst = auto.iter().zip(none).map(|(auto, none)| auto / none);
    [parts.sum(), auto.len() as f64 / all_done_s, worst.fold(0.0, f64::max)]
}

/// Returns the median over all runs, figure by figure.
fn take_medians(runs: &[[f64; 3]]) -> Option<[f64; 3]> {
    let of = |i: usize| median(&runs.iter().map(|run| run[i]).collect::<Vec<f64>>());
    Some([of(0)?, of(1)?, of(2)?])
}

fn spread(values: &[f64]) -> f64 {
    let largest = values.iter().copied().fold(f64::MIN, f64::max);
    let smallest = values.iter().copied().fold(f64::MAX, f64::min);
    median(values).map_or(0.0, |middle| (largest - smallest) / middle)
}

fn percent(part: f64) -> String {
    change(100.0 * part)
}

fn page(compared: &[Prediction], release: &str) -> Page {
    let mut table = Table::new(&[
        "mix",
        "model from",
        "WS predicted",
        "came",
        "off by",
        "WS of the runs apart",
        "TP predicted, 1/s",
        "came",
        "off by",
        "worst task predicted",
        "came",
        "off by",
        "times alone off by",
        "model over seen, unthrottled",
    ]);
    for one in compared {
        let mut row = vec![one.mix.clone(), one.knowledge.to_owned()];
        for (i, error) in one.errors().into_iter().enumerate() {
            row.push(shown(one.predicted[i]));
            row.push(shown(one.obtained[i]));
            row.push(percent(error));
            if i == 0 {
                row.push(format!("{:.0} %", 100.0 * one.spread));
            }
        }
        row.push(percent(one.alone_error));
        row.push(shown(one.model_over_seen));
        table.row(row);
    }
    let mut targets = Vec::new();
    for knowledge in MODEL_SOURCES {
        let of: Vec<&Prediction> =
            compared.iter().filter(|one| one.knowledge == knowledge).collect();
        let mut all = Vec::new();
        for (i, what) in PREDICTED.iter().enumerate() {
            let errors: Vec<f64> = of.iter().map(|one| one.errors()[i].abs()).collect();
            all.extend(&errors);
            targets.push(Target::below(
                format!("{what}, model as {knowledge}: mean error, as a part of what comes"),
                figures::mean(&errors),
                MAX_MEAN_ERROR,
            ));
        }
        targets.push(Target::below(
            format!("all three, model as {knowledge}: mean error"),
            figures::mean(&all),
            MAX_MEAN_ERROR,
        ));
    }
    Page {
        title: "What advice predicts, and what comes".to_owned(),
        about: about(release),
        tables: vec![("Predictions and what came.".to_owned(), table)],
        targets,
    }
}

fn about(release: &str) -> String {
    format!(
        "In guests with Linux {release} in virtual time, on the disks and mixes of [throttle](throttle.md). `luc throttle \
         advise --task ...` runs a mix without a throttle and predicts what the throttle would make of it; then \
         `luc throttle run` with policy auto runs the same mix, and with policy off each task alone. All times are those of \
         luc, from a command's start to its end. WS is the sum of time alone over time together, predicted with the \
         predicted times alone; TP is tasks over the time until all are done; the worst \
         task is the one whose time with the throttle is the largest part of its time without, and the figure is that \
         part. What comes is the median of {THROTTLED_RUNS} throttled runs: each begins at another moment of the disk's \
         rotation and of the policy's looks, and the table says how far their WS are apart, as a part of the median. The \
         model of the disk is fitted to what was seen of the mix itself (*seen*), or `luc throttle learn` has measured \
         the disk before, for {LEARN_TIME} (*learned*); its policy then begins with that, too."
    )
}
