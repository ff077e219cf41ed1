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
use luc_harness::harness::{Harness, array, missing, stop_if_interrupted};
use luc_harness::progress::Progress;
use luc_harness::report::{Page, Table, Target, number, spread};
use luc_harness::{cells, groups};
use luc_host::run_dir;
use luc_stats::random;
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
/// Maximum processor time, as a share of one processor.
const MAX_PROCESSOR_SHARE: f64 = 0.005;
/// Maximum time for which anybody may be frozen after a kill, ms.
const MAX_FROZEN_AFTER_KILL_MS: f64 = 100.0;
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

struct Kill {
    /// Whether the guardian was killed first, and the daemon a moment later.
    guardian_first: bool,
    /// Time from the daemon's kill until nothing was frozen, ms.
    thawed_ms: f64,
}

/// Kills daemons while something is frozen, every second one after its guardian.
fn kills(
    harness: &Harness,
    services: &[Service],
    config: &Path,
    progress: &mut Progress,
) -> Result<Vec<Kill>, EvaluateError> {
    let count = harness.options.cuts.unwrap_or(KILLS);
    let mut random = random::stream(harness.options.seed, 0);
    let mut all = Vec::new();
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
        all.push(Kill { guardian_first, thawed_ms });
        if (number + 1) % 50 == 0 {
            progress.step(&format!("{} kills", number + 1));
        }
    }
    Ok(all)
}

/// Returns the longest freeze of a daemon that is left alone, s.
fn longest(harness: &Harness, services: &[Service], config: &Path) -> Result<f64, EvaluateError> {
    let daemon = Daemon::start(harness, config)?;
    wait_for_freeze(services)?;
    sleep(WATCH_TIME);
    let mut command = harness.luc(&["throttle", "status", "--json"]);
    let status = harness.json_of(command.env(run_dir::VARIABLE, harness.path("run")))?;
    daemon.end();
    let tasks = array(&status["tasks"], "the tasks")?;
    let longest =
        tasks.iter().filter_map(|task| task["longest_frozen_s"].as_f64()).fold(0.0, f64::max);
    harness.keep(json!({ "longest": status }));
    Ok(longest)
}

/// Returns the processor time of a daemon and its guardian, as a share of one processor.
fn processor_share(harness: &Harness, config: &Path, what: &str) -> Result<f64, EvaluateError> {
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
    harness.keep(json!({ "cgroups": CGROUPS, "load": what, "processor_share": share }));
    Ok(share)
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
pub fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let root = groups::root().ok_or_else(|| missing("a mount of cgroup2"))?;
    let disk = Disk::create(harness, &EXT4)?;
    let config = config(harness, &disk)?;
    let steps = harness.options.cuts.unwrap_or(KILLS) as usize / 50 + 4;
    let mut progress = Progress::new(harness.part, steps);
    let start = |number, script: &str| Service::start(&root, number, script);
    let mut services = (0..WRITERS)
        .map(|number| start(number, &writer(&disk, number)))
        .collect::<Result<Vec<_>, _>>()?;
    let killed = kills(harness, &services, &config, &mut progress)?;
    let longest_s = longest(harness, &services, &config)?;
    progress.step("longest freeze");
    for number in WRITERS..CGROUPS {
        services.push(start(number, SLEEPER)?);
    }
    let busy = processor_share(harness, &config, BUSY)?;
    progress.step("processor time under load");
    services.drain(..WRITERS);
    for number in 0..WRITERS {
        services.push(start(number, SLEEPER)?);
    }
    let idle = processor_share(harness, &config, IDLE)?;
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
    let linked = processor_share(harness, &config, LINKED)?;
    progress.step("processor time with a pipe");
    drop(services);
    let costs = [(BUSY, busy), (IDLE, idle), (LINKED, linked)];
    Ok(page(&killed, longest_s, &costs))
}

fn page(killed: &[Kill], longest_s: f64, shares: &[(&str, f64)]) -> Page {
    let late = killed.iter().filter(|kill| kill.thawed_ms > MAX_FROZEN_AFTER_KILL_MS).count();
    let mut thaws = Table::new(&["killed", "times", "until nothing was frozen, ms", "longest, ms"]);
    for (name, guardian_first) in [("the daemon", false), ("its guardian, then the daemon", true)] {
        let ms: Vec<f64> = killed
            .iter()
            .filter(|kill| kill.guardian_first == guardian_first)
            .map(|kill| kill.thawed_ms)
            .collect();
        thaws.row(cells![
            name,
            ms.len(),
            spread(&ms),
            number(ms.iter().copied().fold(0.0, f64::max))
        ]);
    }
    let mut costs = Table::new(&["100 cgroups, of which", "part of one processor"]);
    for (what, share) in shares {
        costs.row(cells![what, format!("{:.2} %", share * 100.0)]);
    }
    let cost_targets = shares.iter().map(|(what, share)| {
        Target::new(
            format!("100 cgroups, {what}: <= 0.5 % of one processor"),
            *share <= MAX_PROCESSOR_SHARE,
            format!("{:.2} %", share * 100.0),
        )
    });
    Page {
        title: "A throttle that is killed, and what it costs".to_owned(),
        about: format!(
            "`luc throttle daemon --policy fcfs` over {WRITERS} cgroups that write past the page cache without an \
             end, on ext4 on a disk that takes 20 µs for a request, so that two of the three are frozen. Daemons get a \
             SIGKILL at a random moment; before every second one its guardian gets one, 0.12 to 0.2 s earlier. The time \
             is from the kill of the daemon until no cgroup is asked to be frozen, looked at every 0.1 ms. The longest \
             freeze is that of a daemon with `max_frozen` of {MAX_FROZEN_S} s in {} s. Processor time is the daemon's \
             and its guardian's, by their scheduling statistics over {} s.",
            WATCH_TIME.as_secs(),
            WATCH_TIME.as_secs()
        ),
        tables: vec![
            ("Kills:".to_owned(), thaws),
            ("Processor time of the daemon and its guardian:".to_owned(), costs),
        ],
        targets: [
            Target::new(
                format!(
                    "{} kills: something frozen {MAX_FROZEN_AFTER_KILL_MS} ms later: never",
                    killed.len()
                ),
                late == 0 && !killed.is_empty(),
                format!("{late} times"),
            ),
            Target::new(
                format!("longest freeze <= {} s", MAX_FROZEN_S + 0.1),
                longest_s <= MAX_FROZEN_S + 0.1 && longest_s > 0.0,
                format!("{longest_s:.3} s"),
            ),
        ]
        .into_iter()
        .chain(cost_targets)
        .collect(),
    }
}
