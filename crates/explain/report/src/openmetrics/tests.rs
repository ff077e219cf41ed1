//! Reads the text strictly by the specification.

use std::collections::{HashMap, HashSet};

use luc_events::{Cgroup, Tgid};
use luc_explain::{Actor, DiskContention, DiskReport, DiskTask, TaskSlowdown, TimeAccount};
use proptest::prelude::*;

use super::*;
use crate::random_traces::{events, exported};

type Labeled = Vec<(String, String)>;
type Sample = (String, Labeled, f64);

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Parses a line into name, labels and value.
fn sample(line: &str) -> Sample {
    let end = line.find(['{', ' ']).expect("a name ends");
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name), "{line}");
    let mut labels = Vec::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        loop {
            let (label, after) = rest.split_once("=\"").expect("a label");
            assert!(is_name(label), "{line}");
            let mut value = String::new();
            let mut chars = after.char_indices();
            let end = loop {
                match chars.next().expect("a quoted value ends") {
                    (_, '\\') => match chars.next().expect("an escape").1 {
                        'n' => value.push('\n'),
                        c @ ('\\' | '"') => value.push(c),
                        c => panic!("escape {c} in {line}"),
                    },
                    (end, '"') => break end,
                    (_, c) => value.push(c),
                }
            };
            labels.push((label.to_owned(), value));
            rest = &after[end + 1..];
            match rest.strip_prefix(',') {
                Some(more) => rest = more,
                None => break,
            }
        }
        rest = rest.strip_prefix('}').expect("labels end");
    }
    let value = rest.strip_prefix(' ').expect("one space");
    (name.to_owned(), labels, value.parse().expect("a number"))
}

/// Checks the text by the specification. Returns its samples.
fn check(text: &str) -> Vec<Sample> {
    let body = text.strip_suffix("# EOF\n").expect("it ends with EOF");
    assert!(!body.contains("# EOF"));
    let (mut families, mut seen) = (HashSet::new(), HashSet::new());
    let (mut family, mut kind) = (String::new(), String::from("unknown"));
    let mut samples = Vec::new();
    for line in body.lines() {
        if let Some(about) = line.strip_prefix("# ") {
            let words: Vec<&str> = about.splitn(3, ' ').collect();
            let [what, name, value] = words[..] else {
                panic!("{line}");
            };
            match what {
                "TYPE" => {
                    assert_eq!(name, family, "{line}");
                    value.clone_into(&mut kind);
                    let of_another_type = ["_total", "_info", "_bucket", "_sum", "_count"];
                    assert!(!of_another_type.iter().any(|suffix| name.ends_with(suffix)), "{line}");
                    // What readers of the older format know.
                    assert!(["counter", "gauge", "histogram"].contains(&value), "{line}");
                }
                "UNIT" => assert!(name == family && name.ends_with(&format!("_{value}")), "{line}"),
                "HELP" => {
                    assert!(!value.contains(['\\', '\n']), "{line}");
                    assert!(is_name(name) && families.insert(name.to_owned()), "{line}");
                    (family, kind) = (name.to_owned(), String::from("unknown"));
                }
                _ => panic!("{line}"),
            }
            continue;
        }
        let found = sample(line);
        let suffix = found.0.strip_prefix(&family).expect("its family's name");
        let allowed: &[&str] = match kind.as_str() {
            "counter" => &["_total"],
            "gauge" => &[""],
            "histogram" => &["_bucket", "_count", "_sum"],
            "unknown" => &[""],
            kind => panic!("type {kind}"),
        };
        assert!(allowed.contains(&suffix), "{line}");
        let names: HashSet<_> = found.1.iter().map(|label| &label.0).collect();
        assert_eq!(names.len(), found.1.len(), "{line}");
        assert!(seen.insert((found.0.clone(), found.1.clone())), "twice: {line}");
        if kind == "counter" || kind == "histogram" {
            assert!(found.2 >= 0.0, "{line}");
        }
        samples.push(found);
    }
    histograms(&samples);
    samples
}

/// Buckets grow, the last is infinite and equal to the count.
fn histograms(samples: &[Sample]) {
    let mut last: HashMap<(String, Labeled), (f64, f64)> = HashMap::new();
    for (name, labels, value) in samples {
        if let Some(family) = name.strip_suffix("_bucket") {
            let mut labels = labels.clone();
            let (label, edge) = labels.pop().expect("an edge");
            assert_eq!(label, "le");
            let edge = edge.replace("+Inf", "inf").parse::<f64>().expect("a number");
            let entry = last.entry((family.to_owned(), labels));
            let last = entry.or_insert((f64::NEG_INFINITY, 0.0));
            assert!(last.0 < edge && last.1 <= *value, "{name} {edge}");
            *last = (edge, *value);
        } else if let Some(family) = name.strip_suffix("_count") {
            let (edge, count) = last[&(family.to_owned(), labels.clone())];
            assert_eq!((edge, count), (f64::INFINITY, *value));
        }
    }
}

/// Checks Prometheus' format, where a family has the name of its samples, except for histograms.
fn check_old(text: &str) -> Vec<Sample> {
    let (mut family, mut kind) = (String::new(), "");
    let mut samples = Vec::new();
    for line in text.lines() {
        if let Some(about) = line.strip_prefix("# ") {
            let words: Vec<&str> = about.splitn(3, ' ').collect();
            match words[..] {
                ["HELP", name, _] => (family, kind) = (name.to_owned(), ""),
                ["TYPE", name, value] => {
                    assert_eq!(name, family);
                    assert!(["counter", "gauge", "histogram"].contains(&value), "{line}");
                    kind = value;
                }
                _ => panic!("{line}"),
            }
            continue;
        }
        let found = sample(line);
        let suffix = found.0.strip_prefix(&family).expect("its family's name");
        let is_right = match kind {
            "histogram" => ["_bucket", "_count", "_sum"].contains(&suffix),
            "counter" => suffix.is_empty() && family.ends_with("_total"),
            _ => suffix.is_empty(),
        };
        assert!(is_right, "{line}");
        samples.push(found);
    }
    histograms(&samples);
    samples
}

/// Computes the median as Prometheus' `histogram_quantile(0.5, sum by (le) (...))` does.
fn median_of_sum(samples: &[Sample]) -> f64 {
    let mut sums: Vec<(f64, f64)> = Vec::new();
    for (_, labels, value) in samples.iter().filter(|one| one.0.ends_with("_bucket")) {
        let edge = &labels.last().expect("an edge").1;
        let edge: f64 = edge.replace("+Inf", "inf").parse().expect("a number");
        match sums.iter_mut().find(|sum| sum.0 == edge) {
            Some(sum) => sum.1 += value,
            None => sums.push((edge, *value)),
        }
    }
    sums.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = sums.last().expect("buckets").1 / 2.0;
    let at = sums.iter().position(|sum| sum.1 >= half).expect("the last");
    let (from, below) = if at == 0 { (0.0, 0.0) } else { sums[at - 1] };
    from + (sums[at].0 - from) * (half - below) / (sums[at].1 - below)
}

#[test]
fn sums_of_histograms_have_right_quantiles() {
    let mut families = MetricFamilies::default();
    // 100 calls of 12 ms on one file system, 1 of 300 ms on another.
    for (device, buckets) in [("1", vec![(12_000_000, 100)]), ("2", vec![(300_000_000, 1)])] {
        let latency = LatencyDistribution { buckets, ..LatencyDistribution::default() };
        let labels = MetricLabels::new().with("device", device);
        histogram(&mut families, "luc_x_seconds", "X.", &labels, &latency);
    }
    let samples = check(&families.text(MetricFormat::OpenMetrics));
    let median = median_of_sum(&samples);
    assert!((0.008..0.017).contains(&median), "{median}");
}

proptest! {
    #[test]
    fn any_report_gives_good_metrics(events in events()) {
        let (text, report) = exported(events, |_, out| OpenMetricsWriter(out));
        let samples = check(std::str::from_utf8(&text).unwrap());
        let syncs: u64 = report.file_systems.iter().map(|found| found.syncs.latency.count).sum();
        let counted = samples.iter().filter(|sample| sample.0 == "luc_sync_duration_seconds_count");
        prop_assert_eq!(counted.map(|sample| sample.2).sum::<f64>(), syncs as f64);
        let old = check_old(&super::text(&report, MetricFormat::Prometheus));
        prop_assert_eq!(&old, &samples);
        let host = samples.iter().find(|sample| sample.0 == "luc_trace_info").unwrap();
        prop_assert_eq!(&host.1[0].1, &report.trace.host);
    }
}

#[test]
fn cgroups_beyond_the_first_are_summed() {
    let account = |cgroup| TimeAccount {
        cgroup: Cgroup(cgroup),
        user_ns: 1_000_000_000,
        ..TimeAccount::default()
    };
    let mut report = TraceReport::default();
    report.accounts.cgroups = (1..=150).map(account).collect();
    let samples = check(&text(&report, MetricFormat::OpenMetrics));
    let user: Vec<_> = samples
        .iter()
        .filter(|sample| sample.1.contains(&("state".to_owned(), "user".to_owned())))
        .collect();
    assert_eq!(user.len(), MAX_SERIES + 1);
    assert_eq!(user.iter().map(|sample| sample.2).sum::<f64>(), 150.0);
    assert_eq!(user[MAX_SERIES].1[0].1, "other");
}

/// A task of a cgroup: a second of the device for 100 requests of 30 ms.
fn task(process: u32, cgroup: u64) -> DiskTask {
    DiskTask {
        actor: Actor { process: Tgid(process), cgroup: Cgroup(cgroup), ..Actor::default() },
        device_ns: 1_000_000_000,
        requests: 100,
        await_ns: 30_000_000,
        switch_ns: 500_000_000,
        ..DiskTask::default()
    }
}

#[test]
fn what_tasks_use_of_a_shared_disk_is_summed_by_cgroup() {
    let journal = DiskTask { is_kernel: true, ..task(3, 0) };
    let tasks = vec![task(1, 7), task(2, 7), task(4, 8), journal];
    let slowed = |victim: usize, culprit: usize, waited_ns| TaskSlowdown {
        victim: tasks[victim].actor.clone(),
        culprit: tasks[culprit].actor.clone(),
        waited_ns,
        switches: 1,
        switch_ns: 0,
    };
    let slowed = vec![slowed(0, 2, 2_000_000_000), slowed(1, 2, 1_000_000_000), slowed(2, 0, 0)];
    let report = TraceReport {
        disks: vec![DiskReport {
            contention: Some(DiskContention {
                gain: 4.0,
                tasks,
                slowed,
                ..DiskContention::default()
            }),
            ..DiskReport::default()
        }],
        ..TraceReport::default()
    };
    let samples = check(&text(&report, MetricFormat::OpenMetrics));
    let values = |name: &str| {
        let of = samples.iter().filter(|(found, ..)| found == name);
        of.map(|(.., value)| *value).collect::<Vec<f64>>()
    };
    assert_eq!(values("luc_disk_turns_predicted_gain_ratio"), [4.0]);
    assert_eq!(values("luc_disk_cgroup_device_seconds_total"), [2.0, 1.0]);
    assert_eq!(values("luc_disk_cgroup_await_seconds_total"), [6.0, 3.0]);
    assert_eq!(values("luc_disk_cgroup_switch_seconds_total"), [1.0, 0.5]);
    assert_eq!(values("luc_disk_waited_seconds_total"), [3.0]);
}
