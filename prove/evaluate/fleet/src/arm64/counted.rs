//! Totals of counters under the kernel's own rotation, beside counters that are never taken away.

use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, elements, figure, missing};
use luc_vm::{GuestKernel, GuestTime};
use serde::Serialize;
use serde_json::Value;

use super::machine::{Tools, succeeded, unpack};

const SEEDS: usize = 20;
/// Duration of each seed's work, ms of virtual time.
const WORK_MS: usize = 5000;
/// Binary logarithm of an instruction's time in ns.
const SHIFT: u32 = 1;

/// Script for the guest. The processor has six counters and one of cycles. The program pins four of them, so that three
/// groups share the rest.
const SCRIPT: &str = r#"
set -e
groups='{cycles:u,instructions:u},{cycles:k,instructions:k},{cycles,instructions}'
for seed in $(seq SEEDS); do
	luc record --quiet --counters="$groups" --out "$OUT/trace.$seed" -- phases $seed WORK_MS >"$OUT/truth.$seed"
done
"#;

/// An event of a run.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Counted {
    pub(super) seed: usize,
    pub(super) event: String,
    pub(super) truth: f64,
    pub(super) value: f64,
    /// Half of the 95 % interval.
    pub(super) half_width: Option<f64>,
    /// Part of the time in which it was counted.
    pub(super) running_share: f64,
}

pub(super) fn run(
    harness: &Harness,
    tools: &Tools,
    kernel: &GuestKernel,
) -> Result<Vec<Counted>, EvaluateError> {
    let script =
        SCRIPT.replace("SEEDS", &SEEDS.to_string()).replace("WORK_MS", &WORK_MS.to_string());
    let outcome = tools
        .vm(kernel)
        .mode(GuestTime::VirtualTime { shift: SHIFT, processors: 1 })
        .script(script)
        .run()?;
    let outcome = succeeded(kernel, outcome)?;
    let folder = harness.path("counted");
    unpack(&outcome, &folder)?;
    let mut all = Vec::new();
    for seed in 1..=SEEDS {
        let truth = outcome.file(&format!("truth.{seed}")).unwrap_or_default();
        let (process, truths) =
            parse_truth(&truth).ok_or_else(|| missing("what phases counted"))?;
        let trace = folder.join(format!("trace.{seed}"));
        let trace = trace.display().to_string();
        let words = ["fleet", "counters", &trace, "--process", &process, "--json"];
        let found = harness.json(&words)?;
        for (event, truth) in truths {
            // The emulated processor takes two cycles for each instruction: they say nothing of their own.
            if event.starts_with("cycles") {
                continue;
            }
            all.push(find_count(&found, seed, event, truth)?);
        }
    }
    std::fs::remove_dir_all(&folder).map_err(EvaluateError::file("remove", &folder))?;
    Ok(all)
}

fn find_count(
    found: &Value,
    seed: usize,
    event: String,
    truth: f64,
) -> Result<Counted, EvaluateError> {
    let total = elements(&found["totals"]).iter().find(|total| total["event"] == event.as_str());
    let total = total.ok_or_else(|| missing(&format!("{event} in the totals")))?;
    Ok(Counted {
        seed,
        value: figure(total, "value")?,
        half_width: total["half_width"].as_f64(),
        running_share: figure(total, "running_share")?,
        event,
        truth,
    })
}

/// Parses the process, and its own count of each event.
fn parse_truth(text: &str) -> Option<(String, Vec<(String, f64)>)> {
    let mut lines = text.lines().map(|line| line.split_once(' '));
    let ("process", process) = lines.next()?? else {
        return None;
    };
    let truths = lines
        .map(|line| {
            let (event, count) = line?;
            Some((event.to_owned(), count.parse().ok()?))
        })
        .collect::<Option<Vec<_>>>()?;
    Some((process.to_owned(), truths)).filter(|(_, truths)| !truths.is_empty())
}
