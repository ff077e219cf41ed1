//! A machine of its own with systemd as process 1: namespaces over this system's files. Booting a guest by emulation
//! takes minutes, this takes seconds. Its kernel and its journal are real ones as well.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use luc_testkit::Meanwhile;

use crate::common::{EmulatedTestDisk, LUC, TIMEOUT, is_root, stderr, stdout, until};

/// A running machine. All of it goes when this is dropped, or the test's process ends.
pub(crate) struct SystemdMachine {
    systemd: String,
    _running: Meanwhile,
    _folder: tempfile::TempDir,
    _disk: EmulatedTestDisk,
}

/// Time limit for a shell's words, s.
const LIMIT_S: u32 = 300;

/// Begins the machine in a cgroup of its own. Its script prints the number of its process 1, as seen here. When the
/// shell that waits is gone, the machine ends, and its cgroup with it.
const BEGIN: &str = r#"
group=$1/luc-machine-$$
mkdir "$group"
echo $$ >"$group/cgroup.procs"
unshare --mount --pid --uts --ipc --net --cgroup --fork --kill-child=SIGKILL "$2" "$3" "$4" "$5" &
unshare=$!
echo $$ >"$1/cgroup.procs"
"#;

const END: &str = r#"
kill -KILL "$unshare"
wait "$unshare" 2>/dev/null
find "$group" -depth -type d -exec rmdir {} + 2>/dev/null
for _ in 1 2 3 4 5 6 7 8 9 10; do
	[ -d "$group" ] || break
	sleep 0.1
	find "$group" -depth -type d -exec rmdir {} + 2>/dev/null
done
[ ! -d "$group" ]
"#;

impl SystemdMachine {
    /// A machine whose services keep their states, named in `states`, on an emulated disk. Each state belongs to the
    /// user of its name. `None`, and a line that says why, where this cannot be had.
    pub(crate) fn boot(test: &str, states: &[&str]) -> Option<Self> {
        if !is_root() {
            return None;
        }
        let Some(cgroups) = cgroups() else {
            luc_testkit::skipped!("no cgroups of version 2 are mounted");
            return None;
        };
        if !Path::new("/lib/systemd/systemd").exists() {
            luc_testkit::skipped!("systemd is not installed");
            return None;
        }
        let disk = EmulatedTestDisk::new(test, "ext4", "")?;
        let folder = tempfile::tempdir().expect("a folder");
        let data = PathBuf::from(disk.mount()).join("states");
        for state in states {
            let path = data.join(state);
            fs::create_dir_all(&path).expect("made");
            let owned = Command::new("chown").arg(format!("{state}:")).arg(&path).status();
            assert!(owned.expect("chown runs").success());
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/enable/boot.sh");
        let built = Path::new(LUC).parent().expect("a folder");
        let words = [cgroups.as_path(), &script, folder.path(), built, &data]
            .map(|path| path.display().to_string());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let running = Meanwhile::new(&format!("{{ {BEGIN} }}"), END, &words);
        let machine = Self {
            systemd: running.message.clone(),
            _running: running,
            _folder: folder,
            _disk: disk,
        };
        until("systemd's target", || {
            let state = machine.run("systemctl is-active basic.target");
            stdout(&state).trim() == "active"
        });
        Some(machine)
    }

    /// Runs a shell's words in it, as root, for [`LIMIT_S`] at most. A container hangs, for one, if `lucd` is not of
    /// the same build.
    pub(crate) fn run(&self, words: &str) -> Output {
        Command::new("nsenter")
            .args(["--target", &self.systemd, "--all", "--"])
            .args([
                "env",
                "-i",
                "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                "LC_ALL=C.UTF-8",
                "HOME=/root",
            ])
            .args(["timeout", "--kill-after=5", &LIMIT_S.to_string()])
            .args(["sh", "-c", words])
            .stdin(Stdio::null())
            .output()
            .expect("nsenter runs")
    }

    /// The same, which has to succeed; what it prints.
    pub(crate) fn get(&self, words: &str) -> String {
        let output = self.run(words);
        assert!(
            output.status.success(),
            "{words}: {}{}\n{}",
            stdout(&output),
            stderr(&output),
            stdout(&self.run("journalctl --no-pager -n 40"))
        );
        stdout(&output).trim().to_owned()
    }

    /// Waits until a shell's words succeed in it.
    pub(crate) fn until(&self, words: &str) {
        let begun = std::time::Instant::now();
        while !self.run(words).status.success() {
            assert!(
                begun.elapsed() < TIMEOUT,
                "{words} did not come: {}",
                stdout(&self.run("journalctl --no-pager -n 40"))
            );
            sleep(Duration::from_millis(50));
        }
    }

    /// Copies a file into it.
    pub(crate) fn copy(&self, from: &Path, to: &str) {
        let there = format!("/proc/{}/root{to}", self.systemd);
        fs::copy(from, there).expect("copied");
    }

    /// Writes a file in it.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let there = format!("/proc/{}/root{path}", self.systemd);
        fs::write(there, text).expect("written");
    }
}

/// Mount point of cgroups of version 2.
fn cgroups() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    let mut paths = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let path = words.next()?;
        (words.next()? == "cgroup2").then(|| PathBuf::from(path))
    });
    paths.next()
}
