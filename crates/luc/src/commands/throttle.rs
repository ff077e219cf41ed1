//! `luc throttle`: tasks that ruin each other's disk take turns.

mod advise;
mod daemon;
mod learn;
mod run;
#[cfg(feature = "top")]
mod top;

use std::process::ExitCode;

/// Let tasks that ruin each other's disk take turns (root)
///
/// Tasks that read or write one disk at once can take many times as long as one after the other. The disk moves its
/// arm between them. luc freezes some of them (cgroup.freeze) while others run at speed. It freezes only tasks that
/// are named, and none for longer than --max-frozen. Whatever ends luc, everything is thawed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Run(Box<run::Args>),
    Advise(Box<advise::Args>),
    Learn(learn::Args),
    Daemon(daemon::Args),
    Status(daemon::ThrottleStatusArgs),
    #[cfg(feature = "top")]
    Top(top::Args),
    InstallUnit(daemon::InstallArgs),
    Thaw(ThawArgs),
    /// Watches a throttle and thaws what it leaves frozen
    #[command(hide = true)]
    Guardian,
}

/// Thaw whatever a throttle that was killed has left frozen (root)
///
/// The guardian of each throttle does this at once, and so does every other command of luc that root runs. Tasks
/// frozen by a living throttle, or by somebody else, are left alone.
#[derive(Debug, clap::Args)]
struct ThawArgs {
    /// Thaw what any throttle that is gone has left, which is the default
    #[arg(long)]
    all: bool,
}

impl Args {
    /// Whether this process is a helper that must not restore for others.
    pub(crate) fn is_helper(&self) -> bool {
        matches!(self.command, Command::Guardian | Command::Thaw(_))
    }
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Run(args) => run::main(&args),
        Command::Advise(args) => advise::main(&args),
        Command::Learn(args) => learn::main(&args),
        Command::Daemon(args) => daemon::main(&args),
        Command::Status(args) => daemon::status(&args),
        #[cfg(feature = "top")]
        Command::Top(args) => top::main(&args),
        Command::InstallUnit(args) => daemon::install(&args),
        Command::Thaw(_) => thaw(),
        Command::Guardian => {
            luc_throttle::guardian_process::main()?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn thaw() -> anyhow::Result<ExitCode> {
    luc_throttle::CgroupHierarchy::find()?;
    let restored = luc_throttle::frozen_record::restore_left();
    println!("{} cgroup{} thawed", restored.cgroups, if restored.cgroups == 1 { "" } else { "s" });
    if let Some(failure) = restored.failed.first() {
        anyhow::bail!("not all is thawed: {failure}");
    }
    Ok(ExitCode::SUCCESS)
}
