//! `luc enable`, `luc disable`, `luc status` and `luc attach`: the gate for services that systemd starts, and for what runs.

mod text;

use std::process::ExitCode;

use luc_module::{Machine, Module};
use luc_service::enable::{self, Enabled};
use luc_service::plan::Reach;
use luc_service::{status as services, systemctl};

/// `--reach`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ReachWord {
    /// The library where it gets into the service's programs, else notifications
    Auto,
    /// A library that is loaded into dynamically linked programs
    Library,
    /// Notifications of system calls (Linux 5.19): every program of the service, and together with those of other users
    Notify,
}

impl From<ReachWord> for Reach {
    fn from(reach: ReachWord) -> Self {
        match reach {
            ReachWord::Auto => Self::Auto,
            ReachWord::Library => Self::Library,
            ReachWord::Notify => Self::Notify,
        }
    }
}

/// Bring the fsyncs of services into common journal commits (root)
///
/// One file is written for each service, /etc/systemd/system/UNIT.d/50-luc.conf, by which systemd starts its programs
/// with luc's library, or under a filter that notifies lucd of their calls (--reach). The service's own unit stays as its
/// package has it. Callers are held only while that makes them faster, as by `luc run`. With the library, services of one
/// user meet, and `luc run`s of that user; with notifications, services of all users.
///
/// Nothing is changed unless all services can be enabled. The change is due at a service's next start.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  luc enable --dry-run redis-server      # what would be written, and what it changes in the sandbox
  luc enable redis-server --now
  luc enable --reach notify postfix@- dovecot   # of several users, on one journal
  luc status redis-server                # what reaches its processes, and what was gained

Exit status: 0, or 2 if a service cannot be enabled; then all is as it was.")]
pub(crate) struct EnableArgs {
    /// Services, as systemctl names them
    #[arg(value_name = "UNIT", required = true)]
    units: Vec<String>,

    /// How the gate gets to the services' calls
    #[arg(long, value_enum, default_value_t = ReachWord::Auto)]
    reach: ReachWord,

    /// Restart those that run, so that it takes effect at once; if one does not start, all is as it was
    #[arg(long)]
    now: bool,

    /// Only print what would be done
    #[arg(long)]
    dry_run: bool,

    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Take services out of the gate again (root)
///
/// Removes what `luc enable` has written; one that is not enabled stays so. A service that runs keeps the gate until its next start.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  luc disable redis-server --now
  luc disable --all")]
pub(crate) struct DisableArgs {
    /// Services, as systemctl names them
    #[arg(value_name = "UNIT", required_unless_present = "all")]
    units: Vec<String>,

    /// All that are enabled
    #[arg(long, conflicts_with = "units")]
    all: bool,

    /// Restart those that run, so that it takes effect at once
    #[arg(long)]
    now: bool,
}

/// Which processes of services and containers the gate reaches, and what it gained
///
/// This looks at the processes themselves: whether the library is in them and takes part, or whether lucd serves a filter
/// that they are under. Those that nothing reaches are named. Of other users' processes and of containers only root sees
/// all.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  luc status                     # all services that are enabled, all containers that are served
  luc status redis-server --json
  luc status 8f1f2c3d4e5f        # a container, by its id or 12 characters of it

Exit status: 0; 1 if a process of one that runs is not reached; 2 if there is no such service or container.")]
pub(crate) struct StatusArgs {
    /// Services, as systemctl names them, or ids of containers; without, all
    #[arg(value_name = "NAME")]
    units: Vec<String>,

    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Bring the fsyncs of a process that runs into common journal commits, for as long as it lives (root, x86-64)
///
/// One thread of the process is stopped for a moment and installs a filter of system calls for all of its
/// threads, as `luc run --reach notify` does before a program begins. lucd serves it from then on. There is no way back:
/// the filter stays until the process has ended, and all that it starts are under it as well. Children that it has
/// already are not.
///
/// A call that the stopped thread is in is made again; epoll_wait, and others that no debugger restarts, return EINTR.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  systemctl enable --now lucd.socket    # first: lucd takes the process over there
  luc attach 4711 --permanently
  luc status pid-4711                   # what was gained

Refused: a process under a filter of system calls, which could end it; one that is traced; 32-bit code;
one without CAP_SYS_ADMIN that may gain privileges, unless --no-new-privs.

Exit status: 0, or 2 if the process cannot be attached.")]
pub(crate) struct AttachArgs {
    /// The process, by its number
    #[arg(value_name = "PID")]
    process: u32,

    /// Say that you know that it is for ever
    #[arg(long)]
    permanently: bool,

    /// Where the kernel demands it, take from the process and all below it the chance to gain privileges: sudo, ping and
    /// postdrop fail there
    #[arg(long)]
    no_new_privs: bool,
}

/// Refuses what the kernel module makes useless.
fn refuse_module(what: &str) -> anyhow::Result<()> {
    match Module::loaded_version(&Machine::from_environment()) {
        None => Ok(()),
        Some(version) => anyhow::bail!(
            "the kernel module (version {version}) batches the calls of every program already: {what}, or unload it by \
             `luc kernel unload`"
        ),
    }
}

pub(crate) fn attach(args: &AttachArgs) -> anyhow::Result<ExitCode> {
    if !args.permanently {
        anyhow::bail!(
            "process {}: a filter of system calls stays until it has ended: say so by --permanently",
            args.process
        );
    }
    refuse_module("attach no process")?;
    let name = luc_service::attach::attach(args.process, args.no_new_privs)?;
    println!("process {}: attached; `luc status {name}` says what is gained", args.process);
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn enable(args: &EnableArgs) -> anyhow::Result<ExitCode> {
    systemctl::check()?;
    refuse_module("enable no service")?;
    let plans = enable::plan(&args.units, args.reach.into())?;
    if !args.dry_run {
        enable::enable(&plans, args.now)?;
    }
    if args.json {
        luc_cli::print_json(&plans)?;
    } else {
        for plan in &plans {
            print!("{}", text::enabled(plan, args.dry_run));
        }
    }
    if !args.json && !args.now {
        for Enabled { plan, .. } in plans.iter().filter(|plan| plan.runs) {
            let unit = &plan.unit;
            println!("{unit}: it runs, so a restart is due: `systemctl restart {unit}`, or --now");
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn disable(args: &DisableArgs) -> anyhow::Result<ExitCode> {
    let units = if args.all { luc_service::drop_in::enabled()? } else { args.units.clone() };
    let enable::Disabled { names, were_not } = enable::disable(&units)?;
    for name in &were_not {
        println!("{name}: was not enabled; nothing to do");
    }
    if args.all && names.is_empty() {
        println!("no service is enabled; nothing to do");
    }
    for name in &names {
        println!("{name}: not enabled any more");
    }
    if args.now {
        names.iter().try_for_each(|name| systemctl::restart(name))?;
    } else if !names.is_empty() {
        println!("services that run keep the gate until they are restarted");
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn status(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let all = services::status(&args.units)?;
    if args.json {
        luc_cli::print_json(&all)?;
    } else if all.is_empty() {
        println!(
            "no service is enabled: `luc enable UNIT` does that; no container is served: see `luc oci-profile --help`"
        );
    } else {
        for status in &all {
            print!("{}", text::status(status));
        }
    }
    let is_missed = |status: &services::Status| {
        status.way.is_some() && status.processes.iter().any(|one| one.reached.is_missed())
    };
    Ok(ExitCode::from(u8::from(all.iter().any(is_missed))))
}
