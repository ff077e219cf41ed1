//! Part `sweep-kills`: a sweep that is killed at random goes on, and ends with the same repeats as an undisturbed one.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use luc_host::interrupt_flag;
use luc_stats::seeded_random;
use rand::RngExt as _;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::error::EvaluateError;
use crate::harness::{Harness, missing, parse, stop_if_interrupted};
use crate::progress::Progress;

const KILLS: u64 = 10;
/// Range of the time from a sweep's start to its kill, ms: while it clears up, makes disks, runs or writes.
const KILL_DELAY_MS: std::ops::Range<u64> = 100..4000;
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time that the cleanup process may take.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(30);

/// Plan of 48 repeats: a built-in workload and a command, two file systems.
const PLAN: &str = r#"
threads = [1, 4]
settle = "10ms"

[stop]
goal = 0.0001
min = 6
max = 6

[disk]
size = "512M"
flush = "2ms"
write = "20us"

[[workload]]
name = "create"
bench = "metarates"
options = { seconds = 0.3, warmup = "0.1s", file-size = "1k" }

[[workload]]
name = "shell"
command = ["sh", "-c", "for i in $(seq {threads}); do echo $i >f$i; sync f$i; done; sleep 0.2"]

[[target]]
name = "ext4"
fs = "ext4"

[[target]]
name = "xfs"
fs = "xfs"
"#;

struct SweepSite<'a> {
    harness: &'a Harness,
    plan: PathBuf,
    out: PathBuf,
}

/// Key of a point, and round of the repeat.
type Repeat = (String, u64);

impl SweepSite<'_> {
    fn command(&self) -> Command {
        let mut command = self.harness.luc(&["sweep"]);
        command.arg(&self.plan).arg("--out").arg(&self.out);
        command.arg("--json");
        command.env("LUC_RUN_DIR", self.harness.path("run"));
        command
    }

    /// Runs the sweep to its end, and returns the repeats of its report in order.
    fn run(&self) -> Result<Vec<Repeat>, EvaluateError> {
        let output = self.harness.execute(&mut self.command(), &[0])?.stdout;
        let report: Value = parse(&output, "the sweep's report")?;
        let rows = report["repeats"].as_array();
        let repeat = |row: &Value| Some((row["key"].as_str()?.to_owned(), row["round"].as_u64()?));
        let found: Option<Vec<Repeat>> =
            rows.map_or(Some(Vec::new()), |rows| rows.iter().map(repeat).collect());
        let mut found = found.ok_or_else(|| missing("key and round of each repeat"))?;
        found.sort();
        Ok(found)
    }

    /// Number of repeats on the disk.
    fn count_repeats(&self) -> usize {
        let text = fs::read_to_string(self.out.join("results.jsonl")).unwrap_or_default();
        text.matches('\n').count()
    }

    /// Starts the sweep and kills it `after` a while, also its children if `all`. Returns whether it was still at work.
    fn kill(&self, after: Duration, all: bool) -> Result<bool, EvaluateError> {
        let mut child = self
            .command()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(EvaluateError::file("run", self.harness.luc_path()))?;
        thread::sleep(after);
        let others = if all { children(child.id()) } else { Vec::new() };
        let was_at_work = child.try_wait().is_ok_and(|ended| ended.is_none());
        let _ = child.kill();
        for other in others {
            // It may have ended by itself.
            let _ = kill_process(other, Signal::KILL);
        }
        child.wait().map_err(EvaluateError::file("wait for", self.harness.luc_path()))?;
        stop_if_interrupted()?;
        Ok(was_at_work)
    }

    /// Returns what a sweep must not leave behind: disks, mounts, folders of its repeats.
    fn find_leftovers(&self) -> Vec<String> {
        let disks = fs::read_dir(self.harness.path("run/disk"));
        let disks = disks.into_iter().flatten().flatten();
        let mut left: Vec<String> =
            disks.map(|disk| format!("disk {}", disk.file_name().to_string_lossy())).collect();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        if mounts.contains(&*self.out.to_string_lossy()) {
            left.push("a mount".to_owned());
        }
        if self.out.join("work").exists() {
            left.push("its working folder".to_owned());
        }
        left
    }

    /// Waits until nothing is left, and returns what is left in the end.
    fn cleared(&self) -> Vec<String> {
        let mut waited = Duration::ZERO;
        loop {
            let left = self.find_leftovers();
            if left.is_empty() || waited >= CLEANUP_TIMEOUT || interrupt_flag::interrupted() {
                return left;
            }
            thread::sleep(POLL_INTERVAL);
            waited += POLL_INTERVAL;
        }
    }
}

/// Returns the processes whose parent is `parent`.
fn children(parent: u32) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // After the name, which is in parentheses: state, parent.
            let (_, rest) = stat.rsplit_once(')')?;
            let is_child = rest.split_whitespace().nth(1)?.parse::<u32>().ok()? == parent;
            let pid = entry.file_name().to_str()?.parse().ok()?;
            is_child.then(|| Pid::from_raw(pid)).flatten()
        })
        .collect()
}

pub(super) fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let kills = harness.options.cuts.unwrap_or(KILLS);
    let plan = harness.path("plan.toml");
    fs::write(&plan, PLAN).map_err(EvaluateError::file("write", &plan))?;
    let site = |name: &str| SweepSite { harness, plan: plan.clone(), out: harness.path(name) };
    let mut progress = Progress::new(harness.part, kills as usize + 2);
    let undisturbed = site("undisturbed").run()?;
    progress.step(&format!("undisturbed: {} repeats", undisturbed.len()));

    let killed = site("killed");
    let mut random = seeded_random::stream(harness.options.seed, 0);
    for kill in 0..kills {
        let after = Duration::from_millis(random.random_range(KILL_DELAY_MS));
        let all = kill % 2 == 1;
        let was_at_work = killed.kill(after, all)?;
        // Whoever kills the cleanup process, too, has the next start clear up.
        let left = if all { Vec::new() } else { killed.cleared() };
        let what =
            if all { "the sweep, its cleanup process and its workload" } else { "the sweep" };
        harness.keep(json!({
            "kill": kill + 1, "killed": what, "after_ms": after.as_millis() as u64, "was_at_work": was_at_work,
            "kept": killed.count_repeats(), "left": left,
        }));
        progress.step(&format!("kill {}: {} repeats kept", kill + 1, killed.count_repeats()));
    }
    let resumed = killed.run()?;
    let left = killed.cleared();
    progress.step(&format!("to its end: {} repeats", resumed.len()));
    harness.keep(json!({ "undisturbed": undisturbed, "killed": resumed, "left": left }));
    Ok(())
}
