//! Resolution of the flowops that others name as their `target`, once all are known.
//!
//! A limit or an end of the run counts an operation of its own thread. Semaphores and meeting points may be in any
//! thread. Every instance of a `semblock` or `block` has its own. A post or a wakeup goes to all of that name.

use std::ops::Range;

use super::super::diagnostic::Diagnostic;
use super::super::plan::{FlowopKind, FlowopTarget, LoopStep, PlannedFlowop, WorkloadPlan};

/// A place to wait at, by the names that it answers to.
struct WaitPlace {
    task: FlowopKind,
    /// Names with and without that of its composite.
    names: [String; 2],
    points: Range<usize>,
}

pub(super) fn resolve(plan: &mut WorkloadPlan) -> Result<(), Diagnostic> {
    let places = places(plan);
    let names = plan.names.clone();
    for steps in &mut plan.loops {
        let mut own = Vec::new();
        LoopStep::each(steps, &mut |flowop| {
            own.push((flowop.name.clone(), flowop.operation));
        });
        let mut wrong = None;
        LoopStep::each_mut(steps, &mut |flowop| {
            if let Err(diagnostic) = point(flowop, &places, &own, &names) {
                wrong.get_or_insert(diagnostic);
            }
        });
        wrong.map_or(Ok(()), Err)?;
    }
    Ok(())
}

/// Gives every instance of a flowop that waits a point of its own.
fn places(plan: &mut WorkloadPlan) -> Vec<WaitPlace> {
    let mut places = Vec::new();
    let WorkloadPlan { loops, clients, points, names, .. } = plan;
    for (index, steps) in loops.iter_mut().enumerate() {
        let instances = clients.iter().filter(|member| member.steps == index).count();
        LoopStep::each_mut(steps, &mut |flowop| {
            if matches!(flowop.task, FlowopKind::SemaphoreBlock | FlowopKind::Block) {
                flowop.point = points.len();
                points.extend((0..instances).map(|_| flowop.highwater));
                places.push(WaitPlace {
                    task: flowop.task,
                    names: [flowop.name.clone(), names[flowop.operation].clone()],
                    points: flowop.point..points.len(),
                });
            }
        });
    }
    places
}

fn point(
    flowop: &mut PlannedFlowop,
    places: &[WaitPlace],
    own: &[(String, usize)],
    names: &[String],
) -> Result<(), Diagnostic> {
    let waits = match flowop.task {
        FlowopKind::SemaphorePost => Some((FlowopKind::SemaphoreBlock, "semblock")),
        FlowopKind::Wakeup => Some((FlowopKind::Block, "block")),
        _ => None,
    };
    let FlowopTarget::Named(at, name) = &flowop.target else {
        return match waits {
            Some((_, kind)) => Err(Diagnostic::new(
                flowop.at,
                "this flowop has no target",
                format!("add target=NAME, the name of a {kind}"),
            )),
            None => Ok(()),
        };
    };
    let Some((task, kind)) = waits else {
        let found: Vec<usize> = own
            .iter()
            .filter(|(bare, operation)| bare == name || names[*operation] == *name)
            .map(|(_, operation)| *operation)
            .collect();
        if found.is_empty() {
            let known: Vec<&str> = own.iter().map(|(bare, _)| &**bare).collect();
            return Err(Diagnostic::unknown(*at, "flowop of this thread", name, &known));
        }
        flowop.target = FlowopTarget::Operations(found);
        return Ok(());
    };
    let kinds = || places.iter().filter(|place| place.task == task);
    let found: Vec<Range<usize>> = kinds()
        .filter(|place| place.names.contains(name))
        .map(|place| place.points.clone())
        .collect();
    if found.is_empty() {
        let known: Vec<&str> = kinds().map(|place| &*place.names[0]).collect();
        return Err(Diagnostic::unknown(*at, kind, name, &known));
    }
    flowop.target = FlowopTarget::Points(found);
    Ok(())
}
