//! A running guest: waiting for it, reading its output so far, and ending it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

use crate::cpio;
use crate::error::Error;
use crate::guest_outcome::GuestOutcome;
use crate::qemu_monitor::QemuMonitor;

/// Interval at which a running guest is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Number of lines of a log that an error shows.
const TAIL_LINES: usize = 60;

/// Library that makes turns of several processors exact (qemu_turns.c).
const TURNS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/turns.so"));

/// A file in memory that QEMU opens through this process. Nothing is left of it when either ends.
#[derive(Debug)]
pub(crate) struct MemoryFile(File);

impl MemoryFile {
    pub(crate) fn new(name: &str) -> Result<Self, Error> {
        let system = |error: rustix::io::Errno| Error::System {
            what: "making a memory file",
            source: error.into(),
        };
        let file: OwnedFd = memfd_create(name, MemfdFlags::CLOEXEC).map_err(system)?;
        Ok(Self(file.into()))
    }

    /// Returns the path by which a child opens the file.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// Makes a memory file with this content.
    pub(crate) fn of(name: &str, content: &[u8]) -> Result<Self, Error> {
        let mut this = Self::new(name)?;
        this.file()
            .write_all(content)
            .map_err(|source| Error::System { what: "writing a memory file", source })?;
        Ok(this)
    }

    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.0
    }

    pub(crate) fn as_file(&self) -> &File {
        &self.0
    }

    /// Returns its content so far.
    fn content(&self) -> Result<Vec<u8>, Error> {
        let read = || {
            let mut file = &self.0;
            let mut bytes = Vec::new();
            file.seek(SeekFrom::Start(0))?;
            file.read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read().map_err(|source| Error::System { what: "reading a memory file", source })
    }
}

/// The memory files of a run.
#[derive(Debug)]
pub(crate) struct GuestChannels {
    pub(crate) initramfs: MemoryFile,
    pub(crate) console: MemoryFile,
    pub(crate) results: MemoryFile,
    pub(crate) output: MemoryFile,
    pub(crate) errors: MemoryFile,
    /// The library of `qemu_turns.c`.
    pub(crate) turns: MemoryFile,
}

impl GuestChannels {
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self {
            initramfs: MemoryFile::new("luc-vm-initramfs")?,
            console: MemoryFile::new("luc-vm-console")?,
            results: MemoryFile::new("luc-vm-results")?,
            output: MemoryFile::new("luc-vm-output")?,
            errors: MemoryFile::new("luc-vm-errors")?,
            turns: MemoryFile::of("luc-vm-turns", TURNS)?,
        })
    }
}

/// A running guest. Dropping it ends it, and so does the system when the thread that started it ends.
#[derive(Debug)]
pub struct RunningGuest {
    qemu: Child,
    channels: GuestChannels,
    /// Monitor by which the guest can be paused.
    monitor: Option<QemuMonitor>,
    started: Instant,
    limit: Duration,
}

impl RunningGuest {
    pub(crate) fn start(
        mut command: Command,
        channels: GuestChannels,
        monitor: Option<QemuMonitor>,
        inherited: Vec<Arc<OwnedFd>>,
        limit: Duration,
    ) -> Result<Self, Error> {
        let system = |source| Error::System { what: "starting QEMU", source };
        let errors = channels.errors.0.try_clone().map_err(system)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let parent = getpid();
        // SAFETY: between fork and exec only system calls are made; nothing allocates or locks.
        unsafe {
            command.pre_exec(move || {
                for socket in &inherited {
                    fcntl_setfd(socket, FdFlags::empty())?;
                }
                set_parent_process_death_signal(Some(Signal::KILL))?;
                // The parent may have died before the signal was asked for.
                if getppid() == Some(parent) { Ok(()) } else { Err(rustix::io::Errno::SRCH.into()) }
            });
        }
        let qemu = command.spawn().map_err(system)?;
        Ok(Self { qemu, channels, monitor, started: Instant::now(), limit })
    }

    /// Returns the script's output so far. In virtual time it is empty before the end.
    ///
    /// # Errors
    ///
    /// [`Error::System`] if the memory file cannot be read.
    pub fn output(&self) -> Result<Vec<u8>, Error> {
        self.channels.output.content()
    }

    /// Returns the kernel's console output so far.
    ///
    /// # Errors
    ///
    /// [`Error::System`] if the memory file cannot be read.
    pub fn console(&self) -> Result<String, Error> {
        Ok(String::from_utf8_lossy(&self.channels.console.content()?).replace('\r', ""))
    }

    /// Whether the guest still runs.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if it has had its time; then it is ended.
    pub fn is_running(&mut self) -> Result<bool, Error> {
        Ok(self.poll()?.is_none())
    }

    /// Stops the guest's processors and clocks, as for a migration, until [`RunningGuest::resume`].
    ///
    /// # Errors
    ///
    /// [`Error::System`] and [`Error::Command`] if QEMU does not do it, or
    /// [`VirtualMachine::pausable`](crate::VirtualMachine::pausable) was not asked for.
    pub fn pause(&mut self) -> Result<(), Error> {
        self.tell("stop")
    }

    /// Lets the guest continue. Its clocks have not seen the pause.
    ///
    /// # Errors
    ///
    /// As [`RunningGuest::pause`].
    pub fn resume(&mut self) -> Result<(), Error> {
        self.tell("cont")
    }

    fn tell(&mut self, command: &'static str) -> Result<(), Error> {
        match &mut self.monitor {
            Some(monitor) => monitor.execute(command),
            None => Err(Error::Command {
                command: format!("QEMU's {command}"),
                reason: "this guest has no monitor: ask for Vm::pausable before it starts"
                    .to_owned(),
            }),
        }
    }

    /// Cuts the power: data that the guest had not written to its disks is lost.
    pub fn cut(mut self) {
        self.end();
    }

    /// Waits for the guest to end and collects its results.
    ///
    /// # Errors
    ///
    /// [`Error::Panic`], [`Error::Timeout`], [`Error::NoResult`] and [`Error::Damaged`].
    pub fn wait(mut self) -> Result<GuestOutcome, Error> {
        let status = loop {
            if let Some(status) = self.poll()? {
                break status;
            }
            thread::sleep(POLL_INTERVAL);
        };
        self.collect(status)
    }

    /// Returns the exit status if the guest has ended.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if it has had its time; then it is ended.
    fn poll(&mut self) -> Result<Option<ExitStatus>, Error> {
        let system = |source| Error::System { what: "waiting for QEMU", source };
        if let Some(status) = self.qemu.try_wait().map_err(system)? {
            return Ok(Some(status));
        }
        if self.started.elapsed() < self.limit {
            return Ok(None);
        }
        self.end();
        let message = String::from_utf8_lossy(&self.output()?).into_owned();
        let log = format!("{}\n{}", tail(&message), tail(&self.console()?));
        Err(Error::Timeout { limit: self.limit, log })
    }

    fn collect(&self, status: ExitStatus) -> Result<GuestOutcome, Error> {
        let console = self.console()?;
        if let Some(line) = console.lines().find(|line| line.contains("Kernel panic - not syncing"))
        {
            let reason = line.split_once("not syncing: ").map_or(line, |(_, reason)| reason);
            return Err(Error::Panic { reason: reason.to_owned(), log: tail(&console) });
        }
        let results = self.channels.results.content()?;
        if results.is_empty() {
            let message = self.channels.errors.content()?;
            let status = format!("{status}: {}", String::from_utf8_lossy(&message).trim());
            return Err(Error::NoResult { status, log: tail(&console) });
        }
        let mut all = cpio::read_files(&results)?;
        let mut take =
            |name| all.remove(name).ok_or(Error::Damaged("a part of the results is not there"));
        let exit = String::from_utf8_lossy(&take("status")?).trim().parse();
        let kernel_log = String::from_utf8_lossy(&take("kernel.log")?).into_owned();
        let output = match take("output") {
            Ok(output) => output,
            Err(_) => self.output()?,
        };
        let files = all
            .into_iter()
            .filter_map(|(name, content)| Some((name.strip_prefix("files/")?.to_owned(), content)));
        Ok(GuestOutcome {
            status: exit.map_err(|_| Error::Damaged("the exit status is no number"))?,
            output,
            kernel_log,
            files: files.collect(),
            wall: self.started.elapsed(),
        })
    }

    fn end(&mut self) {
        // It may have ended by itself.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

impl Drop for RunningGuest {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns the last lines of a log.
fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.trim_end().lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}
