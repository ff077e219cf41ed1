//! `luc throttle daemon`, `status` and `install-unit`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use luc_throttle::config::{CgroupRule, EXAMPLE, PATH, ThrottleConfig, class_name};
use luc_throttle::daemon::{ThrottleStatus, run, status_path};
use luc_throttle::disk_observer::DiskObserver;
use luc_throttle::{CgroupHierarchy, PolicyChoice};
use luc_units::number_formats::{FormattedSize, FormattedTime};
use luc_units::plain;

use crate::commands::own_path;

/// The unit, in which @LUC@ is this program.
const UNIT: &str = include_str!("luc-throttle.service");
/// Maximum number of cgroups of each rule that `--check` names.
const MAX_NAMES: usize = 8;
const UNIT_PATH: &str = "/etc/systemd/system/luc-throttle.service";

/// Let services and containers take turns at the disks, as a configuration says (root)
///
/// Cgroups of class batch may be frozen, those of class protect never. batch steps back while protect uses the disk.
/// New cgroups are found within a second. Whatever the configuration says, init, sshd, dbus, journald, container
/// runtimes and whoever started luc are never frozen.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  luc throttle daemon --check
  luc throttle daemon --config throttle.toml

A configuration:
  max_frozen = \"10s\"
  [[task]]
  match = \"system.slice/postgresql*.service\"
  class = \"protect\"
  [[task]]
  match = \"system.slice/backup-*.service\"
  class = \"batch\"")]
pub(super) struct Args {
    /// File of the configuration
    #[arg(long, value_name = "FILE", default_value = PATH)]
    config: PathBuf,

    // No doc comment: rustdoc would take the brackets for links.
    #[arg(
        long,
        default_value = "auto",
        help = "Policy of turns: auto, fcfs (one after the other) or turns[:TIME]"
    )]
    policy: PolicyChoice,

    /// Only check the configuration and this machine, and list the cgroups that each rule matches now
    #[arg(long)]
    check: bool,
}

/// Show what the daemon is doing (root)
#[derive(Debug, clap::Args)]
pub(super) struct ThrottleStatusArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Install a systemd unit for the daemon, and an example of its configuration (root)
///
/// Nothing is started: edit /etc/luc/throttle.toml, then `systemctl enable --now luc-throttle`.
#[derive(Debug, clap::Args)]
pub(super) struct InstallArgs {
    /// Only print the unit
    #[arg(long)]
    print: bool,
}

pub(super) fn main(args: &Args) -> anyhow::Result<ExitCode> {
    let config = ThrottleConfig::read(&args.config)?;
    if args.check {
        let hierarchy = CgroupHierarchy::find()?;
        DiskObserver::check(&config.disks)?;
        println!("{}: {} rules", args.config.display(), config.rules.len());
        for (rule, cgroups) in config.matched(hierarchy.root()) {
            println!("{}", matched(rule, &cgroups, hierarchy.root()));
        }
        return Ok(ExitCode::SUCCESS);
    }
    anyhow::ensure!(
        args.policy != PolicyChoice::Off,
        "--policy off: the daemon would never freeze anything; do not start it"
    );
    luc_host::interrupt_flag::install()?;
    run(&own_path()?, config, args.policy.clone(), &mut |line| {
        eprintln!("luc throttle: {line}");
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A line with the cgroups that a rule matches now.
fn matched(rule: &CgroupRule, cgroups: &[PathBuf], root: &Path) -> String {
    let pattern = plain(&rule.pattern);
    let about = format!("{:<8} {pattern}: ", class_name(rule.kind.class));
    let name = |path: &PathBuf| {
        let path = path.strip_prefix(root).unwrap_or(path);
        plain(&path.to_string_lossy())
    };
    let mut names: Vec<String> = cgroups.iter().take(MAX_NAMES).map(name).collect();
    if cgroups.len() > MAX_NAMES {
        names.push(format!("and {} more", cgroups.len() - MAX_NAMES));
    }
    match cgroups.len() {
        0 => format!("{about}no cgroup that is there now (systemd-cgls shows them)"),
        1 => format!("{about}1 cgroup: {}", names.join(", ")),
        count => format!("{about}{count} cgroups: {}", names.join(", ")),
    }
}

pub(super) fn status(args: &ThrottleStatusArgs) -> anyhow::Result<ExitCode> {
    let status = ThrottleStatus::read()
        .with_context(|| format!("{} cannot be read", status_path().display()))?;
    let Some(status) = status else {
        anyhow::bail!("no luc throttle daemon runs here: start one by `luc throttle daemon`");
    };
    if args.json {
        luc_cli::print_json(&status)?;
    } else {
        print(&status);
    }
    Ok(ExitCode::SUCCESS)
}

fn print(status: &ThrottleStatus) {
    println!(
        "{:<8} {:<7} {:>9} {:>9} {:>8} {:>10} {:>10} {:>10}  cgroup",
        "class", "now", "frozen", "longest", "freezes", "moved", "at disk", "waited"
    );
    let time = |seconds: f64| FormattedTime(seconds * 1e9).to_string();
    for task in &status.tasks {
        println!(
            "{:<8} {:<7} {:>9} {:>9} {:>8} {:>10} {:>10} {:>10}  {}",
            task.class,
            if task.frozen { "frozen" } else { "runs" },
            time(task.frozen_s),
            time(task.longest_frozen_s),
            task.freezes,
            FormattedSize(task.bytes as f64).to_string(),
            time(task.device_s),
            time(task.queue_s),
            plain(&task.cgroup.to_string_lossy()),
        );
    }
    for order in &status.orders {
        println!("{} for {}: {}", order.action, order.reason, order.count);
    }
}

pub(super) fn install(args: &InstallArgs) -> anyhow::Result<ExitCode> {
    let unit = UNIT.replace("@LUC@", &own_path()?.display().to_string());
    if args.print {
        print!("{unit}");
        return Ok(ExitCode::SUCCESS);
    }
    let written = |path: &str| format!("{path} cannot be written: this needs root");
    if !Path::new(PATH).exists() {
        fs::create_dir_all("/etc/luc").with_context(|| written("/etc/luc"))?;
        fs::write(PATH, EXAMPLE).with_context(|| written(PATH))?;
        println!("{PATH}: an example; edit it");
    }
    fs::write(UNIT_PATH, unit).with_context(|| written(UNIT_PATH))?;
    println!("{UNIT_PATH}: start it by `systemctl enable --now luc-throttle`");
    Ok(ExitCode::SUCCESS)
}
