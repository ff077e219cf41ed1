//! The page of the part `services`.

use luc_claims::report::{Page, Table, Target, number, ratio};
use luc_stats::{Interval, median, ratio_interval};
use serde_json::{Value, json};

use super::super::harness::figure;
use super::Outcome;

/// A service is slower if the interval of its gain ends below this.
const LEAST_HIGH: f64 = 0.98;

pub(super) fn page(outcomes: &[Outcome], repeats: usize) -> Page {
    let mut gains = Table::new(&[
        "service",
        "clients' time without, s",
        "with, s",
        "gain",
        "gain of the whole run",
        "requests per synchronization",
        "calls per commit, without",
        "with",
    ]);
    let mut reasons = Table::of_words(&[
        "service",
        "what the gate said",
        "a call's time without the gate",
        "with it",
    ]);
    let mut kinds = Table::of_words(&[
        "service",
        "version",
        "what is done",
        "what it batches itself",
    ]);
    let mut targets = Vec::new();
    for outcome in outcomes {
        let name = outcome.service.name;
        let gain = outcome.gain();
        let of_run = outcome.gain_of_run();
        let per_commit = |side| shown(outcome.middle(side, "calls_per_commit"));
        gains.row(vec![
            name.to_owned(),
            shown(median(&outcome.phases.1)),
            shown(median(&outcome.phases.0)),
            ratio(gain.as_ref()),
            ratio(of_run.as_ref()),
            shown(outcome.calls().map(|calls| outcome.requests / calls)),
            per_commit("without"),
            per_commit("with"),
        ]);
        let why = &outcome.report["why"];
        reasons.row(vec![
            name.to_owned(),
            said(&outcome.last("with")),
            takers(&why["without"]),
            takers(&why["with"]),
        ]);
        kinds.row(vec![
            name.to_owned(),
            format!("{} {}", outcome.service.package, outcome.version),
            outcome.service.about.to_owned(),
            outcome.service.own_batching.to_owned(),
        ]);
        let high = gain.as_ref().map(|gain| gain.high);
        targets.push(Target::at_least(
            format!("{name}: not slower: upper end of the gain's interval"),
            high,
            LEAST_HIGH,
        ));
        targets.push(Target::new(
            format!("{name}: every run ends well, without an error in a log"),
            outcome.status == 0,
            format!("exit status {}", outcome.status),
        ));
    }
    Page {
        title: "Services of the distribution".to_owned(),
        about: format!(
            "Debian's packages, unchanged. `luc run --compare {repeats}` runs each {repeats} times with \
             and {repeats} times without the gate, in random order, on ext4 on a disk that takes 20 µs \
             for a request and 6 ms for a flush. A run starts an instance of its own, drives its eight \
             clients for a fixed amount of work, and stops it; it fails if a client fails, if \
             something is missing afterwards, or if a log has an error. The gain is the median of \
             the clients' time without the gate over that with it, with the 95 % bootstrap interval; \
             that of the whole run has starting and stopping in it, too. The instances' settings are \
             names, places and sizes, with one exception: Dovecot gives its programs an environment \
             of its own, so that its `import_environment` has to name LD_PRELOAD and the gate's \
             variables. Dovecot and PostgreSQL refuse to work as root; they and their `luc run` are \
             run as `{user}`, which may not record: what a call's time went into is not known of them.",
            user = super::USER
        ),
        tables: vec![
            ("Gains:".to_owned(), gains),
            ("What held them back:".to_owned(), reasons),
            ("What was run:".to_owned(), kinds),
        ],
        targets,
    }
}

fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), number)
}

impl Outcome {
    /// The clients' time without the gate over that with it.
    fn gain(&self) -> Option<Interval> {
        ratio_interval(&self.phases.1, &self.phases.0, 1).ok()
    }

    /// The same of the runs as a whole.
    fn gain_of_run(&self) -> Option<Interval> {
        let times = |side: &str| -> Vec<f64> {
            let runs = self.report[side].as_array().map(Vec::as_slice);
            let runs = runs.unwrap_or_default().iter();
            runs.filter_map(|run| figure(run, "elapsed_s").ok())
                .collect()
        };
        ratio_interval(&times("without"), &times("with"), 1).ok()
    }

    /// What the runs of a side reported on the disk's file system.
    fn file_systems(&self, side: &str) -> impl Iterator<Item = &Value> {
        let runs = self.report[side].as_array().map(Vec::as_slice);
        runs.unwrap_or_default().iter().filter_map(|run| {
            let rows = run["file_systems"].as_array()?;
            rows.iter().find(|row| row["device"] == json!(self.device))
        })
    }

    /// The last run's report of a side.
    fn last(&self, side: &str) -> Value {
        self.file_systems(side).last().cloned().unwrap_or_default()
    }

    /// The median of a figure over the runs of a side.
    fn middle(&self, side: &str, key: &str) -> Option<f64> {
        let figures: Vec<f64> = self
            .file_systems(side)
            .filter_map(|row| figure(row, key).ok())
            .collect();
        median(&figures)
    }

    /// Synchronizations of a run, the median over the runs with the gate.
    fn calls(&self) -> Option<f64> {
        let calls: Vec<f64> = self
            .file_systems("with")
            .map(|row| {
                let kinds = ["fsyncs", "fdatasyncs", "msyncs"];
                kinds.iter().filter_map(|kind| figure(row, kind).ok()).sum()
            })
            .collect();
        median(&calls)
    }
}

/// What took a call's time, the largest first, by `luc run`'s report.
fn takers(why: &Value) -> String {
    let Some(takers) = why["takers"].as_object() else {
        return "not recorded".to_owned();
    };
    let mut shares: Vec<(&str, f64)> = takers
        .iter()
        .filter_map(|(name, taken)| Some((&**name, figure(taken, "share").ok()?)))
        .filter(|(_, share)| *share >= 0.005)
        .collect();
    shares.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let words: Vec<String> = shares
        .iter()
        .map(|(name, share)| format!("{} {:.0} %", name.replace('_', " "), share * 100.0))
        .collect();
    words.join(", ")
}

/// What the gate said of a file system: how long it held, and its decision.
fn said(file_system: &Value) -> String {
    let gate = &file_system["gate"];
    let mut words = Vec::new();
    if let (Ok(held), Ok(wrote)) = (
        figure(gate, "mean_wait_us"),
        figure(gate, "mean_write_back_us"),
    ) {
        words.push(format!(
            "held {} ms, data written first in {} ms",
            number(held / 1e3),
            number(wrote / 1e3)
        ));
    }
    let decision = &gate["decision"];
    let text = |key: &str| decision[key].as_str().unwrap_or_default();
    match (text("state"), text("reason")) {
        ("", _) => {}
        (state, "") => words.push(state.to_owned()),
        (state, reason) => words.push(format!("{state}: {reason}")),
    }
    if words.is_empty() {
        return "nothing".to_owned();
    }
    words.join("; ")
}

#[cfg(test)]
mod tests {
    use super::super::SERVICES;
    use super::*;

    fn outcome(with: f64, status: i32) -> Outcome {
        let row = |calls_per_commit: f64| {
            json!({ "elapsed_s": 9.0, "file_systems": [
                { "device": "loop9", "calls_per_commit": 99.0 },
                { "device": "loop1", "calls_per_commit": calls_per_commit, "fsyncs": 3, "fdatasyncs": 4 },
            ]})
        };
        Outcome {
            service: &SERVICES[0],
            requests: 70.0,
            version: "1".to_owned(),
            report: json!({ "with": [row(4.0), row(4.0)], "without": [row(2.0), row(2.0)] }),
            device: "loop1".to_owned(),
            phases: (vec![with; 2], vec![10.0; 2]),
            status,
        }
    }

    #[test]
    fn what_is_slower_or_fails_meets_no_target() {
        let met = |with, status| -> Vec<_> {
            let page = page(&[outcome(with, status)], 2);
            page.targets.iter().map(|target| target.met).collect()
        };
        assert_eq!(met(5.0, 0), [Some(true), Some(true)]);
        assert_eq!(met(11.0, 0), [Some(false), Some(true)]);
        assert_eq!(met(5.0, 1), [Some(true), Some(false)]);
    }

    #[test]
    fn figures_are_of_the_service_s_disk() {
        let outcome = outcome(5.0, 0);
        assert_eq!(outcome.middle("with", "calls_per_commit"), Some(4.0));
        assert_eq!(outcome.calls(), Some(7.0));
        assert_eq!(outcome.gain().map(|gain| gain.ratio), Some(2.0));
        assert_eq!(outcome.gain_of_run().map(|gain| gain.ratio), Some(1.0));
    }

    #[test]
    fn what_took_the_time_is_in_order() {
        let why = json!({ "takers": {
            "flush": { "share": 0.2 }, "own_commit": { "share": 0.7 }, "other": { "share": 0.001 },
        }});
        assert_eq!(takers(&why), "own commit 70 %, flush 20 %");
        assert_eq!(takers(&Value::Null), "not recorded");
    }

    #[test]
    fn what_the_gate_said() {
        let file_system = json!({ "gate": {
            "mean_wait_us": 1500.0, "mean_write_back_us": 250.0,
            "decision": { "state": "aside", "reason": "only one caller at a time" },
        }});
        assert_eq!(
            said(&file_system),
            "held 1.50 ms, data written first in 0.250 ms; aside: only one caller at a time"
        );
        assert_eq!(said(&Value::Null), "nothing");
    }
}
