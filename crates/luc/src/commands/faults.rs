//! `luc faults`: checks that failed writes reach the program under the gate as without it.

mod text;

use std::ffi::OsString;
use std::io::{IsTerminal as _, stderr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use luc_disk::{BlockErrno, ModelSpec, kernel_release};
use luc_host::interrupt_flag::interrupted;
use luc_module::MachinePaths;
use luc_powercut::faults::{
    self, CommandPlan, FaultTrialSetting, FaultTrials, GateCommand, LoadedModule, TrialCall,
    TrialPolicy,
};
use luc_units::{parse_duration_ns, parse_size_bytes};

use super::disk::FailingRequestArgs;
use super::run::copy_out;
use super::run::gate_reach::ReachOption;
use super::{INTERRUPTED, own_path};

/// Time after which progress is shown.
const PROGRESS_DELAY: Duration = Duration::from_secs(2);

/// Check that failed writes of an emulated disk are reported to the program, with luc as without
///
/// A program writes to a file with a bad block and synchronizes it, while other threads synchronize other files. luc
/// compares what this call, its repetition and close report, with the gate or the kernel module and without.
///
/// It tries every errno of the block layer and each policy, with fsync, fdatasync, msync, O_SYNC and O_DSYNC. The
/// first, a middle or the last block is bad, of an overwritten or a preallocated file. In some trials the file is
/// closed and opened again before the call, in others flushes fail. This needs root and FUSE.
///
/// With a COMMAND, luc runs it on a failing disk, with luc and without, and compares the exit status.
///
/// Exit status: 0 no difference; 1 differences; 2 the trials could not be made; 130 interrupted.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  luc faults
  luc faults --errno ENODATA --policy engaged --call fsync
  luc faults --json > faults.json
  luc faults --reach notify                     # by notifications of system calls
  luc faults --level kernel                     # by the kernel module, which is loaded
  luc faults --runner ./old/luc                 # another build's gate
  luc faults --errno ENODATA --after 20 -- ./my-store
  luc faults --errno EIO --on flush --policy auto -- sqlite3 db 'create table t(x)'

A COMMAND works in its working directory, which is also in LUC_FAULTS_DIR: a new file system on a
disk that fails from the command's start on.")]
pub(crate) struct Args {
    /// Errno of the failed requests: a name or a number; may be repeated [default: all; with a COMMAND: EIO]
    #[arg(long, value_name = "E")]
    errno: Vec<BlockErrno>,
    /// Call that synchronizes: fsync, fdatasync, msync, o_sync, o_dsync; may be repeated [default: all]
    #[arg(long, value_name = "CALL", conflicts_with = "command")]
    call: Vec<TrialCall>,
    // No doc comment: rustdoc would take the brackets for links.
    #[arg(
        long,
        value_name = "P",
        help = "Policy, as in luc run, or engaged: auto, once others have engaged it; may be repeated [default: off, auto, engaged, delay, pid; with a COMMAND: auto]"
    )]
    policy: Vec<String>,
    #[command(flatten)]
    which: FailingRequestArgs,
    /// File system: ext4, xfs, ...
    #[arg(long, default_value = "ext4")]
    fs: String,
    /// Further options for mkfs
    #[arg(long, value_name = "OPTIONS", default_value = "", allow_hyphen_values = true)]
    mkfs_options: String,
    /// Mount options, as for mount -o; may be repeated: every trial is made with each [default for ext4:
    /// errors=continue and errors=remount-ro; with a COMMAND: none]
    #[arg(long, value_name = "OPTIONS")]
    mount_options: Vec<String>,
    /// Number of threads that synchronize other files meanwhile
    #[arg(long, value_name = "N", default_value_t = 8, conflicts_with = "command")]
    beside: usize,
    /// Time of a flush of the disk
    #[arg(long, value_name = "TIME", default_value = "6ms")]
    flush: String,
    /// Size of the disk, such as 256M
    #[arg(long, default_value = "256M")]
    size: String,
    /// Component that brings calls together
    #[arg(long, value_enum, default_value_t = Level::Gate)]
    level: Level,
    /// Kernel module only: when journal blocks are copied, as in luc run [default: on]
    #[arg(long, value_name = "MODE", value_parser = copy_out)]
    copy_out: Option<String>,
    /// Use the gate of this luc binary instead, through its `luc run`
    #[arg(long, value_name = "LUC")]
    runner: Option<PathBuf>,
    /// Way in which the gate reaches the program's calls, as in luc run
    #[arg(long, value_enum)]
    reach: Option<ReachOption>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Program to run instead of the trials
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Component that brings calls together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Level {
    /// The gate, in the program
    Gate,
    /// The kernel module, on the file system's journal
    Kernel,
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    luc_host::interrupt_flag::install()?;
    if args.command.is_empty() { matrix(&args) } else { command(&args) }
}

fn matrix(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(option) = args.which.given() {
        anyhow::bail!("{option} goes with a COMMAND only: leave it out, or add -- COMMAND");
    }
    let release = kernel_release();
    let errnos = if args.errno.is_empty() {
        BlockErrno::of_kernel(&release).collect()
    } else {
        args.errno.clone()
    };
    for errno in &errnos {
        errno.check_kernel(&release)?;
    }
    let mount_options: Vec<String> = match (args.mount_options.is_empty(), args.fs.as_str()) {
        (false, _) => args.mount_options.clone(),
        (true, "ext4") => ["errors=continue", "errors=remount-ro"].map(str::to_owned).into(),
        (true, _) => vec![String::new()],
    };
    let plan = FaultTrials {
        setting: setting(args, &["off", "auto", "engaged", "delay", "pid"])?,
        errnos,
        calls: if args.call.is_empty() { TrialCall::ALL.to_vec() } else { args.call.clone() },
        mount_options,
        beside: args.beside,
    };
    let bar = Bar::new();
    let report = match faults::run(&plan, &mut |done, of| bar.show(done, of)) {
        Err(_) if interrupted() => return Ok(ExitCode::from(INTERRUPTED)),
        report => report,
    };
    bar.0.finish_and_clear();
    let report = report?;
    if args.json {
        luc_cli::print_json(&report)?;
    } else {
        text::of_trials(&report);
    }
    Ok(match &report {
        report if !report.is_clean() => ExitCode::from(1),
        report if report.interrupted => ExitCode::from(INTERRUPTED),
        _ => ExitCode::SUCCESS,
    })
}

fn command(args: &Args) -> anyhow::Result<ExitCode> {
    let errno = match args.errno.as_slice() {
        [] => BlockErrno::EIO,
        [errno] => *errno,
        _ => anyhow::bail!("--errno was given more than once: a COMMAND is tried with one"),
    };
    let mount_options = match args.mount_options.as_slice() {
        [] => String::new(),
        [options] => options.clone(),
        _ => anyhow::bail!("--mount-options was given more than once: a COMMAND is tried with one"),
    };
    let plan = CommandPlan {
        setting: setting(args, &["auto"])?,
        mount_options,
        command: args.command.clone(),
        fault: args.which.fail_with(errno)?,
    };
    let report = match faults::run_command(&plan) {
        Err(_) if interrupted() => return Ok(ExitCode::from(INTERRUPTED)),
        report => report?,
    };
    if args.json {
        luc_cli::print_json(&report)?;
    } else {
        text::of_command(&report);
    }
    Ok(ExitCode::from(u8::from(!report.is_clean())))
}

fn setting(args: &Args, policies: &[&str]) -> anyhow::Result<FaultTrialSetting> {
    let policies: Vec<&str> = if args.policy.is_empty() {
        policies.to_vec()
    } else {
        args.policy.iter().map(String::as_str).collect()
    };
    let is_command = !args.command.is_empty();
    let policy = |text: &&str| match *text {
        "engaged" if is_command => {
            anyhow::bail!("--policy engaged goes without a COMMAND only: use auto")
        }
        "engaged" => Ok(TrialPolicy::Engaged),
        text => {
            text.parse::<luc_gate::GatePolicy>()?;
            Ok(TrialPolicy::Named(text.to_owned()))
        }
    };
    Ok(FaultTrialSetting {
        luc: own_path()?,
        fs: args.fs.clone(),
        mkfs_options: args.mkfs_options.clone(),
        model: ModelSpec::Fixed {
            read_ns: 20_000,
            write_ns: 20_000,
            flush_ns: parse_duration_ns(&args.flush)?,
        },
        size_bytes: parse_size_bytes(&args.size)?,
        policies: policies.iter().map(policy).collect::<anyhow::Result<_>>()?,
        level: match args.level {
            Level::Gate => faults::BatchingLevel::Gate(gate(args)?),
            Level::Kernel => faults::BatchingLevel::Kernel(module(args, &policies)?),
        },
    })
}

/// The module that is loaded, and what each policy is there.
fn module(args: &Args, policies: &[&str]) -> anyhow::Result<LoadedModule> {
    for (option, is_given) in
        [("--runner", args.runner.is_some()), ("--reach", args.reach.is_some())]
    {
        if is_given {
            anyhow::bail!("{option} is the gate's: leave it out, or use --level gate");
        }
    }
    let machine = MachinePaths::from_environment();
    luc_module::LucModule::open(&machine)?;
    let copy_out = args.copy_out.as_deref().unwrap_or("on");
    let settings = |text: &&str| {
        let word = if *text == "engaged" { "auto" } else { text };
        let policy: luc_gate::GatePolicy = word.parse()?;
        let mode = (policy != luc_gate::GatePolicy::Off).then_some(copy_out);
        let settings = luc_run::requested(policy, None, mode)?;
        Ok((word.to_owned(), settings))
    };
    Ok(LoadedModule {
        machine,
        settings: policies.iter().map(settings).collect::<anyhow::Result<_>>()?,
        off: luc_run::requested(luc_gate::GatePolicy::Off, None, None)?,
    })
}

fn gate(args: &Args) -> anyhow::Result<GateCommand> {
    if args.copy_out.is_some() {
        anyhow::bail!("--copy-out is the kernel module's: leave it out, or use --level kernel");
    }
    let (runner, reach) = (args.runner.as_ref(), args.reach);
    let luc = match runner {
        Some(runner) => runner.canonicalize().with_context(|| {
            format!(
                "--runner {}: it cannot be found; give a luc with its libluc_gate_preload.so beside it",
                runner.display()
            )
        })?,
        None => {
            luc_launch::preload_library::find()?;
            own_path()?
        }
    };
    // An old build may not know the option; by itself it takes the gate where the module is not loaded.
    let level = ["--level", "gate"].map(str::to_owned);
    let mut options: Vec<String> = level.into_iter().filter(|_| runner.is_none()).collect();
    options.extend(reach.map(|reach| format!("--reach={reach}")));
    Ok(GateCommand { luc, options })
}

/// A progress bar on a terminal's standard error, shown after two seconds.
struct Bar(ProgressBar, Instant);

impl Bar {
    fn new() -> Self {
        let bar = ProgressBar::hidden();
        let template = "batches of trials [{bar:40}] {pos}/{len}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        Self(bar, Instant::now())
    }

    fn show(&self, done: u64, of: u64) {
        self.0.set_length(of);
        if self.0.is_hidden() && stderr().is_terminal() && self.1.elapsed() > PROGRESS_DELAY {
            self.0.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.0.set_position(done);
    }
}
