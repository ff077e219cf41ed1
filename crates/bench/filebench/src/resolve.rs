//! Converts commands to a plan: looks up variables and references, and refuses what cannot be run.

mod files;
mod flowop;
mod random;
mod scope;
mod steps;
mod target;
mod text;

use std::collections::HashMap;

use super::ast::{AstAttributes, AstCommand, AstThread, AstValue, CommandAction, RunEndRule};
use super::diagnostic::{Diagnostic, TextPosition};
use super::plan::{ClientPlan, SetupAction, WorkloadPlan};
use scope::VariableScope;
use steps::Composites;

const MAX_CLIENTS: u64 = 4096;
/// Maximum number of entries of all filesets together.
const MAX_ENTRIES: u64 = 1 << 26;

/// Builds the plan of a file's commands; `given` are variables whose value the user has set.
pub(super) fn resolve(
    commands: &[AstCommand],
    given: &[(String, AstValue)],
) -> Result<WorkloadPlan, Diagnostic> {
    // 1. Commands up to the run, and the variables.
    let start = TextPosition { line: 1, column: 1 };
    let end = commands
        .iter()
        .position(|command| matches!(command.action, CommandAction::Run(_)))
        .map_or(commands.len(), |run| run + 1);
    let commands = &commands[..end];
    let mut scope = VariableScope::default();
    for command in commands {
        if let CommandAction::Set(name, setting) = &command.action {
            scope.set(command.at, name, setting)?;
        }
        for (name, value) in given {
            scope.give(name, value);
        }
    }
    let mut plan = WorkloadPlan {
        filesets: Vec::new(),
        clients: Vec::new(),
        loops: Vec::new(),
        names: Vec::new(),
        name_places: HashMap::new(),
        seconds: None,
        mode: RunEndRule::Timeout,
        rate: 0,
        before: Vec::new(),
        sources: scope.sources.clone(),
        points: Vec::new(),
        memories: 0,
    };
    // 2. Filesets, which processes may name before they are defined.
    let mut paths = Vec::new();
    for command in commands {
        if let CommandAction::Files(alone, attributes) = &command.action {
            paths.push(scope.required(attributes, "path")?);
            plan.filesets.push(scope.files(*alone, attributes)?);
        }
    }
    // 3. Processes and actions.
    let mut composites = Composites::default();
    for command in commands {
        match &command.action {
            CommandAction::Process(attributes, threads) => {
                scope.process(&mut plan, &composites, attributes, threads)?;
            }
            CommandAction::Composite(attributes, flowops) => {
                scope.composite(&mut composites, attributes, flowops)?;
            }
            CommandAction::Run(seconds) => {
                plan.seconds =
                    seconds.as_ref().map(|value| scope.integer(command.at, value)).transpose()?;
            }
            CommandAction::Events(attributes) => {
                plan.rate = scope.integer_or(attributes, "rate", 0)?
            }
            CommandAction::Mode(mode) => plan.mode = *mode,
            CommandAction::Create => plan.before.push(SetupAction::Create),
            CommandAction::Echo(text) => {
                plan.before.push(SetupAction::Echo(scope.expand(text, &paths)))
            }
            CommandAction::System(text) => {
                plan.before.push(SetupAction::System(command.at, scope.expand(text, &paths)));
            }
            CommandAction::Sleep(seconds) => {
                plan.before.push(SetupAction::Sleep(scope.integer(command.at, seconds)?));
            }
            CommandAction::Multi => {
                return Err(Diagnostic::new(
                    command.at,
                    "this makes several hosts start together, and luc bench runs on one",
                    "remove this line, and start luc bench on each host",
                ));
            }
            CommandAction::Set(..) | CommandAction::Files(..) | CommandAction::Nothing => {}
        }
    }
    // 4. References between flowops, and limits.
    target::resolve(&mut plan)?;
    let entries = plan.filesets.iter().fold(0_u64, |sum, files| {
        sum.saturating_add(files.entries).saturating_add(files.leaf_directories)
    });
    if entries > MAX_ENTRIES {
        let advice = format!("use at most {MAX_ENTRIES}");
        return Err(Diagnostic::new(start, format!("{entries} files are too many"), advice));
    }
    if plan.clients.is_empty() {
        return Err(Diagnostic::new(
            start,
            "this file defines no process that has threads",
            "add define process {...}, with instances of more than 0",
        ));
    }
    Ok(plan)
}

impl VariableScope {
    fn process(
        &self,
        plan: &mut WorkloadPlan,
        composites: &Composites,
        attributes: &AstAttributes,
        threads: &[AstThread],
    ) -> Result<(), Diagnostic> {
        let nice = self.integer_or(attributes, "nice", 0)?.min(19) as i32;
        let processes = self.integer_or(attributes, "instances", 1)?;
        let mut members = Vec::new();
        for thread in threads {
            let given = &thread.attributes;
            let instances = self.integer_or(given, "instances", 1)?;
            // No thread runs it, and it may name files that do not exist.
            if instances == 0 || processes == 0 {
                continue;
            }
            let all = instances.saturating_add(members.len() as u64).saturating_mul(processes);
            if all.saturating_add(plan.clients.len() as u64) > MAX_CLIENTS {
                let advice = format!("use at most {MAX_CLIENTS}");
                return Err(Diagnostic::new(given.at, "too many threads", advice));
            }
            let io_priority = match self.integer_or(given, "ioprio", 8)? {
                priority @ 0..=7 => Some(priority as u32),
                8 => None,
                other => {
                    return Err(Diagnostic::new(
                        given.at,
                        format!("ioprio={other} is out of range"),
                        "use 0 to 7",
                    ));
                }
            };
            let steps = self.steps(plan, composites, &thread.flowops, "")?;
            plan.loops.push(steps);
            let member = (plan.loops.len() - 1, io_priority);
            members.extend((0..instances).map(|_| member));
        }
        let mut ranks = vec![0; plan.loops.len()];
        for _ in 0..processes {
            let first = plan.clients.len();
            let process = first..first + members.len();
            for &(steps, io_priority) in &members {
                plan.clients.push(ClientPlan {
                    steps,
                    rank: ranks[steps],
                    process: process.clone(),
                    nice,
                    io_priority,
                });
                ranks[steps] += 1;
            }
        }
        Ok(())
    }
}
