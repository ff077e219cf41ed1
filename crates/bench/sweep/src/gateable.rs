//! Checks before a sweep that its workloads can run under the gate.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use luc_units::OnPath as _;

use super::error::SweepError;
use super::plan::{PlanWorkload, SweepPolicy};
use super::sweep_points::SweepPoint;

/// Asks `luc run --check` for every program of a point with a policy of the gate: is the gate's library there, and
/// would the program load it?
pub(super) fn check(points: &[SweepPoint], luc: &Path) -> Result<(), SweepError> {
    let is_gated = |point: &&SweepPoint| matches!(point.policy, SweepPolicy::Gate(_));
    let workloads: BTreeMap<&str, (&PlanWorkload, SweepPolicy)> = points
        .iter()
        .filter(is_gated)
        .map(|point| (&*point.workload.name, (&point.workload, point.policy)))
        .collect();
    for (workload, policy) in workloads.into_values() {
        let first = workload.command.iter().flatten().next();
        let program = first.map_or(luc, Path::new);
        let is_found_later = program.to_string_lossy().contains('{');
        // A relative path is relative to the fresh folder.
        let is_below = program.is_relative() && program.components().count() > 1;
        if is_found_later || is_below {
            continue;
        }
        let output = Command::new(luc)
            .args(["run", "--level", "gate", "--check", "--"])
            .arg(program)
            .stdin(Stdio::null())
            .output()
            .map_err(SweepError::io("run", luc))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().last().unwrap_or("it cannot be gated");
            let said = said.strip_prefix("luc: ").unwrap_or(said);
            return Err(SweepError::Plan(format!(
                "workload '{}' with policy \"{policy}\": {said}",
                workload.name
            )));
        }
    }
    Ok(())
}
