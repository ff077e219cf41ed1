//! The command line of `luc run`, and what it asks for.

use std::ffi::OsString;
use std::path::PathBuf;

use luc_gate::rounds::join::LONGEST_WAIT_NS;
use luc_gate::{CallSettings, GatePolicy};
use luc_launch::RunCommand;
use luc_module::{SettingKey, level};
use luc_units::parse_duration_ns;

use super::gate_reach::ReachOption;

/// Component that brings callers together, by --level.
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

impl From<Level> for level::RequestedLevel {
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
/// luc brings fsync, fdatasync and msync(MS_SYNC) calls on one ext4 file system into common commits. They may be of
/// any thread or process of the command, or of another `luc run` of the same user. Nothing else changes: every call
/// is still made, and still waits until its data is durable. The gate engages only where it measures a gain.
///
/// If the kernel module is loaded (luc kernel load), it does the same inside the kernel. It works on the journals of
/// the file systems that the command uses. Its settings are restored when the run ends, however it ends.
///
/// A library is loaded into dynamically linked programs. Static ones and Go programs are reached by a filter of
/// system calls. The kernel notifies luc of each fsync and fdatasync, which luc holds and lets go on (--reach).
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
        help = "Policy that brings callers together: auto, off (only count), delay[:TIME[:RESTARTS]] or pid[:CALLERS]"
    )]
    policy: GatePolicy,

    /// Component that brings callers together
    #[arg(long, value_enum, default_value_t = Level::Auto)]
    level: Level,

    /// Way in which the gate reaches the command's calls
    #[arg(long, value_enum, default_value_t = ReachOption::Auto)]
    reach: ReachOption,

    /// Kernel module only: when journal blocks are copied: off, on, heuristic or auto [default: auto]
    #[arg(long, value_name = "MODE", value_parser = copy_out)]
    copy_out: Option<String>,

    /// Hold no caller longer than TIME beyond the commit in flight, such as 500us; at most 20ms [default: 20ms]
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

/// A command to run, and how: the command line without its grammar.
#[derive(Debug)]
pub(super) struct RunRequest {
    pub(super) command: RunCommand,
    pub(super) mode: RunMode,
    pub(super) level: level::RequestedLevel,
    pub(super) reach: ReachOption,
    pub(super) policy: GatePolicy,
    /// Longest time that a caller is held, if one was given.
    pub(super) max_wait_ns: Option<u64>,
    /// Copying mode of the kernel module, if one was given.
    pub(super) copy_out: Option<String>,
    /// File for the report as JSON.
    pub(super) json: Option<PathBuf>,
    /// Whether the report says what the calls' time went into.
    pub(super) explains: bool,
    pub(super) is_quiet: bool,
}

/// Mode of `luc run`: check, one run, or a comparison.
#[derive(Clone, Copy, Debug)]
pub(super) enum RunMode {
    /// None: only says how the command would be reached.
    Check,
    Once,
    Compare {
        /// Runs of each side.
        pairs: u32,
        /// Seed of the random order.
        seed: u64,
    },
}

impl Args {
    /// Finds the command's program, and takes the options apart from their grammar.
    pub(super) fn request(self) -> anyhow::Result<RunRequest> {
        let mode = match self.compare {
            _ if self.check => RunMode::Check,
            Some(pairs) => RunMode::Compare { pairs, seed: self.seed },
            None => RunMode::Once,
        };
        Ok(RunRequest {
            command: RunCommand::resolve(&self.command, self.compare.is_some())?,
            mode,
            level: self.level.into(),
            reach: self.reach,
            policy: self.policy,
            max_wait_ns: self.max_wait,
            copy_out: self.copy_out,
            json: self.json,
            explains: !self.quiet && !self.no_why,
            is_quiet: self.quiet,
        })
    }
}

impl RunRequest {
    /// Settings of the gate.
    pub(super) fn settings(&self) -> CallSettings {
        let longest_wait_ns = self.max_wait_ns.unwrap_or(LONGEST_WAIT_NS);
        CallSettings { policy: self.policy, longest_wait_ns }
    }
}

fn wait_ns(text: &str) -> Result<u64, String> {
    let ns = parse_duration_ns(text).map_err(|error| error.to_string())?;
    if ns > LONGEST_WAIT_NS {
        return Err("above 20ms, the most; write 5ms or 500us".to_owned());
    }
    Ok(ns)
}

pub(in crate::commands) fn copy_out(text: &str) -> Result<String, String> {
    match SettingKey::CopyOut.check(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
