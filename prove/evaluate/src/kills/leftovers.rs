//! Checks that a site is as it was before.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use luc_host::sysfs;
use luc_sweep::name_of;
use rustix::fs::{FlockOperation, flock};

use crate::error::EvaluateError;
use crate::harness::Harness;

/// Time that a gate of another command of this user may take to end.
const GATE_EXIT_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy)]
pub(super) struct Look<'s> {
    pub(super) folder: &'s Path,
    pub(super) device: &'s str,
}

/// All settings before any change, by their files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Before(BTreeMap<PathBuf, String>);

impl Before {
    pub(super) fn of(look: &Look<'_>) -> Self {
        let mut files = vec![look.scheduler()];
        for tree in ["sys/devices/system/cpu", "kernel/sys/kernel/luc"] {
            collect(&look.folder.join(tree), &mut files);
        }
        let settings = files.into_iter().filter_map(|path| {
            let text = sysfs::read(&path).ok()?;
            Some((path, text))
        });
        Self(settings.collect())
    }
}

/// Collects the files below a folder. Links to folders are not followed.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&entry.path(), files),
            Ok(kind) if kind.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
}

impl Look<'_> {
    pub(super) fn scheduler(&self) -> PathBuf {
        let name = self.device.trim_start_matches("/dev/");
        Path::new("/sys/block").join(name).join("queue/scheduler")
    }

    /// Describes what is left over, and what is not as it was.
    pub(super) fn left(&self, before: &Before) -> Vec<String> {
        let mut left = Vec::new();
        for (path, value) in &before.0 {
            let now = sysfs::read(path).unwrap_or_default();
            // An empty one is counted by `cut`.
            if now != *value && !now.is_empty() {
                let name = path.strip_prefix(self.folder).unwrap_or(path);
                left.push(format!("{} is {now}, was {value}", name.display()));
            }
        }
        for name in [
            "out/processors.json",
            "out/devices.json",
            "out/work",
            "kernel/run/luc/kernel/record.json",
        ] {
            if self.folder.join(name).exists() {
                left.push(name.to_owned());
            }
        }
        for name in ["run/disk", "run/sweep", "kernel/run/luc/kernel/holders"] {
            let entries = fs::read_dir(self.folder.join(name)).into_iter().flatten().flatten();
            left.extend(
                entries.map(|entry| format!("{name}/{}", entry.file_name().to_string_lossy())),
            );
        }
        let place = self.folder.display().to_string();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let is_here =
            |line: &&str| line.contains(&place) || line.contains(&format!(" {} ", self.device));
        left.extend(mounts.lines().filter(is_here).map(|_| "a mount".to_owned()));
        left.extend(self.loop_devices());
        left.extend(self.cgroups());
        let found = Command::new("wipefs")
            .args(["--noheadings", "--output", "TYPE", self.device])
            .stdin(Stdio::null())
            .output();
        match found {
            Ok(output) if output.status.success() && output.stdout.is_empty() => {}
            Ok(output) => {
                let text = [output.stdout, output.stderr].concat();
                left.push(format!("on the device: {}", String::from_utf8_lossy(&text).trim()));
            }
            Err(error) => left.push(format!("wipefs cannot be run: {error}")),
        }
        left
    }

    /// Counts settings whose file is empty, and writes them again. A killed write had emptied the file and not filled
    /// it.
    ///
    /// Only files of a tree can be empty. A setting of the kernel has its old value or its new one.
    pub(super) fn cut(&self, before: &Before) -> usize {
        let is_cut = |path: &Path| sysfs::read(path).is_ok_and(|text| text.is_empty());
        let cut = before.0.iter().filter(|(path, _)| is_cut(path));
        cut.filter(|(path, value)| sysfs::write(path, value).is_ok()).count()
    }

    /// Returns loop devices on files of the site, other than its own.
    fn loop_devices(&self) -> Vec<String> {
        let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let is_left = |name: &String| {
            let file = sysfs::read(&Path::new("/sys/block").join(name).join("loop/backing_file"));
            let is_here = file.is_ok_and(|file| Path::new(&file).starts_with(self.folder));
            is_here && self.device != format!("/dev/{name}")
        };
        names.filter(is_left).collect()
    }

    fn cgroups(&self) -> Vec<String> {
        let name = format!("luc-{}", name_of(&self.folder.join("out")));
        let roots = ["", "unified", "cpu", "cpu,cpuacct"];
        let groups = roots.map(|root| Path::new("/sys/fs/cgroup").join(root).join(&name));
        let groups = groups.into_iter().filter(|group| group.exists());
        groups.map(|group| group.display().to_string()).collect()
    }

    /// Restores all that can be restored after something was left.
    pub(super) fn force(&self, before: &Before) {
        let run = |program: &str, words: &[&str]| {
            let _ = Command::new(program).args(words).stderr(Stdio::null()).status();
        };
        run("umount", &[self.device]);
        run("wipefs", &["--all", "--quiet", self.device]);
        for (path, value) in &before.0 {
            let value = value
                .split_whitespace()
                .find(|word| word.starts_with('['))
                .map_or(value.as_str(), |word| word.trim_matches(['[', ']']));
            let _ = sysfs::write(path, value);
        }
        for name in ["run/sweep", "kernel/run"] {
            let _ = fs::remove_dir_all(self.folder.join(name));
        }
        for group in self.cgroups() {
            let _ = fs::remove_dir(group);
        }
    }
}

/// Returns shared memory of the gate that exists after one more run and that no run uses.
pub(super) fn shared_memory(harness: &Harness) -> Result<Option<String>, EvaluateError> {
    harness.execute(&mut harness.luc(&["run", "--quiet", "--", "true"]), &[0])?;
    let user = rustix::process::geteuid().as_raw();
    let directory = PathBuf::from(format!("/dev/shm/luc-gate-{user}"));
    let begun = Instant::now();
    loop {
        let lock = File::open(directory.join("lock"));
        let is_used =
            lock.is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err());
        if !directory.exists() || is_used {
            return Ok(None);
        }
        if begun.elapsed() > GATE_EXIT_TIMEOUT {
            return Ok(Some(directory.display().to_string()));
        }
        thread::sleep(Duration::from_millis(50));
    }
}
