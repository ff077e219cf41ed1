//! From commands to a plan: looks up variables and references, and refuses what is not implemented.

mod files;
mod flowop;
mod random;
mod scope;

use super::ast::{Action, Attributes, Command, Mode, Thread, Value};
use super::mistake::{Mistake, Position};
use super::plan::Plan;
use scope::Scope;

/// Clients that a run may have.
const MOST_CLIENTS: u64 = 4096;
/// Entries that all filesets may have together.
const MOST_ENTRIES: u64 = 1 << 26;

/// The plan of a file's commands; `given` are variables whose value the user has set.
pub(super) fn resolve(commands: &[Command], given: &[(String, Value)]) -> Result<Plan, Mistake> {
    let start = Position { line: 1, column: 1 };
    let mut scope = Scope::default();
    for command in commands {
        if let Action::Set(name, setting) = &command.action {
            scope.set(command.at, name, setting)?;
        }
        for (name, value) in given {
            scope.give(name, value);
        }
        if matches!(command.action, Action::Run(_)) {
            break;
        }
    }
    let mut plan = Plan {
        filesets: Vec::new(),
        clients: Vec::new(),
        loops: Vec::new(),
        names: Vec::new(),
        seconds: None,
    };
    for command in commands {
        if let Action::Files(alone, attributes) = &command.action {
            plan.filesets.push(scope.files(*alone, attributes)?);
        }
    }
    for command in commands {
        match &command.action {
            Action::Process(attributes, threads) => {
                scope.process(&mut plan, attributes, threads)?
            }
            Action::Run(seconds) => {
                plan.seconds = seconds
                    .as_ref()
                    .map(|value| scope.integer(command.at, value))
                    .transpose()?;
                break;
            }
            Action::Events(attributes) => {
                if let Some(rate) = attributes.get("rate")
                    && scope.integer(rate.at, &rate.value)? > 0
                {
                    return Err(missing(
                        rate.at,
                        "eventgen with a rate above 0",
                        "set rate=0",
                    ));
                }
            }
            Action::Mode(Mode::AllDone | Mode::FirstDone) => {
                let advice = "use 'set mode quit timeout'";
                return Err(missing(command.at, "an end by what threads do", advice));
            }
            Action::Composite(..) => {
                let advice = "write its flowops where they are used";
                return Err(missing(command.at, "define flowop", advice));
            }
            Action::System(_) => {
                let advice = "run the command before luc bench and remove this line";
                return Err(missing(command.at, "system", advice));
            }
            Action::Multi => {
                return Err(missing(
                    command.at,
                    "a run on several hosts",
                    "remove this line",
                ));
            }
            Action::Sleep(_) => return Err(missing(command.at, "sleep", "use run or --seconds")),
            _ => {}
        }
    }
    let entries = plan
        .filesets
        .iter()
        .fold(0_u64, |sum, files| sum.saturating_add(files.entries));
    if entries > MOST_ENTRIES {
        let advice = format!("use at most {MOST_ENTRIES}");
        return Err(Mistake::new(
            start,
            format!("{entries} files are too many"),
            advice,
        ));
    }
    if plan.clients.is_empty() {
        return Err(Mistake::new(
            start,
            "this file defines no process",
            "add define process {...}",
        ));
    }
    Ok(plan)
}

fn missing(at: Position, what: &str, advice: &str) -> Mistake {
    Mistake::new(at, format!("{what} is not implemented yet"), advice)
}

impl Scope {
    fn process(
        &self,
        plan: &mut Plan,
        attributes: &Attributes,
        threads: &[Thread],
    ) -> Result<(), Mistake> {
        if let Some(nice) = attributes.get("nice") {
            return Err(missing(
                nice.at,
                "nice",
                "remove it and start luc with nice(1)",
            ));
        }
        let processes = self.integer_or(attributes, "instances", 1)?;
        for thread in threads {
            if let Some(priority) = thread.attributes.get("ioprio") {
                return Err(missing(
                    priority.at,
                    "ioprio",
                    "remove it and start luc with ionice(1)",
                ));
            }
            let instances = self
                .integer_or(&thread.attributes, "instances", 1)?
                .saturating_mul(processes);
            if instances.saturating_add(plan.clients.len() as u64) > MOST_CLIENTS {
                let advice = format!("use at most {MOST_CLIENTS}");
                return Err(Mistake::new(
                    thread.attributes.at,
                    "too many threads",
                    advice,
                ));
            }
            let mut flowops = Vec::new();
            for flowop in &thread.flowops {
                flowops.push(self.flowop(plan, flowop.at, &flowop.kind, &flowop.attributes)?);
            }
            plan.clients
                .extend((0..instances).map(|_| plan.loops.len()));
            plan.loops.push(flowops);
        }
        Ok(())
    }
}
