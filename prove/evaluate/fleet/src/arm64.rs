//! Part `arm64`: the recorder, the gate and the trial of power cuts on 64-bit Arm, on distributions' kernels.
//!
//! The machine is emulated, so its times say nothing of a real one. What is compared is the programs' output about
//! themselves.

mod counted;
mod inside;
mod machine;
mod wire;

use luc_harness::error::EvaluateError;
use luc_harness::harness::Harness;
use luc_harness::progress::Progress;
use luc_vm::GuestKernel;
use serde_json::json;

/// Makes part `arm64`.
///
/// # Errors
/// A program or a kernel that is not there, a guest that fails, and interruption.
pub fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let kernels = GuestKernel::arm64()?;
    let tools = machine::Tools::build(harness)?;
    let mut progress = Progress::new(harness.part, kernels.len());
    for kernel in &kernels {
        let run = inside::once(harness, &tools, kernel)?;
        progress.step(&format!("{}: {}", run.kernel, run.known.brief()));
        harness.keep(json!(run));
    }
    Ok(())
}
