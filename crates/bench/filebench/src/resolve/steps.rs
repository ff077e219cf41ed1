//! The steps of a loop: flowops, and composites with their local variables.

use std::collections::HashMap;

use super::super::ast::{AstAttributes, AstFlowop, AstValue};
use super::super::diagnostic::Diagnostic;
use super::super::plan::{LoopStep, WorkloadPlan};
use super::flowop::MAX_FLOWOPS;
use super::scope::VariableScope;

/// Composites that may contain composites; deeper ones are refused.
const MAX_DEPTH: usize = 32;

/// The composite flowops defined so far, by name.
#[derive(Debug, Default)]
pub(super) struct Composites(HashMap<String, Composite>);

#[derive(Debug)]
struct Composite {
    locals: Vec<(String, Option<AstValue>)>,
    flowops: Vec<AstFlowop>,
    /// Composites around the innermost flowop.
    depth: usize,
    /// Number of flowops at each use.
    size: usize,
}

impl VariableScope {
    pub(super) fn composite(
        &self,
        composites: &mut Composites,
        attributes: &AstAttributes,
        flowops: &[AstFlowop],
    ) -> Result<(), Diagnostic> {
        let name = self.required(attributes, "name")?;
        let inside = flowops.iter().filter_map(|flowop| composites.0.get(&flowop.kind));
        let depth = 1 + inside.map(|inner| inner.depth).max().unwrap_or(0);
        if depth > MAX_DEPTH {
            let what = format!("composite '{name}' has too many composites in each other");
            return Err(Diagnostic::new(attributes.at, what, format!("use at most {MAX_DEPTH}")));
        }
        // At its definition: composites that use one another twice would be resolved for hours.
        let size = flowops.iter().fold(0_usize, |sum, flowop| {
            let inner = composites.0.get(&flowop.kind);
            sum.saturating_add(inner.map_or(1, |inner| inner.size))
        });
        if size > MAX_FLOWOPS {
            let what = format!("composite '{name}' stands for {size} flowops");
            let advice = format!("use at most {MAX_FLOWOPS}, fewer composites in each other");
            return Err(Diagnostic::new(attributes.at, what, advice));
        }
        let composite =
            Composite { locals: attributes.locals.clone(), flowops: flowops.to_vec(), depth, size };
        composites.0.insert(name, composite);
        Ok(())
    }

    /// Builds the steps of `flowops`; `around` is the name, with a dot, of the composite that they are in.
    pub(super) fn steps(
        &self,
        plan: &mut WorkloadPlan,
        composites: &Composites,
        flowops: &[AstFlowop],
        around: &str,
    ) -> Result<Vec<LoopStep>, Diagnostic> {
        let mut steps = Vec::new();
        for flowop in flowops {
            let given = &flowop.attributes;
            let Some(composite) = composites.0.get(&flowop.kind) else {
                if let Some((name, _)) = given.locals.first() {
                    let what = format!("'${name}' is no attribute of {}", flowop.kind);
                    return Err(Diagnostic::new(given.at, what, "give it to a composite flowop"));
                }
                let made = self.flowop(plan, flowop.at, &flowop.kind, given, around)?;
                steps.push(LoopStep::Flowop(Box::new(made)));
                continue;
            };
            let name = self.required(given, "name")?;
            let inner = self.inner(composite, given)?;
            steps.push(LoopStep::Body {
                iters: self.number_or(given, "iters", 1)?,
                steps: inner.steps(
                    plan,
                    composites,
                    &composite.flowops,
                    &format!("{around}{name}."),
                )?,
            });
        }
        Ok(steps)
    }

    /// Returns the variables inside a composite: its locals have the values of this use, else the definition's.
    fn inner(&self, composite: &Composite, given: &AstAttributes) -> Result<Self, Diagnostic> {
        let mut inner = self.clone();
        for (name, value) in &composite.locals {
            if let Some(value) = value {
                inner.bind(name, self.look_up(given.at, value)?);
            }
        }
        for (name, value) in &given.locals {
            if !composite.locals.iter().any(|(local, _)| local == name) {
                let known: Vec<&str> = composite.locals.iter().map(|(local, _)| &**local).collect();
                return Err(Diagnostic::unknown(given.at, "local variable", name, &known));
            }
            if let Some(value) = value {
                inner.bind(name, self.look_up(given.at, value)?);
            }
        }
        Ok(inner)
    }
}
