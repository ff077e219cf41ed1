//! `luc run`: runs a command whose fsyncs share commits, and reports what it gained.

pub(super) mod gate_reach;
mod run_comparison;
mod run_request;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use luc_cli::JsonFile;
use luc_gate::inspect::{self, Gateability, InspectError, Privilege};
use luc_launch::container_init;
use luc_module::MachinePaths;
use luc_module::level::{self, EffectiveLevel, LevelPlan};
use luc_module::setting_leases::SettingLeases;
use luc_run::{PlannedRun, RecordedRun, RunOutcome, TimeSplit};
use luc_units::text_output;
pub(crate) use run_request::Args;
pub(super) use run_request::copy_out;
use run_request::{RunMode, RunRequest};
use rustix::process::{getgid, getuid};

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(status) = container_init::reap_for_child()? {
        return Ok(ExitCode::from(status));
    }
    run(args.request()?)
}

fn run(request: RunRequest) -> anyhow::Result<ExitCode> {
    let (path, is_quiet) = (&request.command.program, request.is_quiet);
    let program = inspected(path, is_quiet)?;
    let machine = MachinePaths::from_environment();
    if matches!(request.mode, RunMode::Check) {
        return check(&request, &machine, &program);
    }
    if let Err(error) = SettingLeases::of(&machine).reap() {
        eprintln!("luc: what an earlier run lent could not be restored: {error}");
    }
    let plan = plan(&request, &machine)?;
    let decided = request.reach.decide(&program, plan.level)?;
    if let Some(note) = decided.note(path, &program, plan.level, is_quiet) {
        eprintln!("luc: {note}");
    }
    let json = request.json.as_deref().map(JsonFile::new).transpose()?;
    let (settings, explains) = (request.settings(), request.explains);
    let reach = decided.reach();
    let run =
        PlannedRun { luc: own_path(), machine, plan, command: request.command, settings, reach };
    if let RunMode::Compare { pairs, seed } = request.mode {
        let options = luc_run::GainOptions { pairs, seed, explains };
        return run_comparison::main(&run, options, json, is_quiet);
    }
    let RecordedRun { outcome, why } = if explains {
        luc_run::explain_meanwhile(|started| run.run(Some(started)))?
    } else {
        RecordedRun { outcome: run.run(None)?, why: Ok(None) }
    };
    say_failures(&outcome);
    if !is_quiet {
        eprint!("{outcome}");
    }
    let why = why.unwrap_or_else(|reason| {
        if outcome.gate.calls() > 0 {
            say_unexplained(&reason);
        }
        None
    });
    if let Some(why) = &why {
        eprint!("{why}");
    }
    let status = outcome.gate.ending.exit_status();
    Ok(write_json(json, &Explained { outcome, why }, status))
}

/// Prints the way in which a program would be reached. The error says why it would not be.
fn check(
    request: &RunRequest,
    machine: &MachinePaths,
    program: &Gateability,
) -> anyhow::Result<ExitCode> {
    let plan = plan(request, machine)?;
    let decided = request.reach.decide(program, plan.level)?;
    let text = decided.check(&request.command.program, program, plan.level)?;
    if !request.is_quiet {
        println!("{text}");
    }
    Ok(ExitCode::SUCCESS)
}

/// A run and, if it was recorded, the split of its calls' time.
#[derive(serde::Serialize)]
struct Explained {
    #[serde(flatten)]
    outcome: RunOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<TimeSplit>,
}

fn say_unexplained(reason: &str) {
    eprintln!("luc: why is not known: {reason} (--no-why leaves this out)");
}

/// Prints which of the module's settings could not be lent or restored.
fn say_failures(outcome: &RunOutcome) {
    for failure in &outcome.failures {
        eprintln!("luc: {failure}");
    }
}

/// Writes the report of a command that ended with `status`. A failure to write it changes the status only if that is
/// 0.
fn write_json(json: Option<JsonFile>, report: &impl serde::Serialize, status: u8) -> ExitCode {
    match json.map_or(Ok(()), |json| json.write(report)) {
        Err(error) if !text_output::is_reader_gone(&error) => {
            eprintln!("luc: {error}");
            ExitCode::from(if status == 0 { 2 } else { status })
        }
        _ => ExitCode::from(status),
    }
}

fn own_path() -> PathBuf {
    // Without /proc it does not know its path, and only watchers over lent settings need it.
    std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into())
}

/// Looks at a program that may be executed. If it may not be read, only its mode is known.
fn inspected(path: &Path, is_quiet: bool) -> anyhow::Result<Gateability> {
    let unread = match inspect::program(path) {
        Err(InspectError::Io { path, .. }) => path,
        looked => return Ok(looked?),
    };
    let found = unread.metadata()?;
    let has = |bits| found.mode() & bits == bits;
    if has(0o4000) && found.uid() != getuid().as_raw() {
        return Ok(Gateability::SetId(Privilege::User));
    }
    if has(0o2010) && found.gid() != getgid().as_raw() {
        return Ok(Gateability::SetId(Privilege::Group));
    }
    if !is_quiet {
        eprintln!(
            "luc: {} may not be read, so whether the gate's library gets into it is not known",
            unread.display()
        );
    }
    Ok(Gateability::Gateable)
}

/// Decides who batches where.
fn plan(request: &RunRequest, machine: &MachinePaths) -> anyhow::Result<LevelPlan> {
    let plan = level::plan(machine, request.level, || {
        luc_run::requested(request.policy, request.max_wait_ns, request.copy_out.as_deref())
    })?;
    if plan.level == EffectiveLevel::Gate && request.copy_out.is_some() {
        anyhow::bail!(
            "--copy-out is the kernel module's: load it by `luc kernel load` (root), and use another --level than gate"
        );
    }
    if let Some(note) = plan.note.as_ref().filter(|_| !request.is_quiet) {
        eprintln!("luc: {note}");
    }
    Ok(plan)
}
