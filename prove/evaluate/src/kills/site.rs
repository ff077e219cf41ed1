//! A place where a sweep and a run change all that they can, apart from other users. Trees of files stand for the
//! processors and the kernel module, and a loop device for a user's disk. The site has directories for disks and
//! results.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use luc_host::interrupt_flag;
use luc_host::sysfs;
use rustix::process::Signal;

use super::leftovers::{Before, Look};
use super::processes::{self, KilledRole};
use crate::error::EvaluateError;
use crate::harness::Harness;

/// Time that processes may take to end, and leftovers to disappear.
const EXIT_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Commands that the next one is drawn from.
pub(super) const NEXT_COMMANDS: [&[&str]; 4] =
    [&["disk", "list"], &["kernel", "status"], &["completions", "bash"], &["sweep", "restore"]];

/// An endless plan with two disks, one of them a user's device, and three settings of the processors.
const PLAN: &str = r#"
settle = "0"
[stop]
goal = 0.0001
min = 6
max = 10000
[disk]
size = "64M"
flush = "1ms"
write = "20us"
[[workload]]
name = "touch"
command = ["sh", "-c", "echo x >f; sync f; sleep 0.05; sync f"]
[[target]]
name = "device"
fs = "ext4"
mkfs = "-J size=4"
device = "$DEVICE"
erase = "$DEVICE"
[[target]]
name = "disk"
fs = "ext4"
mkfs = "-J size=4"
"#;

/// Settings of each processor, as with intel_pstate.
const PROCESSOR_SETTINGS: [(&str, &str); 8] = [
    ("scaling_driver", "intel_pstate"),
    ("scaling_available_governors", "performance powersave"),
    ("cpuinfo_min_freq", "800000"),
    ("cpuinfo_max_freq", "4500000"),
    ("scaling_min_freq", "800000"),
    ("scaling_max_freq", "4500000"),
    ("scaling_governor", "powersave"),
    ("scaling_cur_freq", "2000000"),
];

/// Settings of a journal that is mounted with luc.ko.
const JOURNAL_SETTINGS: [(&str, &str); 13] = [
    ("policy", "off"),
    ("copy_out", "off"),
    ("delay_us", "1000"),
    ("max_restarts", "64"),
    ("timeout_us", "1000"),
    ("max_hold_us", "20000"),
    ("set_point", "0"),
    ("kp_milli", "800"),
    ("ki_milli", "250"),
    ("kd_milli", "250"),
    ("copy_out_threshold_permille", "50"),
    ("copy_out_clean_runs", "4"),
    ("copy_out_limit_kib", "16384"),
];
const JOURNAL_STATS: [&str; 18] = [
    "commits",
    "commits_by_fsync",
    "fsyncs",
    "fsyncs_last_commit",
    "fsyncs_waited_two",
    "holds",
    "hold_ns",
    "set_point",
    "error_milli",
    "output_us",
    "state",
    "writes",
    "writes_delayed",
    "write_delay_ns",
    "copies",
    "copy_bytes",
    "copies_failed",
    "copy_bytes_in_use",
];

#[derive(Debug)]
pub(super) struct KillSite {
    luc: PathBuf,
    folder: PathBuf,
    /// Device that the plan names.
    device: String,
    about: String,
    before: Before,
    sweep: Option<Child>,
    run: Option<Child>,
}

impl KillSite {
    pub(super) fn create(harness: &Harness, number: usize) -> Result<Self, EvaluateError> {
        let folder = harness.path(&format!("site-{number}"));
        let made = make(&folder).map_err(EvaluateError::file("make", &folder));
        made?;
        let image = folder.join("image");
        let mut losetup = Command::new("losetup");
        losetup.args(["--find", "--show"]).arg(&image);
        let output = losetup.output().map_err(EvaluateError::file("run", "losetup"))?;
        let device = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let mut site = Self {
            luc: harness.luc_path().to_owned(),
            before: Before::default(),
            folder,
            device,
            about: String::new(),
            sweep: None,
            run: None,
        };
        if !output.status.success() {
            return Err(EvaluateError::Command {
                command: "losetup --find --show image".to_owned(),
                how: output.status.to_string(),
                said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            });
        }
        site.write_plan()?;
        site.before = Before::of(&site.look());
        Ok(site)
    }

    fn write_plan(&mut self) -> Result<(), EvaluateError> {
        let mut frequencies = vec!["\"1.2GHz\"", "\"as-is\""];
        let mut about = vec!["an emulated disk", "a device", "two frequencies"];
        let groups = Path::new("/sys/fs/cgroup");
        let enabled = sysfs::read(&groups.join("cgroup.subtree_control")).unwrap_or_default();
        if groups.join("cpu/cgroup.procs").exists() || enabled.contains("cpu") {
            frequencies.push("\"throttle:50%\"");
            about.push("a throttle");
        }
        let mut text = format!("frequency = [{}]\n", frequencies.join(", "));
        text += "frequency-options = { turbo = false, smt = false }\n";
        let scheduler = sysfs::read(&self.look().scheduler());
        if scheduler.is_ok_and(|text| text.contains("mq-deadline") && text.contains("[none]")) {
            text += "scheduler = [\"none\", \"mq-deadline\"]\n";
            about.push("two schedulers");
        }
        text += &PLAN.replace("$DEVICE", &self.device);
        let path = self.folder.join("plan.toml");
        fs::write(&path, text).map_err(EvaluateError::file("write", &path))?;
        self.about = about.join(", ");
        Ok(())
    }

    pub(super) fn about(&self) -> String {
        self.about.clone()
    }

    fn variable(&self) -> String {
        format!("LUC_RUN_DIR={}", self.folder.join("run").display())
    }

    pub(super) fn look(&self) -> Look<'_> {
        Look { folder: &self.folder, device: &self.device }
    }

    /// Returns the command `luc WORDS`, apart from other users' files.
    fn luc(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.luc);
        command
            .args(words)
            .current_dir(&self.folder)
            .env("LUC_RUN_DIR", self.folder.join("run"))
            .env("LUC_KERNEL_TEST_ROOT", self.folder.join("kernel"))
            .env("XDG_CACHE_HOME", self.folder.join("cache"))
            .stdin(Stdio::null());
        command
    }

    /// Starts the sweep and the run.
    pub(super) fn start(&mut self) -> Result<(), EvaluateError> {
        let sysfs = self.folder.join("sys");
        let mut sweep = self.luc(&["sweep", "plan.toml", "--out", "out", "--json", "--sysfs"]);
        sweep.arg(sysfs);
        let script =
            "dd if=/dev/zero of=synced bs=1k count=1 conv=fsync status=none; exec sleep 1000";
        let words = ["run", "--level", "kernel", "--quiet", "--", "sh", "-c", script];
        let mut run = self.luc(&words);
        run.arg("luc-kills-command");
        let spawn = |mut command: Command, log: &str| {
            let log = self.folder.join(log);
            let file = File::create(&log).map_err(EvaluateError::file("make", &log))?;
            command
                .stdout(Stdio::null())
                .stderr(file)
                // Ctrl-C is for this process, which ends them.
                .process_group(0)
                .spawn()
                .map_err(EvaluateError::file("run", &self.luc))
        };
        let (sweep, run) = (spawn(sweep, "sweep.log")?, spawn(run, "run.log")?);
        (self.sweep, self.run) = (Some(sweep), Some(run));
        Ok(())
    }

    pub(super) fn processes(&self) -> Vec<(KilledRole, i32)> {
        processes::with(&self.variable())
    }

    /// Ends the rest of both by SIGTERM. Returns whether that took too long.
    pub(super) fn end(&mut self) -> bool {
        let mut hung = false;
        let children: Vec<Child> =
            [self.sweep.take(), self.run.take()].into_iter().flatten().collect();
        for child in &children {
            processes::send(child.id().cast_signed(), Signal::TERM);
        }
        let begun = Instant::now();
        for mut child in children {
            while child.try_wait().is_ok_and(|ended| ended.is_none()) {
                if begun.elapsed() > EXIT_TIMEOUT {
                    hung = true;
                    let _ = child.kill();
                    let _ = child.wait();
                    break;
                }
                thread::sleep(POLL_INTERVAL);
            }
        }
        // The command of a run that was killed goes on, as that of any other program would.
        let is_command = |(role, _): &(KilledRole, i32)| *role == KilledRole::Command;
        let commands = || self.processes().into_iter().filter(is_command).map(|(_, pid)| pid);
        commands().for_each(|pid| processes::send(pid, Signal::KILL));
        processes::await_end(commands());
        hung
    }

    /// Runs one more command, and returns its standard error.
    pub(super) fn next(&self, words: &[&str]) -> Result<String, EvaluateError> {
        let output = self.luc(words).output().map_err(EvaluateError::file("run", &self.luc))?;
        let mut said = String::from_utf8_lossy(&output.stderr).into_owned();
        if words == NEXT_COMMANDS[3] {
            said += &String::from_utf8_lossy(&output.stdout);
        }
        let place = self.folder.display().to_string();
        Ok(said.trim().replace(&place, "SITE"))
    }

    /// Returns what is left, once surviving cleanup processes and watchers have had their time.
    pub(super) fn left_at_last(&self) -> Vec<String> {
        let begun = Instant::now();
        loop {
            let mut left = self.look().left(&self.before);
            left.extend(
                self.processes().iter().map(|(role, _)| format!("process: {}", role.name())),
            );
            if left.is_empty() || begun.elapsed() > EXIT_TIMEOUT || interrupt_flag::interrupted() {
                return left;
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Counts settings that a kill left half written, which happens only in a tree.
    pub(super) fn cut(&self) -> usize {
        self.look().cut(&self.before)
    }

    /// Prepares the next kill; if something `is_left`, by force.
    pub(super) fn reset(&mut self, is_left: bool) -> Result<(), EvaluateError> {
        if is_left {
            for (_, pid) in self.processes() {
                processes::send(pid, Signal::KILL);
            }
            for words in [&["sweep", "restore"][..], &["disk", "remove", "--all"]] {
                // A failure shows in the next kill.
                let _ = self.luc(words).output();
            }
            self.look().force(&self.before);
        }
        for name in ["out", "synced"] {
            let path = self.folder.join(name);
            // Neither may be there, if it was killed early.
            let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
        }
        Ok(())
    }
}

impl Drop for KillSite {
    fn drop(&mut self) {
        self.end();
        let is_left = !self.left_at_last().is_empty();
        // Also on the way out of an error: nothing of it may stay.
        let _ = self.reset(is_left);
        let _ = Command::new("losetup").args(["--detach", &self.device]).status();
    }
}

/// Makes the trees and the image.
fn make(folder: &Path) -> std::io::Result<()> {
    let put = |path: String, text: &str| {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, format!("{text}\n"))
    };
    let cpu = "sys/devices/system/cpu";
    for number in 0..2 {
        for (name, value) in PROCESSOR_SETTINGS {
            put(format!("{cpu}/cpufreq/policy{number}/{name}"), value)?;
        }
        let place = folder.join(format!("{cpu}/cpu{number}"));
        fs::create_dir(&place)?;
        symlink(format!("../cpufreq/policy{number}"), place.join("cpufreq"))?;
    }
    put(format!("{cpu}/intel_pstate/no_turbo"), "0")?;
    put(format!("{cpu}/smt/control"), "on")?;
    for name in ["dev", "block", "fs"] {
        symlink(Path::new("/sys").join(name), folder.join("sys").join(name))?;
    }
    for (path, text) in [
        ("proc/modules", "jbd2 1 1 ext4, Live 0x0"),
        ("proc/sys/kernel/osrelease", "6.1.0-18-amd64"),
        ("sys/kernel/luc/version", env!("CARGO_PKG_VERSION")),
        ("sys/kernel/luc/interface", "1"),
    ] {
        put(format!("kernel/{path}"), text)?;
    }
    let own = fs::metadata(folder)?.dev();
    let (major, minor) = (rustix::fs::major(own), rustix::fs::minor(own));
    let journal = "kernel/sys/kernel/luc/own-8";
    put(format!("{journal}/device"), &format!("{major}:{minor}"))?;
    for (name, value) in JOURNAL_SETTINGS {
        put(format!("{journal}/{name}"), value)?;
    }
    for name in JOURNAL_STATS {
        put(format!("{journal}/stats/{name}"), if name == "state" { "engaged" } else { "0" })?;
    }
    File::create(folder.join("image"))?.set_len(64 << 20)
}
