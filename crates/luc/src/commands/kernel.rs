//! `luc kernel`: builds, loads, sets, watches and unloads the module.

mod status;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::Subcommand;
use luc_module::build_module::{self, BuildWhen};
use luc_module::setting_leases::{self, SettingLeases};
use luc_module::{JournalSettings, LucModule, MachinePaths, ModuleJournal};
use luc_units::parse_duration_ns;

/// Build, load, watch, set and unload the kernel module
///
/// luc.ko brings fsyncs into common journal commits inside the kernel, for every program and without a library. It
/// also journals metadata from copies, so that writes do not wait for commits. It loads into an unmodified kernel,
/// and unloads, while file systems are mounted. `luc run` uses it where it is loaded.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Build the module for a kernel, against its headers
    ///
    /// luc includes the sources. The build directory is /var/cache/luc/kernel (root) or ~/.cache/luc/kernel; luc
    /// refuses it if other users can write to it.
    #[command(after_help = "\
Examples:
  luc kernel build
  luc kernel build --kernel 6.1.0-18-amd64")]
    Build {
        /// Kernel release, as in /lib/modules [default: the running kernel's]
        #[arg(long, value_name = "VERSION")]
        kernel: Option<String>,
    },
    /// Load the module; build it first if needed (root)
    ///
    /// The options apply to all mounted journals and to later mounts. Without options, the module changes nothing
    /// until `luc kernel set` or `luc run` asks it to.
    #[command(after_help = "\
Examples:
  luc kernel load                                # only for luc run, and to look
  luc kernel load --policy auto --copy-out auto  # for everybody, from now on")]
    Load {
        /// Policy that holds commits: off, delay, pid or auto
        #[arg(long)]
        policy: Option<String>,
        /// Copying of journal blocks: off, on, heuristic or auto
        #[arg(long, value_name = "MODE")]
        copy_out: Option<String>,
    },
    Status(status::Args),
    /// Change settings of journals; all of them or none (root)
    ///
    /// All settings are checked before the first is written. If the module refuses one, those before it are taken
    /// back. Settings last until the file system is unmounted or the module unloaded.
    #[command(after_help = "\
Examples:
  luc kernel set /srv/mail policy=auto copy_out=auto
  luc kernel set /dev/sda1 loop0-8 policy=delay delay_us=500 max_hold_us=5000
  luc kernel set --all policy=off copy_out=off

Settings: policy, copy_out, delay_us, max_restarts, timeout_us, max_hold_us (50000 at most), set_point, kp_milli,
ki_milli, kd_milli, copy_out_threshold_permille, copy_out_clean_runs, copy_out_limit_kib.")]
    Set {
        /// Change every journal
        #[arg(long)]
        all: bool,
        /// Mount points, devices or journals, followed by settings NAME=VALUE
        #[arg(required = true, value_name = "MOUNTPOINT|DEVICE|KEY=VALUE")]
        words: Vec<String>,
    },
    /// Unload the module; wait until nobody uses it (root)
    #[command(after_help = "Example:\n  luc kernel unload --timeout 1m")]
    Unload {
        /// Longest time to wait for users of the module, such as 30s or 1m
        #[arg(long, value_name = "TIME", default_value = "10s")]
        timeout: String,
    },
    /// Restore what a process has lent, after its end
    #[command(hide = true)]
    Watch {
        holder: String,
    },
}

impl Args {
    /// Whether this process watches over a run.
    pub(crate) fn is_watcher(&self) -> bool {
        matches!(self.action, Action::Watch { .. })
    }
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    let machine = MachinePaths::from_environment();
    match args.action {
        Action::Watch { holder } => {
            setting_leases::watch(&machine, &holder)?;
            return Ok(ExitCode::SUCCESS);
        }
        _ => {
            SettingLeases::of(&machine).reap()?;
        }
    }
    match args.action {
        Action::Build { kernel } => {
            let kernel = kernel.unwrap_or_else(|| machine.running_kernel());
            let built = build_module::build(&machine, &kernel, BuildWhen::Always)?;
            println!("built {} for kernel {kernel}", built.path.display());
        }
        Action::Load { policy, copy_out } => load(&machine, policy, copy_out)?,
        Action::Status(args) => return status::main(&machine, &args),
        Action::Set { all, words } => set(&machine, all, &words)?,
        Action::Unload { timeout } => {
            let patience = Duration::from_nanos(parse_duration_ns(&timeout)?);
            luc_module::unload(&machine, patience, &mut |holders| {
                eprintln!("luc: waiting for {holders}");
            })?;
            println!("luc.ko is unloaded");
        }
        Action::Watch { .. } => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn load(
    machine: &MachinePaths,
    policy: Option<String>,
    copy_out: Option<String>,
) -> anyhow::Result<()> {
    let words = [
        policy.map(|value| format!("policy={value}")),
        copy_out.map(|value| format!("copy_out={value}")),
    ];
    let settings = JournalSettings::parse(words.iter().flatten().map(String::as_str))?;
    let loaded = luc_module::load(machine, &settings)?;
    let version = &loaded.module.version;
    let journals = loaded.module.journals()?;
    let names: Vec<_> = journals.iter().map(|journal| journal.name.as_str()).collect();
    let names = if names.is_empty() { "no journal yet".to_owned() } else { names.join(", ") };
    match loaded.path {
        Some(path) => println!("luc.ko {version} is loaded from {}; {names}", path.display()),
        None if settings.is_empty() => println!("luc.ko {version} was loaded already; {names}"),
        None => println!(
            "luc.ko {version} was loaded already; {names}; later mounts start with what it was loaded with"
        ),
    }
    // A module loaded just now starts its journals with these.
    if !settings.is_empty() && !journals.is_empty() {
        luc_module::set(machine, &journals, &settings)?;
    }
    Ok(())
}

fn set(machine: &MachinePaths, all: bool, words: &[String]) -> anyhow::Result<()> {
    // A path may have an equals sign, but not before its first slash.
    let is_setting =
        |word: &&String| word.split_once('=').is_some_and(|(name, _)| !name.contains('/'));
    let (settings, places): (Vec<_>, Vec<_>) = words.iter().partition(is_setting);
    let settings = JournalSettings::parse(settings.into_iter().map(String::as_str))?;
    if settings.is_empty() {
        bail!("no setting is given: add one, as in policy=auto");
    }
    if all != places.is_empty() {
        bail!("give either mount points, devices or journals, or --all");
    }
    let module = LucModule::open(machine)?;
    let journals: Vec<ModuleJournal> = if all {
        module.journals()?
    } else {
        let found: Result<_, _> = places.iter().map(|place| module.find(place)).collect();
        found?
    };
    luc_module::set(machine, &journals, &settings)?;
    for journal in &journals {
        let values: Vec<_> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
        println!("{}: {}", journal.name, values.join(" "));
    }
    Ok(())
}
