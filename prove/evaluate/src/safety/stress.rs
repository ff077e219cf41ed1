//! Part `kernel-stress`: other operations of file systems, which must give the same results with and without `luc.ko`.

use std::collections::BTreeMap;
use std::time::Duration;

use luc_harness::cells;
use luc_harness::report::{Page, Table, Target};
use serde_json::{Value, json};

use super::guest::{Guests, warnings};
use crate::error::EvaluateError;
use crate::guests::succeed;
use crate::harness::{Harness, array, elements, missing};
use crate::progress::Progress;
use crate::runs::Runs;

/// Settings. The first is compared with the others.
const SETTINGS: [(&str, &str); 5] = [
    ("stock", ""),
    ("off", "policy=off copy_out=off"),
    ("delay and copy-out", "policy=delay copy_out=on"),
    ("pid and copy-out", "policy=pid copy_out=on"),
    ("auto", "policy=auto copy_out=auto"),
];
const VERSION: &str = "6.1";
/// Timeout of a boot with all cases.
const BOOT_TIMEOUT: Duration = Duration::from_secs(3600);
/// Tools beside those of every guest.
const TOOLS: [&str; 7] = ["stress-ng", "fallocate", "fsfreeze", "dd", "truncate", "sync", "stat"];

/// For each case its exit status, the checker's, and the digest of its tree.
type Results = BTreeMap<String, [String; 3]>;

fn boot(harness: &Harness, guests: &Guests, module: &str) -> Result<Value, EvaluateError> {
    let vm = TOOLS.into_iter().fold(guests.machine(BOOT_TIMEOUT), |vm, tool| vm.program(tool));
    let vm = vm
        .module("quota_v2")
        .variable("MODULE", module)
        .variable("SEED", &harness.options.seed.to_string())
        .variable("ONLY", harness.options.only.as_deref().unwrap_or(""))
        .script(include_str!("stress.sh"));
    let outcome = succeed(&vm, "file system stress in a guest")?;
    let results = outcome.file("results").unwrap_or_default();
    Ok(json!({
        "release": guests.release(), "results": results.lines().collect::<Vec<_>>(), "said": outcome.text(),
        "warnings": warnings(&outcome), "wall_s": outcome.wall.as_secs(),
    }))
}

fn results(value: &Value) -> Result<Results, EvaluateError> {
    let lines = array(&value["results"], "results")?;
    let parse = |line: &Value| {
        let mut words = line.as_str()?.split_whitespace().map(str::to_owned);
        Some((words.next()?, [words.next()?, words.next()?, words.next()?]))
    };
    lines.iter().map(|line| parse(line).ok_or_else(|| missing("a result"))).collect()
}

pub(crate) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let guests = Guests::prepare(harness, VERSION)?;
    let runs = Runs::open(harness);
    let mut progress = Progress::new(harness.part, SETTINGS.len());
    let mut table = Table::new(&[
        "setting",
        "cases",
        "passed",
        "clean for e2fsck",
        "same as stock",
        "warnings",
    ]);
    let mut cases = Table::new(&["case", "status", "e2fsck", "differs from stock with"]);
    let mut targets = Vec::new();
    let mut all: Vec<(&str, Results)> = Vec::new();
    for (name, module) in SETTINGS {
        let key = json!({ "setting": name, "only": harness.options.only });
        let result = runs.get(&key, || boot(harness, &guests, module))?;
        let found = results(&result)?;
        let stock = all.first().map_or(&found, |(_, stock)| stock);
        let same = found.iter().filter(|(case, result)| stock.get(*case) == Some(*result)).count();
        let count = |index: usize| found.values().filter(|result| result[index] == "0").count();
        let warned = elements(&result["warnings"]).len();
        let figures = [found.len(), count(0), count(1), same, warned];
        table
            .row([vec![name.to_owned()], figures.map(|figure| figure.to_string()).into()].concat());
        progress
            .step(&format!("{name}: {same} of {} cases as stock, {warned} warnings", found.len()));
        let good =
            same == stock.len() && count(1) == found.len() && warned == 0 && !found.is_empty();
        let figure =
            format!("{same} of {} cases, {} clean, {warned} warnings", stock.len(), count(1));
        targets.push(Target::new(
            format!("{name}: results as stock, clean, no warning"),
            good,
            figure,
        ));
        all.push((name, found));
    }
    let stock = all.first().map(|(_, stock)| stock.clone()).unwrap_or_default();
    for (case, result) in &stock {
        let others: Vec<&str> = all
            .iter()
            .filter(|(_, found)| found.get(case) != Some(result))
            .map(|(name, _)| *name)
            .collect();
        cases.row(cells![case, result[0], result[1], others.join(", ")]);
    }
    Ok(Page {
        title: "Stress of a file system under luc.ko".to_owned(),
        about: format!(
            "In a virtual machine with Linux {}, each case runs on a fresh ext4 on a lagdisk: fixed series of \
             creating, writing, renaming, linking, unlinking, truncating, allocating, punching and syncing in \
             four folders at a time in each data mode; direct I/O, freezing and thawing, remounting, a full \
             disk, a full journal, quotas, fast commits, no journal; and stress-ng's stressors of file systems, \
             which verify what they do. A result is the exit status, the checker's status, and a digest of the \
             tree that is left. (xfstests is not in the distribution.)",
            guests.release()
        ),
        tables: vec![
            ("Each setting:".to_owned(), table),
            ("Each case, without the module:".to_owned(), cases),
        ],
        targets,
    })
}
