//! Part `kernels`: all of LUC on kernels of several distributions and years.

use std::time::Duration;

use luc_vm::Mode;
use serde_json::{Value, json};

use crate::error::EvaluateError;
use crate::guests::succeed;
use crate::harness::{Harness, parse};
use crate::progress::Progress;
use crate::runs::Runs;
use crate::safety::guest::{Guests, warnings};

/// Kernels, and their preemption modes in the runs for the gain. The first mode is the kernel's default.
const KERNELS: [(&str, &[&str]); 5] = [
    ("6.1", &["voluntary", "full"]),
    ("6.12", &["voluntary", "full"]),
    ("6.17", &["voluntary", "lazy", "full"]),
    ("7.0", &["lazy", "full"]),
    ("7.3", &["lazy", "full"]),
];
const CUTS: u64 = 30;
/// Number of synchronous writes of each of four writers, and of single-byte writes to each of four pipes.
const WRITES: u64 = 200;
const BYTES: u64 = 3000;
/// Number of runs of each policy in a boot, of 1.3 s each.
const ROUNDS: u64 = 3;
/// Timeout of a boot. A busy machine takes many times longer than an idle one.
const BOOT_TIMEOUT: Duration = Duration::from_secs(3600);

/// Returns the lines `NAME: VALUE` of a guest's output, in their order.
fn values(text: &str) -> Vec<(String, String)> {
    let pairs = text.lines().filter_map(|line| line.split_once(": "));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn functions(guests: &Guests, cuts: u64) -> Result<Value, EvaluateError> {
    let vm = guests
        .machine(BOOT_TIMEOUT)
        .program("mke2fs")
        .program("dd")
        .variable("CUTS", &cuts.to_string())
        .variable("WRITES", &WRITES.to_string())
        .variable("BYTES", &BYTES.to_string())
        .script(include_str!("../../../crates/luc/tests/e2e/kernels/guest.sh"));
    let outcome = succeed(&vm, "all of luc in a guest")?;
    let report = outcome.file("cuts.json").unwrap_or_default();
    let report: Value = parse(&report, "the report of luc powercut")?;
    Ok(json!({
        "said": values(&outcome.text()), "cuts": report, "warnings": warnings(&outcome), "wall_s": outcome.wall.as_secs(),
    }))
}

/// Measures the files per boot and policy, in virtual time.
fn gain(guests: &Guests, preemption: &str) -> Result<Value, EvaluateError> {
    let vm = guests
        .machine(BOOT_TIMEOUT)
        .program("mke2fs")
        .program("seq")
        .mode(Mode::VirtualTime { shift: 0, processors: 1 })
        .kernel_argument(&format!("preempt={preemption}"))
        .variable("ROUNDS", &ROUNDS.to_string())
        .script(include_str!("kernels/gain.sh"));
    let outcome = succeed(&vm, "luc.ko in virtual time")?;
    Ok(json!({ "said": values(&outcome.text()), "wall_s": outcome.wall.as_secs() }))
}

pub(crate) fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let cuts = harness.options.cuts.map_or(CUTS, |cuts| cuts.min(CUTS));
    let kernels: Vec<_> =
        KERNELS.into_iter().filter(|(version, _)| harness.options.wants(version)).collect();
    let runs = Runs::open(harness);
    let boots = kernels.iter().map(|(_, ways)| 1 + ways.len()).sum();
    let mut progress = Progress::new(harness.part, boots);
    for (version, ways) in kernels {
        let guests = Guests::prepare(harness, version)?;
        let release = guests.release();
        let key = json!({ "kernel": release, "cuts": cuts });
        runs.get(&key, || functions(&guests, cuts))?;
        progress.step(&format!("{release}: what works"));
        for preemption in ways {
            let key = json!({ "kernel": release, "preemption": preemption });
            runs.get(&key, || gain(&guests, preemption))?;
            progress.step(&format!("{release}, preempt={preemption}: the gain"));
        }
    }
    Ok(())
}
