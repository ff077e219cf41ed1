//! Part `kernel-cycles`: loads and unloads `luc.ko` under load, and checks that nothing is left.

use std::collections::BTreeMap;
use std::time::Duration;

use luc_harness::report::{Page, Table, Target};
use luc_vm::Outcome;
use serde_json::{Value, json};

use super::guest::{Guests, warnings};
use crate::error::EvaluateError;
use crate::guests::succeed;
use crate::harness::{Harness, elements, missing};
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
/// Growth of the kernel's memory that is noise: less than half a page for each cycle.
const MAX_NOISE_KIB_PER_CYCLE: i64 = 2;

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

/// Sums over all boots of luc.ko.
#[derive(Debug, Default)]
struct Sums {
    cycles: i64,
    warned: usize,
    grown: usize,
    /// Maximum growth of the kernel's memory in a boot since the first four cycles, and since the half.
    max_growth_kib: i64,
    max_late_growth_kib: i64,
}

pub(crate) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    // 1. Choose the boots.
    let each = harness.options.cuts.map_or(CHUNK, |cuts| cuts.min(CHUNK));
    let wanted: Vec<_> = BOOTS
        .iter()
        .filter(|(module, version, _)| harness.options.wants(&format!("{module} on {version}")))
        .collect();
    let runs = Runs::open(harness);
    let boots = wanted.iter().map(|(.., boots)| *boots as usize).sum();
    let mut progress = Progress::new(harness.part, boots);
    let mut table = Table::new(&[
        "module",
        "kernel",
        "cycles",
        "commits held",
        "copies",
        "memory after four, KiB",
        "half",
        "all",
        "caches that grew",
        "warnings",
    ]);
    // 2. Boot, and add each boot's row.
    let mut sums = Sums::default();
    for (module, version, boots) in wanted {
        let guests = Guests::prepare(harness, version)?;
        for boot_number in 0..*boots {
            let seed = harness.options.seed + boot_number;
            let key =
                json!({ "module": module, "kernel": version, "boot": boot_number, "cycles": each });
            let result = runs.get(&key, || boot(&guests, module, each, seed))?;
            let row = add(&mut sums, module, &result)?;
            progress.step(&format!(
                "{module} on {version}: memory {} KiB after four cycles, {} after half, {} at the end",
                row[5], row[6], row[7]
            ));
            table.row(row);
        }
    }
    // 3. Compare the growth of memory with the noise.
    let noise_kib = MAX_NOISE_KIB_PER_CYCLE * each as i64;
    let targets = vec![
        Target::new("at least 1000 cycles", sums.cycles >= 1000, sums.cycles.to_string()),
        Target::new("no warning in any kernel's log", sums.warned == 0, sums.warned.to_string()),
        Target::new("no slab cache grows with the cycles", sums.grown == 0, sums.grown.to_string()),
        Target::new(
            format!("the kernel's memory is back to its start, {noise_kib} KiB of noise allowed"),
            sums.max_growth_kib <= noise_kib,
            format!("{} KiB more at most", sums.max_growth_kib),
        ),
        Target::new(
            format!(
                "the second half of the cycles leaves nothing behind, {} KiB of noise allowed",
                noise_kib / 2
            ),
            sums.max_late_growth_kib <= noise_kib / 2,
            format!("{} KiB more at most", sums.max_late_growth_kib),
        ),
    ];
    Ok(Page {
        title: "Loading and unloading luc.ko under load".to_owned(),
        about: format!(
            "In a virtual machine eight threads create and fsync files on ext4 while `luc.ko` is loaded, left \
             for up to 130 ms and unloaded, with every policy and every way of copying in turn, and settings \
             changed meanwhile; {CHUNK} cycles in a boot. Memory is what is neither free nor cache nor a \
             program's, with nothing mounted and lagdisk empty, after `drop_caches` and with slabs shrunk, \
             after four cycles, after half and at the end. The file system must be clean for its checker after each \
             boot. `{OTHER}`, a module of the kernel's own that does nothing while it is loaded, comes and goes as \
             often under the same load: what that leaves is the load's and the loading's own."
        ),
        tables: vec![("Each boot:".to_owned(), table)],
        targets,
    })
}

/// Adds a boot of luc.ko to the sums, and returns the row of any boot.
fn add(sums: &mut Sums, module: &str, result: &Value) -> Result<Vec<String>, EvaluateError> {
    let number = |name: &str| {
        let value = result[name].as_f64();
        value.map(|value| value as i64).ok_or_else(|| missing(name))
    };
    let before = number("memory_kib_before")?;
    let half = number("memory_kib_half")?;
    let after = number("memory_kib_after")?;
    let growing = result["growing_caches"].as_object();
    let grown = growing.map_or(0, serde_json::Map::len);
    let warned = elements(&result["warnings"]).len();
    if module == LUC {
        sums.cycles += number("cycles")?;
        sums.warned += warned;
        sums.grown += grown;
        sums.max_growth_kib = sums.max_growth_kib.max(after - before);
        sums.max_late_growth_kib = sums.max_late_growth_kib.max(after - half);
    }
    Ok(vec![
        module.to_owned(),
        result["release"].as_str().unwrap_or_default().to_owned(),
        number("cycles")?.to_string(),
        number("holds")?.to_string(),
        number("copies")?.to_string(),
        before.to_string(),
        half.to_string(),
        after.to_string(),
        grown.to_string(),
        warned.to_string(),
    ])
}
