//! `luc throttle run`: commands as tasks of one throttle.

mod compare;
mod show;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use luc_cli::JsonFile;
use luc_throttle::engine::EngineOptions;
use luc_throttle::run_commands::{CommandTask, TaskClass, ThrottledRunOptions};
use luc_throttle::{BATCH_FLOOR, PolicyChoice};
use luc_units::{parse_duration_ns, parse_size_bytes};

use crate::commands::{INTERRUPTED, own_path};

/// Run commands together so that they do not ruin each other's disk
///
/// Each --task is a command for the shell and gets a cgroup of its own. All are started together. While one reads or
/// writes at speed, the others that want the same disk are frozen. Nobody is frozen where nothing is gained.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  luc throttle run --task 'tar cf /backup/a.tar /srv/a' --task 'tar cf /backup/b.tar /srv/b'
  luc throttle run --policy off --task 'make -C a' --task 'make -C b'   # the same without the throttle
  luc throttle run --compare 5 --prepare 'echo 3 >/proc/sys/vm/drop_caches' --task 'cat a >/dev/null' \
      --task 'cat b >/dev/null'
  luc throttle run --protect 'postgres -D data' --task 'tar cf backup.tar /srv'

A database's server uses the disk, not its client: protect postgres or mysqld, not pgbench. pg_dump has the server
read, too. For a server that runs already, name its unit in /etc/luc/throttle.toml (luc throttle install-unit).

Exit status: 0; 1 if a command failed; 2 if this machine does not allow it; 130 after Ctrl-C.")]
pub(crate) struct Args {
    /// A command that may be frozen; give it once for each command
    #[arg(long = "task", value_name = "COMMAND")]
    tasks: Vec<OsString>,

    /// A command that is never frozen, and for which the others step back
    #[arg(long, value_name = "COMMAND")]
    protect: Vec<OsString>,

    /// Time limit for 99 of 100 disk waits of each --protect, such as 20ms; the other commands get the disk time that this leaves
    #[arg(long, value_name = "TIME", requires = "protect", value_parser = parse_duration_ns)]
    p99: Option<u64>,

    /// Part of the time, from 0 to 1, that the others get at least beside a --protect without --p99
    #[arg(long, value_name = "PART", default_value_t = BATCH_FLOOR, value_parser = part)]
    batch_floor: f64,

    /// Bytes that each --task will read and write, in their order, such as 200M [default: by the files it has open]
    #[arg(long, value_name = "SIZE", value_parser = parse_size_bytes, value_delimiter = ',')]
    size: Vec<u64>,

    // No doc comment: rustdoc would take the brackets for links.
    #[arg(
        long,
        default_value = "auto",
        help = "Policy of turns: auto, off (everybody, always), fcfs (one after the other), turns[:TIME], or wise:PEAK[,KEY=VALUE]... (the paper's rules for a disk of this peak rate)"
    )]
    policy: PolicyChoice,

    /// Freeze nobody for longer than TIME at a time
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration_ns)]
    max_frozen: u64,

    /// Let the threads of each --task take turns, too, as if they were tasks
    #[arg(long)]
    threads: bool,

    /// Only look at this disk, such as sda; give it once for each [default: all]
    #[arg(long, value_name = "DISK")]
    disk: Vec<String>,

    /// Write VALUE into FILE of each task's cgroup first, such as io.weight=100
    #[arg(long, value_name = "FILE=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,

    /// Run the tasks N times with the throttle, N times without and each alone N times, and print the gain
    ///
    /// WS is weighted speedup: the sum over the tasks of time alone over time together.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    compare: Option<u32>,

    /// A command for the shell that is run before each run of --compare, such as one that empties caches
    #[arg(long, value_name = "COMMAND", requires = "compare")]
    prepare: Option<OsString>,

    /// Seed of the random order of --compare
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Also write the figures as JSON to FILE, at the end and all at once
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Discard the commands' standard output
    #[arg(long, short)]
    quiet: bool,
}

fn part(text: &str) -> Result<f64, String> {
    let part = text.parse().ok().filter(|part| (0.0..=1.0).contains(part));
    part.ok_or_else(|| "not a part from 0 to 1, such as 0.1".to_owned())
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (file, value) =
        text.split_once('=').ok_or("no '=': write FILE=VALUE, such as io.weight=100")?;
    if file.is_empty() || file.contains('/') {
        return Err("FILE is a name in a cgroup's folder, such as io.weight".to_owned());
    }
    Ok((file.to_owned(), value.to_owned()))
}

impl Args {
    fn all(&self) -> Vec<CommandTask> {
        let batch = self.tasks.iter().enumerate().map(|(number, command)| CommandTask {
            command: command.clone(),
            class: TaskClass::Batch,
            size_bytes: self.size.get(number).copied(),
            p99_ns: None,
        });
        let protected = self.protect.iter().map(|command| CommandTask {
            command: command.clone(),
            class: TaskClass::Protected,
            size_bytes: None,
            p99_ns: self.p99,
        });
        batch.chain(protected).collect()
    }
}

pub(crate) fn main(args: &Args) -> anyhow::Result<ExitCode> {
    let tasks = args.all();
    anyhow::ensure!(
        !tasks.is_empty(),
        "no command given; try `luc throttle run --task COMMAND --task COMMAND`"
    );
    anyhow::ensure!(
        args.size.len() <= args.tasks.len(),
        "--size has {} values for {} tasks; give one for each --task",
        args.size.len(),
        args.tasks.len()
    );
    luc_host::interrupt_flag::install()?;
    let luc = own_path()?;
    let json = args.json.as_deref().map(JsonFile::new).transpose()?;
    let options = ThrottledRunOptions {
        engine: EngineOptions {
            policy: args.policy.clone(),
            disks: args.disk.clone(),
            max_frozen_ns: args.max_frozen,
            batch_floor: args.batch_floor,
        },
        settings: args.set.clone(),
        tell_threads_apart: args.threads,
        discard_output: args.quiet,
    };
    if let Some(rounds) = args.compare {
        return compare::main(args, rounds, &luc, &tasks, options, json);
    }
    let outcome = luc_throttle::run_commands::run(&luc, &tasks, &options)?;
    eprint!("{}", show::ThrottledRunText(&outcome));
    if let Some(json) = json {
        json.write(&outcome)?;
    }
    if outcome.interrupted {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let has_failed = outcome.tasks.iter().any(|task| task.status != 0);
    Ok(ExitCode::from(u8::from(has_failed)))
}
