//! Part `throttle-safety`: kills daemons and guardians, and checks that nobody stays frozen or is frozen for too long.
//! Also the cost of a throttle of a hundred cgroups.
//!
//! `soak` is part `throttle-soak`, `inversions` part `throttle-inversions`.

pub mod inversions;
mod services;
pub mod soak;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use luc_harness::disks::{Disk, EXT4};
use luc_harness::error::EvaluateError;
use luc_harness::groups;
use luc_harness::harness::{Harness, array, missing, stop_if_interrupted};
use luc_harness::progress::Progress;
use luc_host::run_dir;
use luc_stats::seeded_random;
use rand::RngExt as _;
use rustix::process::Signal;
use serde_json::json;

use services::{Daemon, FREEZE_TIMEOUT, Service, kill};

const KILLS: u64 = 1000;
/// Number of cgroups that write without end while daemons are killed.
const WRITERS: usize = 3;
/// Number of cgroups of the throttle whose processor time is measured.
const CGROUPS: usize = 100;
/// Script of the other cgroups.
const SLEEPER: &str = "while :; do sleep 1; done";
/// Load while processor time is measured.
const BUSY: &str = "three write";
const IDLE: &str = "none uses the disk";
const LINKED: &str = "three write, all have one pipe open";
/// Maximum time for which the daemon may freeze a task, s.
const MAX_FROZEN_S: f64 = 1.0;
/// Time for which freezes are watched, and processor time is measured.
const WATCH_TIME: Duration = Duration::from_secs(60);

/// Waits until a service is frozen.
fn wait_for_freeze(services: &[Service]) -> Result<(), EvaluateError> {
    let begun = Instant::now();
    while !services.iter().any(Service::is_frozen) {
        stop_if_interrupted()?;
        if begun.elapsed() > FREEZE_TIMEOUT {
            return Err(missing("a frozen cgroup"));
        }
        sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn writer(disk: &Disk<'_>, number: usize) -> String {
    format!(
        "while :; do dd if=/dev/zero of={}/{number} bs=4k count=1000 oflag=direct conv=notrunc 2>/dev/null; done",
        disk.mount.display()
    )
}

fn config(harness: &Harness, disk: &Disk<'_>) -> Result<PathBuf, EvaluateError> {
    let path = harness.path("throttle.toml");
    let text = format!(
        "max_frozen = '{MAX_FROZEN_S}s'\ndisks = ['{}']\n[[task]]\nmatch = 'luc-evaluate-{}-*'\nclass = 'batch'\n",
        disk.device().trim_start_matches("/dev/"),
        std::process::id()
    );
    fs::write(&path, text).map_err(EvaluateError::file("write", &path))?;
    Ok(path)
}

/// Kills daemons while something is frozen, every second one after its guardian.
fn kills(
    harness: &Harness,
    services: &[Service],
    config: &Path,
    progress: &mut Progress,
) -> Result<(), EvaluateError> {
    let count = harness.options.cuts.unwrap_or(KILLS);
    let mut random = seeded_random::stream(harness.options.seed, 0);
    for number in 0..count {
        let mut daemon = Daemon::start(harness, config)?;
        wait_for_freeze(services)?;
        sleep(Duration::from_millis(random.random_range(0..=50)));
        let guardian_first = number % 2 == 1;
        if guardian_first {
            if let Some(guardian) = daemon.guardian() {
                kill(guardian, Signal::KILL);
            }
            // Its successor is started when the daemon next looks.
            sleep(Duration::from_millis(random.random_range(120..=200)));
            wait_for_freeze(services)?;
        }
        kill(daemon.id(), Signal::KILL);
        let begun = Instant::now();
        while services.iter().any(Service::is_frozen) && begun.elapsed() < FREEZE_TIMEOUT {
            sleep(Duration::from_micros(100));
        }
        let thawed_ms = begun.elapsed().as_secs_f64() * 1e3;
        let _ = daemon.0.wait();
        harness.keep(json!({ "guardian_first": guardian_first, "thawed_ms": thawed_ms }));
        if (number + 1) % 50 == 0 {
            progress.step(&format!("{} kills", number + 1));
        }
    }
    Ok(())
}

/// Keeps what a daemon that is left alone says of its freezes.
fn longest(harness: &Harness, services: &[Service], config: &Path) -> Result<(), EvaluateError> {
    let daemon = Daemon::start(harness, config)?;
    wait_for_freeze(services)?;
    sleep(WATCH_TIME);
    let mut command = harness.luc(&["throttle", "status", "--json"]);
    let status = harness.json_of(command.env(run_dir::VARIABLE, harness.path("run")))?;
    daemon.end();
    array(&status["tasks"], "the tasks")?;
    harness.keep(json!({ "longest": status }));
    Ok(())
}

/// Keeps the processor time of a daemon and its guardian, as a share of one processor.
fn processor_share(harness: &Harness, config: &Path, what: &str) -> Result<(), EvaluateError> {
    let daemon = Daemon::start(harness, config)?;
    sleep(Duration::from_secs(3));
    let guardian = daemon.guardian().ok_or_else(|| missing("the guardian"))?;
    let spent = || spent_s(daemon.id()).zip(spent_s(guardian));
    let before = spent().ok_or_else(|| missing("the daemon's processor time"))?;
    let begun = Instant::now();
    sleep(WATCH_TIME);
    let after = spent().ok_or_else(|| missing("the daemon's processor time"))?;
    let share = (after.0 - before.0 + after.1 - before.1) / begun.elapsed().as_secs_f64();
    daemon.end();
    harness.keep(json!({ "cgroups": CGROUPS, "of_which": what, "processor_share": share }));
    Ok(())
}

/// Returns the processor time that a process has used, s, from its scheduling statistics.
fn spent_s(process: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{process}/schedstat")).ok()?;
    let ns: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(ns / 1e9)
}

/// Makes part `throttle-safety`.
///
/// # Errors
/// [`EvaluateError`].
pub fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let root = groups::root().ok_or_else(|| missing("a mount of cgroup2"))?;
    let disk = Disk::create(harness, &EXT4)?;
    let config = config(harness, &disk)?;
    let steps = harness.options.cuts.unwrap_or(KILLS) as usize / 50 + 4;
    let mut progress = Progress::new(harness.part, steps);
    let start = |number, script: &str| Service::start(&root, number, script);
    let mut services = (0..WRITERS)
        .map(|number| start(number, &writer(&disk, number)))
        .collect::<Result<Vec<_>, _>>()?;
    kills(harness, &services, &config, &mut progress)?;
    longest(harness, &services, &config)?;
    progress.step("longest freeze");
    for number in WRITERS..CGROUPS {
        services.push(start(number, SLEEPER)?);
    }
    processor_share(harness, &config, BUSY)?;
    progress.step("processor time under load");
    services.drain(..WRITERS);
    for number in 0..WRITERS {
        services.push(start(number, SLEEPER)?);
    }
    processor_share(harness, &config, IDLE)?;
    progress.step("processor time without load");
    services.clear();
    let pipe = harness.path("pipe");
    harness.execute(Command::new("mkfifo").arg(&pipe), &[0])?;
    let with_pipe = |script: &str| format!("exec 3<>{}; {script}", pipe.display());
    for number in 0..CGROUPS {
        let script = match number {
            ..WRITERS => writer(&disk, number),
            _ => SLEEPER.to_owned(),
        };
        services.push(start(number, &with_pipe(&script))?);
    }
    processor_share(harness, &config, LINKED)?;
    progress.step("processor time with a pipe");
    Ok(())
}
