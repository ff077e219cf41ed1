//! `luc run`: runs a command whose fsyncs share commits, and reports what it gained.

mod compare;
pub(super) mod reach;

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use luc_gate::Policy;
use luc_gate::Settings;
use luc_gate::inspect::{self, Gateability, InspectError, Privilege};
use luc_gate::rounds::join::LONGEST_WAIT_NS;
use luc_launch::{Command, Start, init};
use luc_module::lease::Leases;
use luc_module::level::{self, EffectiveLevel, Plan};
use luc_module::{Key, Machine};
use luc_run::{Recorded, RunOutcome, TimeSplit};
use luc_units::{output, parse_duration_ns};
use reach::Reach;
use rustix::process::{getgid, getuid};

use super::json_file::JsonFile;

/// `--level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Level {
    /// The kernel module where it is loaded, else the gate
    Auto,
    /// In user space, as --reach says; no privileges
    Gate,
    /// The kernel module (root): every program, also static ones
    Kernel,
    /// The kernel module on the journals that it knows, the gate on others
    Both,
}

impl From<Level> for level::Level {
    fn from(level: Level) -> Self {
        match level {
            Level::Auto => Self::Auto,
            Level::Gate => Self::Gate,
            Level::Kernel => Self::Kernel,
            Level::Both => Self::Both,
        }
    }
}

/// Run a command so that its fsyncs on ext4 share journal commits
///
/// luc brings fsync, fdatasync and msync(MS_SYNC) calls on one ext4 file system into common commits: calls of all
/// threads and processes of the command, and of other `luc run`s of the same user. Nothing else changes: every call
/// is still made, and still waits until its data is durable. The gate engages only where it measures a gain.
///
/// Where the kernel module is loaded (luc kernel load), it does the same inside the kernel, on the journals of the
/// file systems that the command uses. Its settings are restored when the run ends, however it ends.
///
/// A library gets into dynamically linked programs. Static ones and Go programs are reached by a filter of system calls:
/// the kernel notifies luc of each fsync and fdatasync, which luc holds and lets go on (--reach).
///
/// The command's output and exit status are passed through; the report goes to standard error.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  luc run -- make -j64 install
  luc run --compare 5 -- ./import-mail.sh
  luc run --policy delay:1ms -- postgres -D data
  luc run --max-wait 2ms -- redis-server --appendonly yes
  luc run -- ./static-program
  luc run --reach notify -- postfix start-fg
  luc run --level kernel -- ./static-program
  luc run --json figures.json -- sqlite3 app.db < changes.sql

Exit status: the command's; 128 + signal if one ended it; 2 if it could not be started,
or ended with 0 and --json's file could not be written.")]
pub(crate) struct Args {
    // No doc comment: rustdoc would take the brackets for links.
    #[arg(
        long,
        default_value = "auto",
        help = "How callers are brought together: auto, off (only count), delay[:TIME[:RESTARTS]] or pid[:CALLERS]"
    )]
    policy: Policy,

    /// What brings callers together
    #[arg(long, value_enum, default_value_t = Level::Auto)]
    level: Level,

    /// How the gate gets to the command's calls
    #[arg(long, value_enum, default_value_t = Reach::Auto)]
    reach: Reach,

    /// Kernel module only: when journal blocks are copied: off, on, heuristic or auto [default: auto]
    #[arg(long, value_name = "MODE", value_parser = copy_out)]
    copy_out: Option<String>,

    /// Hold no caller longer than TIME beyond the commit in flight, such as 500us or 5ms; at most 20ms [default:
    /// 20ms]
    #[arg(long, value_name = "TIME", value_parser = wait_ns)]
    max_wait: Option<u64>,

    /// Run the command N times with luc and N times without it, in random order, and print the ratio
    ///
    /// The command's standard output is discarded.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    compare: Option<u32>,

    /// Seed of the random order of --compare
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Also write the report as JSON to FILE, at the end and all at once
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Do not record the run, so the report does not say what the calls' time went into
    ///
    /// With --compare this saves two runs that are made only to be recorded. Recording needs root and a kernel with
    /// BTF; without these it is left out.
    #[arg(long)]
    no_why: bool,

    /// Only say how the command would be reached, and start nothing: status 0, or 2 with the reason if it would not
    #[arg(long, conflicts_with_all = ["compare", "json"])]
    check: bool,

    /// Print no report and do not record
    #[arg(long, short)]
    quiet: bool,

    /// The command and its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND", required = true)]
    command: Vec<OsString>,
}

impl Args {
    fn wants_why(&self) -> bool {
        !self.quiet && !self.no_why
    }

    fn settings(&self) -> Settings {
        Settings { policy: self.policy, longest_wait_ns: self.max_wait.unwrap_or(LONGEST_WAIT_NS) }
    }
}

fn wait_ns(text: &str) -> Result<u64, String> {
    let ns = parse_duration_ns(text).map_err(|error| error.to_string())?;
    if ns > LONGEST_WAIT_NS {
        return Err("above 20ms, the most; write 5ms or 500us".to_owned());
    }
    Ok(ns)
}

pub(super) fn copy_out(text: &str) -> Result<String, String> {
    match Key::CopyOut.check(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(status) = init::reap_for_child()? {
        return Ok(ExitCode::from(status));
    }
    let command = Command::resolve(&args.command, args.compare.is_some())?;
    let inspected = inspected(&command.program, args.quiet)?;
    if args.check {
        return check(&args, &command.program, &inspected);
    }
    let machine = Machine::from_environment();
    if let Err(error) = Leases::of(&machine).reap() {
        eprintln!("luc: what an earlier run lent could not be restored: {error}");
    }
    let plan = plan(&args, &machine)?;
    let decided = args.reach.decide(&inspected, plan.level)?;
    if let Some(note) = decided.note(&command.program, &inspected, plan.level, args.quiet) {
        eprintln!("luc: {note}");
    }
    let reach = decided.reach();
    let json = args.json.as_deref().map(JsonFile::new).transpose()?;
    if let Some(pairs) = args.compare {
        let compared = compare::Compared { command: &command, reach, pairs };
        return compare::main(&args, &machine, &plan, compared, json);
    }
    let luc = program();
    let settings = args.settings();
    let run = |started: Option<Start<'_>>| {
        luc_run::run(&luc, &machine, plan, &command, &settings, reach, started)
    };
    let Recorded { outcome, why } = if args.wants_why() {
        luc_run::explain_meanwhile(|started| run(Some(started)))?
    } else {
        Recorded { outcome: run(None)?, why: Ok(None) }
    };
    say_failures(&outcome);
    if !args.quiet {
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

/// Says what would happen to a program; the error says why it would not be reached.
fn check(args: &Args, path: &Path, program: &Gateability) -> anyhow::Result<ExitCode> {
    let plan = plan(args, &Machine::from_environment())?;
    let decided = args.reach.decide(program, plan.level)?;
    let text = decided.check(path, program, plan.level)?;
    if !args.quiet {
        println!("{text}");
    }
    Ok(ExitCode::SUCCESS)
}

/// A run and, if it was recorded, why it was as fast as it was.
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

/// Writes the report of a command that ended with `status`. That it cannot be written costs no other status than 0.
fn write_json(json: Option<JsonFile>, report: &impl serde::Serialize, status: u8) -> ExitCode {
    match json.map_or(Ok(()), |json| json.write(report)) {
        Err(error) if !output::is_reader_gone(error.as_ref()) => {
            eprintln!("luc: {error:#}");
            ExitCode::from(if status == 0 { 2 } else { status })
        }
        _ => ExitCode::from(status),
    }
}

fn program() -> PathBuf {
    // Without /proc it does not know its path, and only watchers over lent settings need it.
    std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into())
}

/// Looks at a program that may be executed. Of one that may not be read as well, only its mode is known.
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
fn plan(args: &Args, machine: &Machine) -> anyhow::Result<Plan> {
    let plan = level::plan(machine, args.level.into(), || {
        luc_run::requested(args.policy, args.max_wait, args.copy_out.as_deref())
    })?;
    if plan.level == EffectiveLevel::Gate && args.copy_out.is_some() {
        anyhow::bail!(
            "--copy-out is the kernel module's: load it by `luc kernel load` (root), and use another --level than gate"
        );
    }
    if let Some(note) = plan.note.as_ref().filter(|_| !args.quiet) {
        eprintln!("luc: {note}");
    }
    Ok(plan)
}
