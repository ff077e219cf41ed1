//! Part `kernel-stress`: other operations of file systems, which must give the same results with and without `luc.ko`.

use std::time::Duration;

use serde_json::{Value, json};

use super::guest::{Guests, warnings};
use crate::error::EvaluateError;
use crate::guests::succeed;
use crate::harness::{Harness, array, elements};
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

pub(crate) fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let guests = Guests::prepare(harness, VERSION)?;
    let runs = Runs::open(harness);
    let mut progress = Progress::new(harness.part, SETTINGS.len());
    for (name, module) in SETTINGS {
        let key = json!({ "setting": name, "only": harness.options.only });
        let result = runs.get(&key, || boot(harness, &guests, module))?;
        let cases = array(&result["results"], "results")?.len();
        let warned = elements(&result["warnings"]).len();
        progress.step(&format!("{name}: {cases} cases, {warned} warnings"));
    }
    Ok(())
}
