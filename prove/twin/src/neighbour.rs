//! A process on a back end's host that is in its way. It ends with the back end.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::fs::syncfs;
use rustix::process::{Pid, Signal, kill_process};

use crate::error::TwinError;
use crate::plant::cold::unnamed;
use crate::process::end_with;

/// Offset from which the writer goes back to the file's beginning.
const FILE_BYTES: u64 = 64 << 20;

/// Work of a neighbour until its standard input ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NeighbourOptions {
    /// Stops a process by a signal and lets it go on, again and again.
    Stop {
        process: u32,
        stopped: Duration,
        /// Time between two stops.
        between: Duration,
    },
    /// Writes to a file and asks the kernel to write it back.
    Write {
        /// Directory of the file, which has no name.
        directory: PathBuf,
        /// Bytes written at a time.
        bytes: u64,
    },
}

impl NeighbourOptions {
    /// The command line that gives these options.
    #[must_use]
    pub fn arguments(&self) -> Vec<OsString> {
        let parent = std::process::id().to_string();
        let mut arguments: Vec<OsString> = vec!["neighbour".into(), parent.into()];
        match self {
            Self::Stop { process, stopped, between } => {
                let numbers = [
                    process.to_string(),
                    stopped.as_millis().to_string(),
                    between.as_millis().to_string(),
                ];
                arguments.push("stop".into());
                arguments.extend(numbers.map(OsString::from));
            }
            Self::Write { directory, bytes } => {
                let bytes = bytes.to_string();
                arguments.extend(["write".into(), directory.into(), bytes.into()]);
            }
        }
        arguments
    }

    /// Works until the standard input ends, or the process `parent`.
    ///
    /// # Errors
    /// What cannot be done here.
    pub fn run(&self, parent: u32) -> Result<(), TwinError> {
        end_with(parent)?;
        let is_over = Arc::<AtomicBool>::default();
        let same = Arc::clone(&is_over);
        thread::spawn(move || {
            // However it ends, this is over.
            let _ = io::stdin().read_to_end(&mut Vec::new());
            same.store(true, Ordering::Relaxed);
        });
        let goes_on = || !is_over.load(Ordering::Relaxed);
        match self {
            Self::Stop { process, stopped, between } => {
                stop(*process, [*stopped, *between], goes_on)
            }
            Self::Write { directory, bytes } => {
                let file = unnamed(directory)?;
                let written = || TwinError::file(directory);
                let data = vec![0xa5; usize::try_from(*bytes).unwrap_or(usize::MAX)];
                let mut at = 0;
                while goes_on() {
                    if at >= FILE_BYTES {
                        at = 0;
                    }
                    file.write_all_at(&data, at).map_err(written())?;
                    at += bytes;
                    // Unlike fsync this has a thread of the kernel write.
                    syncfs(&file).map_err(TwinError::file(directory))?;
                }
                Ok(())
            }
        }
    }
}

fn stop(
    process: u32,
    [stopped, between]: [Duration; 2],
    goes_on: impl Fn() -> bool,
) -> Result<(), TwinError> {
    let what = "stopping a process";
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| TwinError::Option {
        what: format!("process {process}"),
        why: "there is none".into(),
    })?;
    while goes_on() {
        kill_process(pid, Signal::STOP).map_err(TwinError::system(what))?;
        thread::sleep(stopped);
        kill_process(pid, Signal::CONT).map_err(TwinError::system(what))?;
        thread::sleep(between);
    }
    Ok(())
}

/// A running neighbour. Dropping it closes its input, which ends it.
#[derive(Debug)]
pub(crate) struct Neighbour(Child);

impl Neighbour {
    /// Starts a neighbour. The calling thread must live until [`Neighbour::end`], because the neighbour ends with that
    /// thread.
    pub(crate) fn start(options: &NeighbourOptions) -> Result<Self, TwinError> {
        let failed = || TwinError::system("starting a neighbour");
        let program = std::env::current_exe().map_err(failed())?;
        let mut command = Command::new(program);
        command.args(options.arguments()).stdin(Stdio::piped());
        // The back end's standard output is a pipe on which its run waits.
        let child = command.stdout(Stdio::null()).spawn().map_err(failed())?;
        Ok(Self(child))
    }

    pub(crate) fn process(&self) -> u32 {
        self.0.id()
    }

    /// Ends the neighbour and waits for it.
    pub(crate) fn end(mut self) -> Result<(), TwinError> {
        drop(self.0.stdin.take());
        let status = self.0.wait().map_err(TwinError::system("waiting for a neighbour"))?;
        if status.success() {
            return Ok(());
        }
        Err(TwinError::Ended { name: "a neighbour".into(), status: status.to_string() })
    }
}
