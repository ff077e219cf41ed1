//! Part `truth`: plants known troubles, and compares them with the findings of `luc explain`.

mod cases;
mod judge;
mod limit;
mod priority;

use std::fs;

use luc_harness::cells;
use luc_harness::report::{Page, Table, Target, or_dash};
use serde_json::{Value, json};

use crate::disks::Disk;
use crate::error::EvaluateError;
use crate::groups::{self, Group};
use crate::harness::{Harness, elements, line, missing};
use crate::plant::scene::AND;
use crate::progress::Progress;
use crate::steal::with_stolen_share;
use cases::{Case, Expected};
use judge::{Actor, Judgement, MAX_KNOWN_ERROR, judge};

/// Slowdown of the disks in each repeat.
const SLOWDOWNS: [f64; 3] = [1.0, 1.5, 2.0];

struct CaseRow {
    case: &'static str,
    planted: String,
    judgement: Judgement,
}

pub(super) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let repeats = harness.options.repeats.unwrap_or(2);
    let seconds = harness.options.seconds.unwrap_or(3.0);
    let wanted = |repeat: usize| {
        let cases = cases::all(SLOWDOWNS[repeat % SLOWDOWNS.len()]);
        let wanted = |case: &Case| harness.options.wants(case.name);
        cases.into_iter().filter(wanted).collect::<Vec<Case>>()
    };
    let steps = wanted(0).len() * repeats;
    if steps == 0 {
        return Err(harness.options.no_cell());
    }
    let root = groups::root();
    let _first = priority::First::raise();
    let mut progress = Progress::new(harness.part, steps);
    let mut rows = Vec::new();
    for repeat in 0..repeats {
        for case in wanted(repeat) {
            let groups = root.as_ref().map_or(Ok(Vec::new()), |root| {
                let numbers = 0..case.roles.len();
                numbers.map(|number| Group::create(root, number)).collect()
            })?;
            let judgements = run_case(harness, &case, &groups, repeat, seconds)?;
            let right = judgements.iter().filter(|found| found.is_right()).count();
            progress.step(&format!("{}: {right} of {} right", case.name, judgements.len()));
            let of = case.expected.iter().zip(judgements);
            rows.extend(of.map(|(expected, judgement)| CaseRow {
                case: case.name,
                planted: describe_plant(&case, expected),
                judgement,
            }));
        }
    }
    Ok(page(&rows, repeats, seconds, root.is_some()))
}

/// Describes the disk and the programs on it.
fn describe_plant(case: &Case, expected: &Expected) -> String {
    let on = expected.disk.unwrap_or(0);
    let roles = case.roles.iter().filter(|role| role.disk == on);
    let roles: Vec<String> = roles.map(|role| format!("{}: `{}`", role.name, role.words)).collect();
    format!("{}; {}", case.disks[on], roles.join(", "))
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
        limits.push(limit::Limit::set(&disk.mount, drive.dirty_limit_bytes)?);
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
        words.extend(["--name".to_owned(), role.name.to_owned()]);
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
            name: role.name,
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

fn page(rows: &[CaseRow], repeats: usize, seconds: f64, has_groups: bool) -> Page {
    let mut table = Table::new(&[
        "case",
        "planted",
        "first finding",
        "share",
        "victim named",
        "culprit named",
        "figure that the disk determines",
        "right",
    ]);
    for row in rows {
        let found = &row.judgement;
        table.row(cells![
            row.case,
            row.planted,
            found.finding,
            format!("{:.0} %", found.share * 100.0),
            found.victim,
            found.culprit,
            or_dash(found.known.as_ref()),
            if found.is_right() {
                "yes".to_owned()
            } else {
                format!("**no**: {}", found.wrong.join(", "))
            }
        ]);
    }
    let count = |holds: &dyn Fn(&Judgement) -> bool| {
        rows.iter().filter(|row| holds(&row.judgement)).count()
    };
    let right = |what: &str, good: usize, all: usize| {
        Target::new(what, good == all && all > 0, format!("{good} of {all}"))
    };
    let known = count(&|found| found.known.is_some());
    let close = count(&|found| found.known.as_ref().is_some_and(judge::Known::is_close));
    Page {
        title: "Planted troubles, and what is said of them".to_owned(),
        about: format!(
            "Programs with one known trouble each run for {seconds} s on emulated disks with known latencies, under `luc record`; \
             then `luc explain` says what it finds. Each case {repeats} times, with other seeds and each time slower disks. \
             A judgement is right if the first finding on the file system is what was planted, and the victim and the culprit \
             that the plant has are named by their process{}. Where the disk alone determines a part of the split, that of the quickest \
             tenth is compared; {:.0} % is allowed. With several threads on fast_commit that is the commit, not what a caller \
             waits: one that comes while another's fast commit is under way waits for the rest of that one only, and ext4 takes \
             it for served (`ext4_fc_commit`), even if that commit's blocks were written before. Programs and disks run at the highest priority, so that a machine that has other work to do is \
             not what is found.",
            if has_groups {
                " and cgroup"
            } else {
                "; there is no cgroup v2 here to tell apart, too"
            },
            MAX_KNOWN_ERROR * 100.0
        ),
        tables: vec![("Every judgement:".to_owned(), table)],
        targets: vec![
            right(
                "the first finding is the planted one",
                count(&|found| found.is_kind_right),
                rows.len(),
            ),
            right(
                "victim and culprit are those planted",
                count(&|found| found.are_parties_right),
                rows.len(),
            ),
            right(
                "parts of the split that the disk determines are what they must be",
                close,
                known,
            ),
        ],
    }
}
