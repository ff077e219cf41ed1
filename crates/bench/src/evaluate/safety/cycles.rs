//! Part `kernel-cycles`: `luc.ko` comes and goes under load, and nothing stays behind.

use std::collections::BTreeMap;
use std::time::Duration;

use luc_vm::Outcome;
use serde_json::{Value, json};

use super::guest::{Guests, succeed, warnings};
use super::resume::Runs;
use crate::evaluate::error::EvaluateError;
use crate::evaluate::lab::{Lab, missing};
use crate::evaluate::progress::Progress;
use crate::evaluate::report::{Page, Table, Target};

/// Cycles of one boot.
const CHUNK: u64 = 250;
/// Kernels and how many boots of each: 1,000 cycles.
const BOOTS: [(&str, u64); 2] = [("6.1", 3), ("6.12", 1)];
/// What a boot may take.
const LIMIT: Duration = Duration::from_secs(3600);
/// Growth of the kernel's memory that is noise: less than half a page for each cycle.
const NOISE_KIB: i64 = 2 * CHUNK as i64;

/// One boot.
fn boot(guests: &Guests, cycles: u64, seed: u64) -> Result<Value, EvaluateError> {
    let vm = guests
        .machine(LIMIT)
        .variable("CYCLES", &cycles.to_string())
        .variable("SEED", &seed.to_string())
        .script(include_str!("cycles.sh"));
    let outcome = succeed(&vm, "loading and unloading luc.ko in a guest")?;
    let number = |name: &str| {
        let text = outcome.file(name).unwrap_or_default();
        text.trim().parse::<f64>().map_err(|_| missing(name))
    };
    let (before, after) = (number("memory_kib.before")?, number("memory_kib.after")?);
    Ok(json!({
        "release": guests.release(), "cycles": cycles, "holds": number("holds")?, "copies": number("copies")?,
        "memory_kib_before": before, "memory_kib_after": after, "growing_caches": growing(&outcome, cycles),
        "warnings": warnings(&outcome), "wall_s": outcome.wall.as_secs(),
    }))
}

/// Slab caches with at least one more object for each cycle: what a leak in each cycle looks like. (The kernel
/// counts a cache's objects by whole slabs, so a few cycles more or less say nothing.)
fn growing(outcome: &Outcome, cycles: u64) -> BTreeMap<String, i64> {
    let objects = |name: &str| -> BTreeMap<String, i64> {
        let text = outcome.file(name).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        lines
            .filter_map(|(cache, count)| Some((cache.to_owned(), count.parse().ok()?)))
            .collect()
    };
    let before = objects("slab.before");
    let more = |(cache, after): (String, i64)| {
        let growth = after - before.get(&cache).copied().unwrap_or(0);
        (growth >= cycles.max(CHUNK) as i64).then_some((cache, growth))
    };
    objects("slab.after").into_iter().filter_map(more).collect()
}

pub(in crate::evaluate) fn run(lab: &Lab) -> Result<Page, EvaluateError> {
    let wanted: Vec<_> = BOOTS
        .iter()
        .filter(|(version, _)| lab.options.wants(version))
        .collect();
    let runs = Runs::open(lab);
    let mut progress = Progress::new(
        lab.part,
        wanted.iter().map(|(_, boots)| *boots as usize).sum(),
    );
    let mut table = Table::new(&[
        "kernel",
        "cycles",
        "commits held",
        "copies",
        "memory before, KiB",
        "after",
        "caches that grew",
        "warnings",
    ]);
    let (mut cycles, mut warned, mut grown, mut most_kib) = (0, 0, 0, 0);
    for (version, boots) in wanted {
        let guests = Guests::prepare(lab, version)?;
        for boot_number in 0..*boots {
            let seed = lab.options.seed + boot_number;
            let each = lab.options.cuts.map_or(CHUNK, |cuts| cuts.min(CHUNK));
            let key = json!({ "kernel": version, "boot": boot_number, "cycles": each });
            let result = runs.get(&key, || boot(&guests, each, seed))?;
            let number = |name: &str| {
                result[name]
                    .as_f64()
                    .map(|value| value as i64)
                    .ok_or_else(|| missing(name))
            };
            let (before, after) = (number("memory_kib_before")?, number("memory_kib_after")?);
            let growing = result["growing_caches"]
                .as_object()
                .map_or(0, serde_json::Map::len);
            let warnings = result["warnings"].as_array().map_or(0, Vec::len);
            cycles += number("cycles")?;
            warned += warnings;
            grown += growing;
            most_kib = most_kib.max(after - before);
            table.row(vec![
                result["release"].as_str().unwrap_or_default().to_owned(),
                number("cycles")?.to_string(),
                number("holds")?.to_string(),
                number("copies")?.to_string(),
                before.to_string(),
                after.to_string(),
                growing.to_string(),
                warnings.to_string(),
            ]);
            progress.step(&format!(
                "{version}: {cycles} cycles, memory {before} to {after} KiB, {warnings} warnings"
            ));
        }
    }
    let targets = vec![
        Target::new("at least 1000 cycles", cycles >= 1000, cycles.to_string()),
        Target::new(
            "no warning in any kernel's log",
            warned == 0,
            warned.to_string(),
        ),
        Target::new(
            "no slab cache grows with the cycles",
            grown == 0,
            grown.to_string(),
        ),
        Target::new(
            format!("the kernel's memory is back to its start, {NOISE_KIB} KiB of noise allowed"),
            most_kib <= NOISE_KIB,
            format!("{most_kib} KiB more at most"),
        ),
    ];
    Ok(Page {
        title: "Loading and unloading luc.ko under load".to_owned(),
        about: format!(
            "In a virtual machine eight threads create and fsync files on ext4 while `luc.ko` is loaded, left \
             for up to 130 ms and unloaded, with every policy and every way of copying in turn, and settings \
             changed meanwhile; {CHUNK} cycles in a boot. Memory is what is neither free nor cache nor a \
             program's, with nothing mounted and lagdisk empty, after `drop_caches` and with slabs shrunk, \
             after four cycles and at the end. The file system must be clean for its checker after each boot."
        ),
        tables: vec![("Each boot:".to_owned(), table)],
        targets,
    })
}
