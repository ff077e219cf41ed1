//! The page of the part `services`.

use luc_harness::cells;
use luc_harness::report::{Page, Table, Target, number, ratio, spread};
use luc_stats::{Interval, median, median_interval};
use serde_json::Value;

use super::ServiceOutcome;
use super::runs::{USER, Way};

/// Minimum gain of a service that is not slower, and minimum lower end of its interval.
const MIN_GAIN: f64 = 0.98;
const MIN_GAIN_LOWER_END: f64 = 0.95;

/// Minimum share of a call's time that is shown.
const MIN_SHARE: f64 = 0.03;

pub(super) fn page(outcomes: &[ServiceOutcome], repeats: usize) -> Page {
    let mut gains = Table::new(&[
        "service",
        "stock, s",
        "`luc run`",
        "`luc run --reach notify`",
        "flushes per request, stock",
        "`luc run`",
        "`--reach notify`",
    ]);
    let mut reasons = Table::of_words(&[
        "service",
        "a call's time, stock",
        "`luc run` took",
        "what it said",
        "what `--reach notify` said",
        "not reached by `luc run`",
    ]);
    let mut kinds =
        Table::of_words(&["service", "version", "what is done", "what it batches itself"]);
    let mut targets = Vec::new();
    for outcome in outcomes {
        let name = outcome.service.name;
        let gain = |way| outcome.gain(way);
        let flushes = |way| format_figure(outcome.flushes_per_request(way));
        gains.row(cells![
            name,
            spread(&outcome.seconds(Way::Stock)),
            ratio(gain(Way::Auto).as_ref()),
            ratio(gain(Way::Notified).as_ref()),
            flushes(Way::Stock),
            flushes(Way::Auto),
            flushes(Way::Notified)
        ]);
        reasons.row(cells![
            name,
            takers(&outcome.parts),
            outcome.took(),
            describe_gate(&outcome.last(Way::Auto)["luc"]),
            describe_gate(&outcome.last(Way::Notified)["luc"]),
            unreached(&outcome.last(Way::Auto)["luc"]["unreached"])
        ]);
        kinds.row(cells![
            name,
            format!("{} {}", outcome.service.package, outcome.version),
            outcome.service.about,
            outcome.service.own_batching
        ]);
        for way in Way::of(outcome.service) {
            if *way != Way::Stock {
                let what = format!("{name}, {}: not slower", way.title());
                targets.push(Target::at_least(
                    format!("{what}: gain"),
                    gain(*way).map(|gain| gain.ratio),
                    MIN_GAIN,
                ));
                targets.push(Target::at_least(
                    format!("{what}: lower end of the gain's interval"),
                    gain(*way).map(|gain| gain.low),
                    MIN_GAIN_LOWER_END,
                ));
            }
        }
        targets.push(outcome.ends_well());
    }
    Page {
        title: "Services of the distribution".to_owned(),
        about: about(repeats),
        tables: vec![
            ("Times of the clients without luc, and gains with it:".to_owned(), gains),
            ("What held them back:".to_owned(), reasons),
            ("What was run:".to_owned(), kinds),
        ],
        targets,
    }
}

fn about(repeats: usize) -> String {
    format!(
        "Debian's packages, unchanged, on ext4 on a disk that takes 20 µs for a request and 6 ms for a flush, all instances \
         on one journal. Each program is started alone (\"stock\"), by `luc run`, and by `luc run --reach notify`; each \
         instance has a `luc run` of its own, as in a unit. By default `luc run` takes the library, or for static \
         programs and Go programs the notifier; these have no third column, as it would be the second. {repeats} runs of \
         each, in random order within each repeat. A run starts the instances, drives eight clients for a fixed amount \
         of work, and stops them; it fails if a client fails, if something is missing afterwards, or if a log has an \
         error. A gain is the clients' time without luc over that with it, of runs of the same repeat: their median, with \
         its 95 % interval from order statistics. What luc learns at first is included. The instances' settings are names, places and sizes, with one \
         exception: Dovecot gives its programs an environment of its own; where it is alone, its `import_environment` \
         names LD_PRELOAD and the gate's variables, so that the library reaches them, and it is run as `{USER}`. What a \
         call's time goes into is of one more run without luc, recorded by `luc record`."
    )
}

fn format_figure(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), number)
}

impl Way {
    fn title(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::Auto => "`luc run`",
            Self::Notified => "`luc run --reach notify`",
        }
    }
}

impl ServiceOutcome {
    fn of(&self, way: Way) -> impl Iterator<Item = &Value> {
        let of_way = move |run: &&(Way, Value)| run.0 == way;
        self.runs.iter().filter(of_way).map(|(_, run)| run)
    }

    /// The last run of a way.
    fn last(&self, way: Way) -> Value {
        self.of(way).last().cloned().unwrap_or_default()
    }

    /// Times of the clients in the runs of a way that ended well, s.
    fn seconds(&self, way: Way) -> Vec<f64> {
        let good = self.of(way).filter(|run| run["status"] == 0);
        good.filter_map(|run| run["seconds"].as_f64()).collect()
    }

    /// Ratio of the clients' time without luc to that of a way. It compares runs of the same repeat, if both ended
    /// well.
    fn gain(&self, way: Way) -> Option<Interval> {
        let seconds = |run: &Value| {
            let seconds = run["seconds"].as_f64().filter(|seconds| *seconds > 0.0);
            seconds.filter(|_| run["status"] == 0)
        };
        let repeats = self.of(Way::Stock).zip(self.of(way));
        let ratios: Vec<f64> =
            repeats.filter_map(|(stock, with)| Some(seconds(stock)? / seconds(with)?)).collect();
        let of_median = median_interval(&ratios)?;
        Some(Interval { ratio: of_median.median, low: of_median.low, high: of_median.high })
    }

    /// Flushes of the disk per request, starting and stopping included. It is the median over the runs of a way.
    fn flushes_per_request(&self, way: Way) -> Option<f64> {
        let flushes: Vec<f64> = self.of(way).filter_map(|run| run["flushes"].as_f64()).collect();
        median(&flushes).map(|flushes| flushes / self.requests)
    }

    /// The library or the notifier, as chosen by `luc run`.
    fn took(&self) -> &'static str {
        let luc = &self.last(Way::Auto)["luc"];
        match luc["notified"].as_u64() {
            None => "-",
            Some(0) => "the library",
            Some(_) => "the notifier",
        }
    }

    fn ends_well(&self) -> Target {
        let failed: Vec<String> = self
            .runs
            .iter()
            .filter(|(_, run)| run["status"] != 0)
            .map(|(way, run)| format!("{}: {}", way.name(), verdict(&run["said"])))
            .collect();
        let figure = match &failed[..] {
            [] => format!("{} runs", self.runs.len()),
            [first, ..] => format!("{} of {} not; {first}", failed.len(), self.runs.len()),
        };
        let name = self.service.name;
        Target::new(
            format!(
                "{name}: every run ends well, with all that was acknowledged, without an error in a log"
            ),
            failed.is_empty() && !self.runs.is_empty(),
            figure,
        )
    }
}

/// Returns the verdict of a script, which is the end of its output, without the script's path.
fn verdict(said: &Value) -> &str {
    let said = said.as_str().unwrap_or_default();
    let last = said.rsplit("; ").next().unwrap_or_default();
    last.rsplit('/').next().unwrap_or_default()
}

/// Describes the parts of a call's time by `luc explain`, the largest first. Parts of its own commit are summed.
fn takers(recorded: &Value) -> String {
    let calls = recorded["syncs"].as_f64().unwrap_or(0.0);
    let Some(parts) = recorded["parts"].as_object().filter(|_| calls > 0.0) else {
        return "no call".to_owned();
    };
    let mut shares: Vec<(&str, f64)> = Vec::new();
    for (part, ns) in parts {
        let name = match &**part {
            "start" | "locking" | "flushing" | "logging" | "done" => "own commit",
            "data_writeback" => "data",
            "runnable" | "running" => "processor",
            other => other,
        };
        let ns = ns.as_f64().unwrap_or(0.0);
        match shares.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += ns,
            None => shares.push((name, ns)),
        }
    }
    let all: f64 = shares.iter().map(|(_, ns)| ns).sum();
    shares.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let words: Vec<String> = shares
        .iter()
        .filter(|(_, ns)| *ns >= MIN_SHARE * all)
        .map(|(name, ns)| format!("{} {:.0} %", name.replace('_', " "), ns / all * 100.0))
        .collect();
    format!("{} ms: {}", number(all / calls / 1e6), words.join(", "))
}

/// Describes the gate's work on the disk: the share of the calls that it held, for how long, and its decisions.
fn describe_gate(luc: &Value) -> String {
    let Some(calls) = luc["calls"].as_f64() else {
        return "-".to_owned();
    };
    if calls == 0.0 {
        return "saw no call".to_owned();
    }
    let held = luc["gated"].as_f64().unwrap_or(0.0);
    let mut words = vec![format!("held {:.0} % of {calls:.0} calls", held / calls * 100.0)];
    if let Some(us) = luc["mean_wait_us"].as_f64() {
        words[0] += &format!(", {} ms each", number(us / 1e3));
    }
    for (key, of) in [("decision", "commits"), ("flush_decision", "flushes")] {
        let decision = &luc[key];
        let text = |key: &str| decision[key].as_str().unwrap_or_default();
        if !text("state").is_empty() {
            words.push(format!("{of}: {}, {}", text("state"), text("reason")));
        }
    }
    words.join("; ")
}

/// Lists programs with the number of their processes.
fn unreached(programs: &Value) -> String {
    let programs = programs.as_object().into_iter().flatten();
    let names: Vec<String> = programs.map(|(name, count)| format!("{name} ({count})")).collect();
    if names.is_empty() {
        return "-".to_owned();
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::catalogue::SERVICES;
    use super::*;

    fn outcome(auto: f64, status: i32) -> ServiceOutcome {
        let run = |seconds: f64, status: i32| {
            json!({ "seconds": seconds, "status": status, "flushes": 140, "said": "lost",
                    "luc": { "notified": 8, "calls": 10, "gated": 5.0, "unreached": { "postgres": 8 } } })
        };
        let repeat = || [(Way::Stock, run(10.0, 0)), (Way::Auto, run(auto, 0))];
        let mut runs: Vec<(Way, Value)> = (0..10).flat_map(|_| repeat()).collect();
        runs.push((Way::Auto, run(99.0, status)));
        ServiceOutcome {
            service: &SERVICES[0],
            version: "1".to_owned(),
            requests: 70.0,
            runs,
            parts: Value::Null,
        }
    }

    #[test]
    fn what_is_slower_or_fails_meets_no_target() {
        let met = |auto, status| -> Vec<_> {
            let page = page(&[outcome(auto, status)], 2);
            page.targets.iter().map(|target| target.met).collect()
        };
        assert_eq!(met(5.0, 1), [Some(true), Some(true), Some(false)]);
        assert_eq!(met(11.0, 1), [Some(false), Some(false), Some(false)]);
        let mut good = outcome(5.0, 0);
        good.runs.pop();
        assert!(page(&[good], 2).targets.iter().all(|target| target.met == Some(true)));
    }

    #[test]
    fn figures_are_of_runs_that_ended_well() {
        let outcome = outcome(5.0, 1);
        assert_eq!(outcome.gain(Way::Auto).map(|gain| gain.ratio), Some(2.0));
        assert_eq!(outcome.flushes_per_request(Way::Stock), Some(2.0));
        assert_eq!(outcome.took(), "the notifier");
        assert!(outcome.gain(Way::Notified).is_none());
    }

    #[test]
    fn a_script_s_verdict_is_its_last_line() {
        let said = json!("/x/y/log:[error] a; b; /x/y/rabbitmq.sh: the log has errors");
        assert_eq!(verdict(&said), "rabbitmq.sh: the log has errors");
        assert_eq!(verdict(&Value::Null), "");
    }

    #[test]
    fn what_took_the_time_is_in_order() {
        let recorded = json!({ "syncs": 2, "parts": {
            "flush": 2_000_000, "start": 1_000_000, "logging": 7_000_000, "lock": 1,
        }});
        assert_eq!(takers(&recorded), "5.00 ms: own commit 80 %, flush 20 %");
        assert_eq!(takers(&json!({ "syncs": 0, "parts": {} })), "no call");
    }

    #[test]
    fn what_the_gate_said() {
        let luc = json!({ "calls": 200.0, "gated": 50.0, "mean_wait_us": 1500.0, "flush_decision": null,
                          "decision": { "state": "aside", "reason": "only one caller at a time" } });
        assert_eq!(
            describe_gate(&luc),
            "held 25 % of 200 calls, 1.50 ms each; commits: aside, only one caller at a time"
        );
        assert_eq!(describe_gate(&json!({ "calls": 0.0 })), "saw no call");
        assert_eq!(describe_gate(&Value::Null), "-");
        assert_eq!(unreached(&json!({ "lmtp": 8 })), "lmtp (8)");
        assert_eq!(unreached(&json!({})), "-");
    }
}
