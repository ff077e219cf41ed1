//! Part `kernel-cycles`: loads and unloads `luc.ko` under load, and checks that nothing is left.

use std::collections::BTreeMap;
use std::time::Duration;

use luc_vm::Outcome;
use serde_json::{Value, json};

use super::guest::{Guests, warnings};
use crate::error::EvaluateError;
use crate::guests::succeed;
use crate::harness::{Harness, missing};
use crate::progress::Progress;
use crate::runs::Runs;

/// Number of cycles in one boot.
const CHUNK: u64 = 250;
/// Module, kernel and number of boots: 1,000 cycles of luc.ko, and as many in one boot of an unrelated module.
const BOOTS: [(&str, &str, u64); 4] =
    [(LUC, "6.1", 3), (LUC, "6.12", 1), (OTHER, "6.1", 1), (OTHER, "6.12", 1)];
const LUC: &str = "luc";
const OTHER: &str = "crc7";
const BOOT_TIMEOUT: Duration = Duration::from_secs(3600);

fn boot(guests: &Guests, module: &str, cycles: u64, seed: u64) -> Result<Value, EvaluateError> {
    let mut vm = guests.machine(BOOT_TIMEOUT);
    if module != LUC {
        vm = vm.module(module);
    }
    let vm = vm
        .variable("MODULE", module)
        .variable("CYCLES", &cycles.to_string())
        .variable("SEED", &seed.to_string())
        .script(include_str!("cycles.sh"));
    let outcome = succeed(&vm, "loading and unloading luc.ko in a guest")?;
    let number = |name: &str| {
        let text = outcome.file(name).unwrap_or_default();
        text.trim().parse::<f64>().map_err(|_| missing(name))
    };
    let memory = |when: &str| number(&format!("memory_kib.{when}"));
    Ok(json!({
        "release": guests.release(), "module": module, "cycles": cycles, "holds": number("holds")?, "copies": number("copies")?,
        "memory_kib_before": memory("before")?, "memory_kib_half": memory("half")?,
        "memory_kib_after": memory("after")?, "growing_caches": growing(&outcome, cycles),
        "warnings": warnings(&outcome), "wall_s": outcome.wall.as_secs(),
    }))
}

/// Returns slab caches with at least one more object for each cycle, as after a leak in each cycle. (The kernel counts
/// a cache's objects by whole slabs, so a few cycles more or less say nothing.)
fn growing(outcome: &Outcome, cycles: u64) -> BTreeMap<String, i64> {
    let objects = |name: &str| -> BTreeMap<String, i64> {
        let text = outcome.file(name).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.filter_map(|(cache, count)| Some((cache.to_owned(), count.parse().ok()?))).collect()
    };
    let before = objects("slab.before");
    let more = |(cache, after): (String, i64)| {
        let growth = after - before.get(&cache).copied().unwrap_or(0);
        (growth >= cycles.max(CHUNK) as i64).then_some((cache, growth))
    };
    objects("slab.after").into_iter().filter_map(more).collect()
}

pub(crate) fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let each = harness.options.cuts.map_or(CHUNK, |cuts| cuts.min(CHUNK));
    let wanted: Vec<_> = BOOTS
        .iter()
        .filter(|(module, version, _)| harness.options.wants(&format!("{module} on {version}")))
        .collect();
    let runs = Runs::open(harness);
    let boots = wanted.iter().map(|(.., boots)| *boots as usize).sum();
    let mut progress = Progress::new(harness.part, boots);
    for (module, version, boots) in wanted {
        let guests = Guests::prepare(harness, version)?;
        for boot_number in 0..*boots {
            let seed = harness.options.seed + boot_number;
            let key =
                json!({ "module": module, "kernel": version, "boot": boot_number, "cycles": each });
            let result = runs.get(&key, || boot(&guests, module, each, seed))?;
            progress.step(&format!(
                "{module} on {version}: memory {} KiB after four cycles, {} after half, {} at the end",
                result["memory_kib_before"], result["memory_kib_half"], result["memory_kib_after"]
            ));
        }
    }
    Ok(())
}
