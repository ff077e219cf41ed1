//! Part `truth`: plants known troubles, and compares them with the findings of `luc explain`.

mod cases;
mod judge;
mod limit;
mod priority;

use std::fs;

use serde_json::{Value, json};

use crate::disks::Disk;
use crate::error::EvaluateError;
use crate::groups::{self, Group};
use crate::harness::{Harness, elements, line, missing};
use crate::plant::scene::AND;
use crate::progress::Progress;
use crate::steal::with_stolen_share;
use cases::Case;
use judge::{Actor, Judgement, judge};

/// Slowdown of the disks in each repeat.
const SLOWDOWNS: [f64; 3] = [1.0, 1.5, 2.0];

pub(super) fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let repeats = harness.options.repeats.unwrap_or(2);
    let seconds = harness.options.seconds.unwrap_or(3.0);
    let wanted = |repeat: usize| -> Result<Vec<Case>, EvaluateError> {
        let mut cases = cases::all(SLOWDOWNS[repeat % SLOWDOWNS.len()])?;
        cases.retain(|case| harness.options.wants(&case.name));
        Ok(cases)
    };
    let steps = wanted(0)?.len() * repeats;
    if steps == 0 {
        return Err(harness.options.no_cell());
    }
    let root = groups::root();
    let _first = priority::First::raise();
    let mut progress = Progress::new(harness.part, steps);
    for repeat in 0..repeats {
        for case in wanted(repeat)? {
            let groups = root.as_ref().map_or(Ok(Vec::new()), |root| {
                let numbers = 0..case.roles.len();
                numbers.map(|number| Group::create(root, number)).collect()
            })?;
            let judgements = run_case(harness, &case, &groups, repeat, seconds)?;
            let right = judgements.iter().filter(|found| found.is_right()).count();
            progress.step(&format!("{}: {right} of {} right", case.name, judgements.len()));
        }
    }
    Ok(())
}

/// Plants the trouble, records it, and judges the findings.
fn run_case(
    harness: &Harness,
    case: &Case,
    groups: &[Group],
    repeat: usize,
    seconds: f64,
) -> Result<Vec<Judgement>, EvaluateError> {
    let (trace, model) = (harness.path("trace"), harness.path("model.toml"));
    let mut disks = Vec::new();
    let mut limits = Vec::new();
    for drive in &case.disks {
        if let Some(text) = drive.toml() {
            fs::write(&model, text).map_err(EvaluateError::file("write", &model))?;
        }
        let disk = Disk::create_with(harness, drive.words(&model))?;
        limits.push(limit::Limit::set(&disk.mount, drive.dirty_limit_bytes())?);
        disks.push(disk);
    }
    let mut words: Vec<String> = ["record", "--quiet", "--out"].map(str::to_owned).into();
    words.push(trace.display().to_string());
    for disk in &disks {
        words.extend(["--device".to_owned(), disk.mount.display().to_string()]);
    }
    let myself = harness.options.myself.display().to_string();
    words.extend(["--".to_owned(), myself, "plants".to_owned()]);
    for (number, role) in case.roles.iter().enumerate() {
        if number > 0 {
            words.push(AND.to_owned());
        }
        words.extend(role.words.split_whitespace().map(str::to_owned));
        words.push(disks[role.disk].mount.display().to_string());
        words.extend(["--name".to_owned(), role.name.clone()]);
        words.extend(["--seconds".to_owned(), seconds.to_string()]);
        let seed = harness.options.seed.wrapping_add(repeat as u64);
        words.extend(["--seed".to_owned(), seed.to_string()]);
        if let Some(group) = groups.get(number) {
            words.extend(["--cgroup".to_owned(), group.path.display().to_string()]);
        }
    }
    let (played, stolen_share) = with_stolen_share(|| harness.json(&words))?;
    let explain = ["explain".to_owned(), trace.display().to_string(), "--json".to_owned()];
    let report = harness.json(&explain)?;
    fs::remove_dir_all(&trace).map_err(EvaluateError::file("remove", &trace))?;

    let actors = actors(case, groups, &played)?;
    let mounts: Vec<_> = disks.iter().map(|disk| disk.mount.as_path()).collect();
    let judgements: Result<Vec<Judgement>, EvaluateError> = (case.expected.iter())
        .map(|expected| judge(expected, case, &actors, &mounts, &report))
        .collect();
    let judgements = judgements?;
    harness.keep(json!({
        "case": case.name, "repeat": repeat,
        "disks": case.disks.iter().map(ToString::to_string).collect::<Vec<String>>(),
        "command": line(&harness.luc(&words)), "actors": actors, "stolen_share": stolen_share, "lost": report["lost"],
        "findings": first_findings(&report), "judgements": judgements,
    }));
    Ok(judgements)
}

fn actors(case: &Case, groups: &[Group], played: &Value) -> Result<Vec<Actor>, EvaluateError> {
    let of = |(number, role): (usize, &cases::Role)| {
        let process = played[number]["process"].as_u64();
        Ok(Actor {
            name: role.name.clone(),
            process: process.ok_or_else(|| missing("a program's process"))?,
            cgroup: groups.get(number).map(|group| group.id),
            rounds: played[number]["rounds"].as_u64().unwrap_or(0),
        })
    };
    case.roles.iter().enumerate().map(of).collect()
}

/// Returns the first three findings, without their evidence.
fn first_findings(report: &Value) -> Vec<Value> {
    let findings = elements(&report["findings"]);
    let keys = ["kind", "dev", "share", "cost_ns", "victim", "culprit"];
    let short = |finding: &Value| {
        let pairs = keys.iter().map(|key| ((*key).to_owned(), finding[*key].clone()));
        Value::Object(pairs.collect())
    };
    findings.iter().take(3).map(short).collect()
}
