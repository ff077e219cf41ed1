//! Repeats runs that the hypervisor disturbed.

use luc_host::processor_time::ProcessorTicks;

use crate::error::EvaluateError;
use crate::harness::{Harness, MAX_STOLEN_SHARE};

/// Maximum attempts at a run. The last one counts, whatever happened to it.
const MAX_TRIES: usize = 4;

/// Makes a run, and makes it again while too much processor time is stolen. `once` learns whether it may be made again.
/// It returns its result and the stolen share.
pub fn undisturbed<T>(
    harness: &Harness,
    mut once: impl FnMut(bool) -> Result<(T, f64), EvaluateError>,
) -> Result<T, EvaluateError> {
    for _ in 1..MAX_TRIES {
        let (run, stolen_share) = once(true)?;
        if !is_disturbed(true, stolen_share) {
            return Ok(run);
        }
        harness.count_disturbed();
    }
    once(false).map(|(run, _)| run)
}

/// Makes a run, and returns the stolen share of the processors' time in it too.
pub fn with_stolen_share<T>(
    run: impl FnOnce() -> Result<T, EvaluateError>,
) -> Result<(T, f64), EvaluateError> {
    let before = ProcessorTicks::now();
    let done = run()?;
    Ok((done, ProcessorTicks::now().stolen_share_since(before)))
}

/// Whether a run is made again.
pub fn is_disturbed(may_repeat: bool, stolen_share: f64) -> bool {
    may_repeat && stolen_share > MAX_STOLEN_SHARE
}
