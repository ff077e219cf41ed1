//! `luc enable`, `disable`, `status` and `attach`: the gate for systemd's services and for running processes.

mod text;

use std::process::ExitCode;

use luc_module::{LucModule, MachinePaths};
use luc_service::enable_plan::RequestedWay;
use luc_service::enable_units::{self, EnabledUnit};
use luc_service::{systemctl, unit_status as services};

/// Way in which the gate reaches a service's calls, by --reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ReachWord {
    /// The library where it gets into the service's programs, else notifications
    Auto,
    /// A library that is loaded into dynamically linked programs
    Library,
    /// Notifications of system calls (Linux 5.19), for every program of the service, and across users
    Notify,
}

impl From<ReachWord> for RequestedWay {
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
/// One file is written for each service, /etc/systemd/system/UNIT.d/50-luc.conf. Through it systemd starts the
/// service with luc's library, or under a filter of system calls that notifies lucd (--reach). The package's own unit
/// is not changed.
///
/// Callers are held only while that makes them faster, as by `luc run`. With the library, commits are shared by
/// services of one user and `luc run`s of that user. With notifications, they are shared by services of all users.
///
/// Nothing is changed unless all services can be enabled. The change takes effect at a service's next start.
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

    /// Way in which the gate reaches the services' calls
    #[arg(long, value_enum, default_value_t = ReachWord::Auto)]
    reach: ReachWord,

    /// Restart services that run, so that it takes effect at once; if one does not start, all is as it was
    #[arg(long)]
    now: bool,

    /// Only print what would be done
    #[arg(long)]
    dry_run: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Take services out of the gate again (root)
///
/// Removes what `luc enable` has written; a service that is not enabled stays so. A service that runs keeps the gate
/// until its next start.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  luc disable redis-server --now
  luc disable --all")]
pub(crate) struct DisableArgs {
    /// Services, as systemctl names them
    #[arg(value_name = "UNIT", required_unless_present = "all")]
    units: Vec<String>,

    /// All services that are enabled
    #[arg(long, conflicts_with = "units")]
    all: bool,

    /// Restart services that run, so that it takes effect at once
    #[arg(long)]
    now: bool,
}

/// Show which processes of services and containers the gate reaches, and what it gained
///
/// luc looks at the processes themselves: whether the library is in them and takes part, or whether lucd serves their
/// filter. Processes that nothing reaches are named. Only root sees containers and all processes of other users.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  luc status                     # all services that are enabled, all containers that are served
  luc status redis-server --json
  luc status 8f1f2c3d4e5f        # a container, by its id or 12 characters of it

Exit status: 0; 1 if a process of one that runs is not reached; 2 if there is no such service or container.")]
pub(crate) struct ServiceStatusArgs {
    /// Services, as systemctl names them, or ids of containers; without, all
    #[arg(value_name = "NAME")]
    units: Vec<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Bring the fsyncs of a running process into common journal commits, for as long as it lives (root, x86-64)
///
/// luc stops one thread of the process for a moment. That thread installs a filter of system calls for all threads,
/// as `luc run --reach notify` does at start. lucd serves the filter from then on.
///
/// The filter stays until the process has ended. Processes that it starts later are under it, too; its present
/// children are not.
///
/// A call that the stopped thread is in is made again. epoll_wait, and other calls that no debugger restarts, return
/// EINTR.
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
    /// Number of the process
    #[arg(value_name = "PID")]
    process: u32,

    /// Confirm that the filter stays until the process ends; without it nothing is done
    #[arg(long)]
    permanently: bool,

    /// Take from the process and all below it the chance to gain privileges, if the kernel demands that
    ///
    /// Programs such as sudo, ping and postdrop then fail there.
    ///
    /// Programs such as sudo, ping and postdrop then fail there.
    #[arg(long)]
    no_new_privs: bool,
}

/// Refuses what the kernel module makes useless.
fn refuse_module(what: &str) -> anyhow::Result<()> {
    match LucModule::loaded_version(&MachinePaths::from_environment()) {
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
    let name = luc_service::attach_process::attach(args.process, args.no_new_privs)?;
    println!("process {}: attached; `luc status {name}` says what is gained", args.process);
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn enable(args: &EnableArgs) -> anyhow::Result<ExitCode> {
    systemctl::check()?;
    refuse_module("enable no service")?;
    let plans = enable_units::plan(&args.units, args.reach.into())?;
    if !args.dry_run {
        enable_units::enable(&plans, args.now)?;
    }
    if args.json {
        luc_cli::print_json(&plans)?;
    } else {
        for plan in &plans {
            print!("{}", text::enabled(plan, args.dry_run));
        }
    }
    if !args.json && !args.now {
        for EnabledUnit { plan, .. } in plans.iter().filter(|plan| plan.runs) {
            let unit = &plan.unit;
            println!("{unit}: it runs, so a restart is due: `systemctl restart {unit}`, or --now");
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn disable(args: &DisableArgs) -> anyhow::Result<ExitCode> {
    let units = if args.all { luc_service::drop_in::enabled()? } else { args.units.clone() };
    let enable_units::DisabledUnits { names, were_not } = enable_units::disable(&units)?;
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

pub(crate) fn status(args: &ServiceStatusArgs) -> anyhow::Result<ExitCode> {
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
    let is_missed = |status: &services::UnitStatus| {
        status.way.is_some() && status.processes.iter().any(|one| one.reached.is_missed())
    };
    Ok(ExitCode::from(u8::from(all.iter().any(is_missed))))
}
