//! The process that is a disk: started by `create`, found and ended by `remove`.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fuser::{Config, MountOption, Session};
use luc_units::OnPath as _;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::control_protocol::{self, ControlReply, ControlRequest};
use crate::disk_image::PageKind;
use crate::engine::DiskEngine;
use crate::fuse_fs::{DiskFs, FuseReply};
use crate::state_dir::StateDir;
use crate::{DiskSpec, Error};

/// The hidden arguments with which the binary becomes a daemon; its state directory follows.
const ARGUMENTS: [&str; 3] = ["disk", "serve", "--dir"];
/// linux/prctl.h: allocating memory must not wait for a disk, which may be this one.
const PR_SET_IO_FLUSHER: libc::c_int = 57;
/// The daemon's line on its standard output once it serves.
const READY: &str = "ready";

/// Starts the daemon of the disk in `state` and waits until it serves.
///
/// # Errors
/// [`Error::Daemon`] with what it said.
pub(crate) fn start(binary: &Path, state: &StateDir, name: &str) -> Result<(), Error> {
    let failed = |reason: String| Error::Daemon { name: name.to_owned(), reason };
    let log = state.log_file();
    let log = File::create(&log).map_err(Error::io("create", &log))?;
    let mut child = Command::new(binary)
        .args(ARGUMENTS)
        .arg(state.path())
        // The folder of its creator may be on a disk that is to be unmounted before this one.
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(|error| failed(format!("{}: {error}", binary.display())))?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line).map_err(|error| failed(error.to_string()))?;
    }
    if line.trim_end() == READY {
        return Ok(());
    }
    // It has ended or is about to: it closed its output without being ready.
    let _ = child.kill();
    let _ = child.wait();
    let log = std::fs::read_to_string(state.log_file()).unwrap_or_default();
    Err(failed(log.lines().next().unwrap_or("it said nothing").to_owned()))
}

/// Closes all descriptors inherited from the shell, so that no lock or pipe of it stays open.
fn close_inherited() {
    // By its number, since only glibc 2.34 has a function of this name.
    // SAFETY: nothing of this process has been opened yet beyond the standard streams.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
}

/// Runs the disk whose state directory is `dir`, until its file system is unmounted.
///
/// # Errors
/// Whatever keeps it from starting, or its session with the kernel ended badly.
pub fn serve(dir: PathBuf) -> Result<(), Error> {
    // Out of reach of the creating shell: its own session, signals of the terminal ignored.
    // Both fail only if they are not needed (already a session leader).
    let _ = rustix::process::setsid();
    ignore_terminal();
    close_inherited();
    let state = StateDir::at(dir);
    let spec = state.spec().ok_or_else(|| Error::NoSuchDisk(state.path().display().to_string()))?;
    prefer_exact_time();
    let pages = if spec.huge_pages { PageKind::Huge } else { PageKind::Ordinary };
    let engine = DiskEngine::new(spec.size_bytes, spec.model.cache_bytes(), pages)
        .map_err(Error::io("make the image of", state.path()))?;

    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(format!("luc-disk-{}", spec.name)),
        MountOption::NoDev,
        MountOption::NoSuid,
        MountOption::NoExec,
    ];
    let file_system = DiskFs { engine: Arc::clone(&engine), size_bytes: spec.size_bytes };
    let fuse = state.fuse();
    let session =
        Session::new(file_system, &fuse, &config).map_err(Error::io("mount FUSE on", &fuse))?;
    let listener =
        control_protocol::listen(state.path()).map_err(Error::io("listen in", state.path()))?;

    let timer = Arc::clone(&engine);
    let control = Arc::clone(&engine);
    spawn("timer", move || {
        // Without its timer the disk would hang: end it, which fails every request.
        if timer.run_timer().is_err() {
            std::process::exit(2);
        }
    })?;
    spawn("control", move || {
        control_protocol::serve(&listener, |ask| answer(&control, &spec, ask));
    })?;
    announce().map_err(Error::io("answer the creator of", state.path()))?;
    session.run().map_err(Error::io("serve", &fuse))
}

fn answer(engine: &DiskEngine<FuseReply>, spec: &DiskSpec, ask: ControlRequest) -> ControlReply {
    match ask {
        ControlRequest::Begin => {
            engine.begin(spec.model.build(spec.size_bytes));
            ControlReply::Done
        }
        ControlRequest::Status => {
            ControlReply::Status { cut: engine.is_cut(), fault: engine.fault() }
        }
        ControlRequest::Stats => ControlReply::Stats(engine.stats()),
        ControlRequest::Cut { seed } => {
            engine.cut(seed).map_or(ControlReply::AlreadySo, ControlReply::Cut)
        }
        ControlRequest::Restore if engine.restore(spec.model.build(spec.size_bytes)) => {
            ControlReply::Done
        }
        ControlRequest::Restore => ControlReply::AlreadySo,
        ControlRequest::Fail(fault) => ControlReply::Fault { fault: Some(engine.fail(fault)) },
        ControlRequest::Clear => ControlReply::Fault { fault: engine.clear_fault() },
        ControlRequest::Hurry => {
            engine.hurry();
            ControlReply::Done
        }
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body);
    thread.map(drop).map_err(Error::io("start a thread called", name))
}

/// Announces that the disk serves, and closes the creator's pipe.
fn announce() -> std::io::Result<()> {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{READY}")?;
    stdout.flush()?;
    let null = File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(())
}

fn ignore_terminal() {
    for signal in [libc::SIGINT, libc::SIGHUP, libc::SIGPIPE] {
        // SAFETY: SIG_IGN installs no handler, and these are valid signal numbers.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Asks to run before ordinary threads, and for exact timers.
/// Threads started later inherit both. Where it may not, the disk is less exact, no more.
fn prefer_exact_time() {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: `parameters` outlives the call; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    // SAFETY: PR_SET_TIMERSLACK and PR_SET_IO_FLUSHER take integers and touch no memory of ours.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
    }
}

/// Finds the daemons of the disk in `state`: normally one, none after a crash. A process is identified by its command
/// line, which names the state directory. So a reused PID is never mistaken for a daemon.
pub(crate) fn find(state: &StateDir) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| is_daemon_of(*pid, state))
        .collect()
}

fn is_daemon_of(pid: u32, state: &StateDir) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Ok(line) = std::fs::read(format!("/proc/{pid}/cmdline")) else {
        return false;
    };
    let mut arguments = line.split(|byte| *byte == 0).skip(1);
    ARGUMENTS.iter().all(|expected| arguments.next() == Some(expected.as_bytes()))
        && arguments.next() == Some(state.path().as_os_str().as_bytes())
}

/// Waits up to `timeout` for the daemons of `state` to end, then kills the rest.
pub(crate) fn end(state: &StateDir, timeout: Duration) {
    let deadline = Instant::now() + timeout;
    loop {
        let pids = find(state);
        if pids.is_empty() {
            return;
        }
        if Instant::now() >= deadline {
            pids.iter().for_each(|pid| kill(*pid, state));
            // A killed process may not be gone yet, but the kernel closes its descriptors.
            if Instant::now() >= deadline + Duration::from_secs(2) {
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn kill(pid: u32, state: &StateDir) {
    let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return;
    };
    let Ok(handle) = pidfd_open(raw, PidfdFlags::empty()) else {
        return;
    };
    // The handle pins the process: what is verified now is what the signal reaches.
    if is_daemon_of(pid, state) {
        let _ = pidfd_send_signal(&handle, Signal::KILL);
    }
}
