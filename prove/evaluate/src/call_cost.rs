//! Part `call-cost`: the cost of the gate for an fsync while it stands aside. The real fsync does nothing, and a lone
//! caller makes the calls. The page shows the difference between calls with and without the gate.

use luc_stats::{Side, interleave};
use serde_json::json;

use crate::disks::{Disk, EXT4};
use crate::error::EvaluateError;
use crate::harness::{Harness, line, missing, of_disk, read_json};
use crate::progress::Progress;

const CELL: &str = "cost of a call while the gate stands aside";
const CALLS: u64 = 1_000_000;

pub(super) fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let pairs = harness.options.repeats.unwrap_or(6).max(2);
    let nothing = harness.compile("nosync.so", include_str!("nosync.c"), &["-shared", "-fPIC"])?;
    let caller = harness.compile("caller", include_str!("lone_caller.c"), &[])?;
    let disk = Disk::create(harness, &EXT4)?;
    let file = disk.mount.join("file");
    let gate_file = harness.path("gate.json");
    let order = interleave(pairs, harness.options.seed);
    let mut progress = Progress::new(harness.part, order.len());
    for side in order {
        let mut command = match side {
            Side::With => {
                let mut command = harness.luc(&["run", "--quiet", "--policy", "auto", "--json"]);
                command.arg(&gate_file).arg("--").arg(&caller);
                command
            }
            Side::Without => std::process::Command::new(&caller),
        };
        command.arg(&file).arg(CALLS.to_string());
        // luc run puts its library before this one, so that the gate's real fsync is the nothing.
        command.env("LD_PRELOAD", &nothing);
        let output = harness.execute(&mut command, &[0])?.stdout;
        let ns: f64 = output.trim().parse().map_err(|_| missing("ns per call"))?;
        let mut gate = serde_json::Value::Null;
        if side == Side::With {
            gate = of_disk(&read_json(&gate_file)?, disk.device()).clone();
            let counted = gate["fsyncs"].as_u64().unwrap_or(0);
            // All but those before the gate knew the file system.
            if counted < CALLS / 100 * 99 {
                return Err(missing("a call of the lone caller (the gate was not in it)"));
            }
        }
        progress.step(&format!("{CELL}: {ns:.0} ns"));
        harness.keep(json!({ "cell": CELL, "setting": side, "command": line(&command),
                         "environment": "LD_PRELOAD=nosync.so", "ns_per_call": ns, "gate": gate }));
    }
    Ok(())
}
