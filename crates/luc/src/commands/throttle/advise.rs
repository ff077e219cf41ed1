//! `luc throttle advise`: what the throttle would do and gain.

mod show;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use indicatif::ProgressBar;
use luc_throttle::advise::{AdviseOptions, ThrottleAdvice, of_cgroups, of_commands};
use luc_throttle::config::{CgroupRule, PATH, ThrottleConfig};
use luc_throttle::run_commands::TaskClass;
use luc_units::parse_duration_ns;

use crate::commands::{INTERRUPTED, own_path, progress_bar, styled};

/// Predict what the throttle would do and gain, without freezing anybody (root)
///
/// It watches the tasks for a while and says for each disk who slows whom. Then it fits a model of the disk to what
/// was seen, and runs the throttle's policy on that model. It prints the predicted time of each task with the
/// throttle. If nothing can be gained it says why. Tasks that have not ended are taken to have as much to do as they
/// did so far.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  luc throttle advise --for 30s 'system.slice/backup-*.service'
  luc throttle advise --config /etc/luc/throttle.toml
  luc throttle advise --task 'tar cf /backup/a.tar /srv/a' --task 'tar cf /backup/b.tar /srv/b'

A disk that `luc throttle learn` has measured is predicted better.

Exit status: 0; 1 if a command failed; 2 if this machine does not allow it or nothing matches; 130 after Ctrl-C, with
advice on what was seen by then.")]
pub(super) struct Args {
    /// Cgroups that might be frozen, below the root cgroup, with *, ? and [...]
    #[arg(value_name = "GLOB", conflicts_with_all = ["config", "tasks"])]
    cgroups: Vec<String>,

    /// A command to run, without any throttle, and to watch until it ends; give it once for each command
    #[arg(long = "task", value_name = "COMMAND", conflicts_with_all = ["config", "watch_ns"])]
    tasks: Vec<OsString>,

    /// The cgroups that this configuration of the daemon names [default: /etc/luc/throttle.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Watch for TIME
    #[arg(long = "for", id = "watch_ns", value_name = "TIME", default_value = "60s", value_parser = parse_duration_ns)]
    watch_ns: u64,

    /// Only look at this disk, such as sda; give it once for each [default: all]
    #[arg(long, value_name = "DISK")]
    disk: Vec<String>,

    /// Longest freeze that the throttle would be allowed
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration_ns)]
    max_frozen: u64,

    /// Print JSON, with all figures
    #[arg(long)]
    json: bool,
}

pub(super) fn main(args: &Args) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(args.watch_ns > 0, "--for 0: nothing would be seen; give a time such as 30s");
    let options = AdviseOptions { disks: args.disk.clone(), max_frozen_ns: args.max_frozen };
    luc_host::interrupt_flag::install()?;
    let advice = if args.tasks.is_empty() {
        let config = config(args)?;
        let bar = progress_bar(args.watch_ns / 1_000_000, "watching {bar:32} {eta} left");
        let advice = of_cgroups(&config, args.watch_ns, &options, &mut |seconds| {
            bar.set_position((seconds * 1e3) as u64);
        });
        bar.finish_and_clear();
        advice?
    } else {
        let luc = own_path()?;
        let spinner = spinner(args.tasks.len());
        let advice = of_commands(&luc, &args.tasks, &options, &mut |_| spinner.tick());
        spinner.finish_and_clear();
        advice?
    };
    if args.json {
        luc_cli::print_json(&advice)?;
    } else {
        print!("{}", show::ThrottleAdviceText(&advice));
    }
    Ok(status(&advice))
}

fn status(advice: &ThrottleAdvice) -> ExitCode {
    if advice.is_interrupted {
        return ExitCode::from(INTERRUPTED);
    }
    ExitCode::from(u8::from(advice.statuses.iter().any(|status| *status != 0)))
}

fn config(args: &Args) -> anyhow::Result<ThrottleConfig> {
    if args.cgroups.is_empty() {
        let path = args.config.as_deref().unwrap_or(Path::new(PATH));
        return ThrottleConfig::read(path).with_context(|| {
            "no cgroups: name some, such as 'system.slice/backup-*.service', or give --config or --task"
        });
    }
    let rule = |pattern: &String| {
        let quoted = toml_string(pattern);
        format!("[[task]]\nmatch = {quoted}\nclass = \"batch\"\n")
    };
    // As a configuration they are checked as one.
    let text: String = args.cgroups.iter().map(rule).collect();
    let config = ThrottleConfig::parse(&text, Path::new("GLOB"))?;
    debug_assert!(config.rules.iter().all(|rule: &CgroupRule| rule.kind.class == TaskClass::Batch));
    Ok(config)
}

/// A basic string of TOML.
fn toml_string(text: &str) -> String {
    let escaped = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(escaped).collect::<String>())
}

fn spinner(tasks: usize) -> ProgressBar {
    let spinner = styled(ProgressBar::new_spinner(), "{spinner} {msg}, {elapsed}");
    spinner.set_message(format!("{tasks} tasks without a throttle"));
    spinner.enable_steady_tick(Duration::from_millis(200));
    spinner
}
