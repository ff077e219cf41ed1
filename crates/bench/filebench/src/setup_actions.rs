//! Actions of a file before its run, in order: `create files`, `system`, `echo`, `sleep`.

use std::fmt::{Arguments, Write as _};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use luc_host::interrupt_flag;

use super::plan::{PlanText, TextPart};

/// Time between two looks at a command or a signal.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

impl PlanText {
    /// Returns the text, where the files are below `directory`.
    pub(super) fn shown(&self, directory: &Path) -> String {
        let mut shown = String::new();
        for part in &self.0 {
            match part {
                TextPart::Plain(text) => shown.push_str(text),
                // Writing to a string cannot fail.
                TextPart::Directory => drop(write!(shown, "{}", directory.display())),
            }
        }
        shown
    }
}

/// Writes a line to standard error, whose reader may have gone.
pub(super) fn say(line: Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Runs a shell command whose output goes to this process's stderr. Returns an error if it did not end with status 0. A
/// signal to this process ends it.
pub(super) fn system(command: &str) -> Result<(), String> {
    let stdout = rustix::io::dup(io::stderr()).map(Stdio::from);
    let started = stdout.map_err(io::Error::from).and_then(|stdout| {
        Command::new("/bin/sh").args(["-c", command]).stdin(Stdio::null()).stdout(stdout).spawn()
    });
    let status = started.and_then(|mut child| {
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if interrupt_flag::interrupted() {
                child.kill()?;
                return child.wait();
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    });
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(status.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// Opens the file that drops the kernel's caches (the kernel's Documentation/admin-guide/sysctl/vm.rst); only root may.
pub(super) fn open_caches() -> io::Result<File> {
    File::options().write(true).open("/proc/sys/vm/drop_caches")
}

/// Writes everything back and drops the kernel's caches, so that later reads come from the disk.
pub(super) fn drop_caches(mut caches: File) -> io::Result<()> {
    rustix::fs::sync();
    // 1: pages, 2: directory entries and inodes.
    io::Write::write_all(&mut caches, b"3")
}

/// Waits `seconds`, or until a signal comes.
pub(super) fn sleep(seconds: u64) {
    let begin = Instant::now();
    let all = Duration::from_secs(seconds);
    while let Some(left) = all.checked_sub(begin.elapsed()).filter(|left| !left.is_zero()) {
        if interrupt_flag::interrupted() {
            return;
        }
        std::thread::sleep(left.min(POLL_INTERVAL));
    }
}
