//! The process that removes the demo's disk, whatever ends the demo.
//!
//! It sleeps on a pipe from the demo and acts at the end of the pipe. The steps' own processes get a signal when the
//! demo dies. It has its own session and ignores signals that are sent to a terminal or a service. If it is killed
//! together with the demo, the next `luc` of root removes the disk ([`crate::demo_disk::restore_left`]).

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use luc_host::interrupt_flag;
use luc_units::OnPath as _;

use crate::DemoError;
use crate::demo_disk::DemoDisk;

/// The hidden option with which `luc demo` becomes the guardian; the demo's process follows.
pub const OPTION: &str = "--clear-up-after";
/// Line that it prints once no signal can end it any more.
const READY: &str = "ready";
/// Time for programs to release the disk after the demo's end.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(20);

/// Process that removes the demo's disk, seen from the demo. Dropped, it clears up.
#[derive(Debug)]
pub(crate) struct DemoGuardian {
    child: Child,
    luc: PathBuf,
    place: DemoDisk,
    has_ended: bool,
}

impl DemoGuardian {
    /// Starts it, before there is anything to clear up.
    pub(crate) fn start(luc: &Path, place: &DemoDisk) -> Result<Self, DemoError> {
        let mut child = Command::new(luc)
            .args(["demo", OPTION, &std::process::id().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .current_dir("/")
            .spawn()
            .map_err(DemoError::io("run", luc))?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(DemoError::io("run", luc))?;
        }
        let guardian = Self { child, luc: luc.to_owned(), place: place.clone(), has_ended: false };
        match line.trim_end() {
            READY => Ok(guardian),
            _ if interrupt_flag::interrupted() => Err(DemoError::Interrupted),
            _ => Err(DemoError::Guardian("did not start")),
        }
    }

    /// Lets it remove the disk, and waits until it has finished.
    pub(crate) fn end(mut self) -> Result<(), DemoError> {
        self.clear()
    }

    fn clear(&mut self) -> Result<(), DemoError> {
        if std::mem::replace(&mut self.has_ended, true) {
            return Ok(());
        }
        drop(self.child.stdin.take());
        let status = self.child.wait();
        match status.map_err(DemoError::io("wait for", &self.luc))?.code() {
            Some(0) => Ok(()),
            // It has waited for programs already.
            Some(_) => self.place.clear(Duration::ZERO),
            // It was killed.
            None => self.place.clear(RELEASE_TIMEOUT),
        }
    }
}

impl Drop for DemoGuardian {
    fn drop(&mut self) {
        // After an error, which is on its way to the user.
        if let Err(error) = self.clear() {
            eprintln!("luc: {error}");
        }
    }
}

/// Runs as the guardian of the demo with this process ID.
///
/// # Errors
///
/// As [`DemoDisk::clear`].
pub fn serve(process: u32) -> Result<(), DemoError> {
    // Another name, so that `killall luc` ends the demo and not this process.
    let _ = rustix::thread::set_name(c"demo-guardian");
    // Both fail only if they are not needed: for a session leader, or without signals.
    let _ = rustix::process::setsid();
    let _ = interrupt_flag::install();
    let mut stdout = io::stdout();
    // A demo that is gone already does not read this.
    let _ = writeln!(stdout, "{READY}").and_then(|()| stdout.flush());
    // A pipe that cannot be read counts as ended.
    let _ = io::stdin().read_to_end(&mut Vec::new());
    DemoDisk::of_process(process).clear(RELEASE_TIMEOUT)
}
