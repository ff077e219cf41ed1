//! The guardian: a process that thaws everything if the throttle dies, hangs, or freezes a cgroup for too long.
//!
//! It has its own session and cgroup, and the kernel kills it last when memory runs out. So whatever ends the throttle
//! does not end the guardian, too. The throttle watches it in turn ([`GuardianProcess::restart_if_gone`]). Its standard
//! input is the record, which keeps the record's lock while it lives.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open, setsid};

use crate::cgroup::{FreezableCgroup, is_made};
use crate::frozen_record::FrozenRecord;
use crate::kernel_clocks::now_ns;
use crate::lock_in_memory::stay_resident;
use crate::{CgroupHierarchy, ThrottleError};

const PROCESS_NAME: &CStr = c"thaw-guardian";
/// Time without a heartbeat after which the throttle is considered hung, ns.
const HEARTBEAT_TIMEOUT_NS: u64 = 1_000_000_000;
/// Time after a deadline for which the guardian leaves the thaw to the throttle, ns.
const THAW_GRACE_NS: u64 = 40_000_000;
/// Interval between looks, ns, while something is frozen and otherwise.
const LOOK_INTERVAL_NS: u64 = 50_000_000;
const IDLE_LOOK_INTERVAL_NS: u64 = 250_000_000;
/// Interval between checks whether tasks that outlived their throttle have ended, ns.
const LINGER_CHECK_INTERVAL_NS: u64 = 500_000_000;

/// The throttle's view of the guardian.
#[derive(Debug)]
pub struct GuardianProcess {
    luc: PathBuf,
    cgroup: FreezableCgroup,
    child: Child,
}

impl GuardianProcess {
    /// Starts it in `cgroup`. `luc` is this program, whose hidden command `throttle guardian` calls [`main`].
    pub fn start(
        luc: &Path,
        record: &FrozenRecord,
        cgroup: FreezableCgroup,
    ) -> Result<Self, ThrottleError> {
        Ok(Self { luc: luc.to_owned(), child: spawn(luc, record, &cgroup)?, cgroup })
    }

    /// Starts another guardian if it has ended, since nothing may be frozen without one. Returns whether it did.
    pub fn restart_if_gone(&mut self, record: &FrozenRecord) -> Result<bool, ThrottleError> {
        let ended =
            self.child.try_wait().map_err(ThrottleError::process("watching the guardian"))?;
        if ended.is_none() {
            return Ok(false);
        }
        self.child = spawn(&self.luc, record, &self.cgroup)?;
        Ok(true)
    }

    /// Ends it, once nothing is frozen, and removes its cgroup.
    pub fn end(mut self, hierarchy: &CgroupHierarchy) -> Result<(), ThrottleError> {
        // It has ended already, or ends now. In both cases nothing is left.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.cgroup.remove(hierarchy.root())
    }
}

fn spawn(
    luc: &Path,
    record: &FrozenRecord,
    cgroup: &FreezableCgroup,
) -> Result<Child, ThrottleError> {
    let failed = || ThrottleError::process("starting the guardian");
    let file = record.file().try_clone().map_err(failed())?;
    let entrance = cgroup.entrance()?;
    let mut command = Command::new(luc);
    command.args(["throttle", "guardian"]).stdin(Stdio::from(file)).stdout(Stdio::null());
    // SAFETY: between fork and exec only one system call is made; nothing allocates or locks.
    unsafe {
        command
            .pre_exec(move || rustix::io::write(&entrance, b"0").map(|_| ()).map_err(Into::into));
    }
    command.spawn().map_err(failed())
}

/// Body of the guardian's process: watches its parent until that has ended and nothing is frozen.
pub fn main() -> io::Result<()> {
    // Another name protects the guardian from `killall luc`.
    rustix::thread::set_name(PROCESS_NAME)?;
    let record = FrozenRecord::inherited(fs::File::from(io::stdin().as_fd().try_clone_to_owned()?));
    // This fails in a process that leads a session already, which is fine.
    let _ = setsid();
    ignore_signals_to_all();
    // A container without CAP_SYS_RESOURCE refuses this. The guardian then has the same chances as the throttle.
    let _ = fs::write("/proc/self/oom_score_adj", "-1000");
    // This may fail for want of memory to lock. The guardian then works as long as its pages stay.
    let _ = stay_resident();
    let throttle = match getppid().map(|parent| pidfd_open(parent, PidfdFlags::empty())) {
        Some(Ok(pidfd)) if !is_orphan() => pidfd,
        // The throttle died before this process could look.
        _ => return end(&record),
    };
    loop {
        let is_frozen = record.deadlines_ns()?.iter().any(|&deadline_ns| deadline_ns != 0);
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: if is_frozen { LOOK_INTERVAL_NS } else { IDLE_LOOK_INTERVAL_NS } as i64,
        };
        let mut fds = [PollFd::new(&throttle, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return end(&record),
            Err(error) => {
                record.thaw(|_| true)?;
                return Err(error.into());
            }
        }
        let now = now_ns();
        let hangs = now.saturating_sub(record.heartbeat_ns()?) > HEARTBEAT_TIMEOUT_NS;
        let thawed =
            record.thaw(|deadline_ns| hangs || now > deadline_ns.saturating_add(THAW_GRACE_NS))?;
        if thawed > 0 {
            let why = if hangs { "the throttle hangs" } else { "they were frozen for too long" };
            eprintln!("luc: the guardian thawed {thawed} cgroups: {why}");
        }
    }
}

/// Whether the parent has died: then the present parent is not the process that started this one. The name of the
/// record is the number of that process.
fn is_orphan() -> bool {
    let of_record = fs::read_link("/proc/self/fd/0")
        .ok()
        .and_then(|path| path.file_name()?.to_str()?.parse().ok())
        .and_then(Pid::from_raw);
    of_record != getppid()
}

/// Cleans up after a throttle that is gone. Thaws all, waits until its tasks have ended, and removes their cgroups.
fn end(record: &FrozenRecord) -> io::Result<()> {
    record.thaw(|_| true)?;
    let made: Vec<PathBuf> = record.cgroups()?.into_iter().filter(|path| is_made(path)).collect();
    while made.iter().any(|path| is_populated(path)) {
        std::thread::sleep(std::time::Duration::from_nanos(LINGER_CHECK_INTERVAL_NS));
    }
    // Nothing is left to be guarded now. A cgroup that cannot be removed is empty.
    for path in &made {
        let _ = fs::remove_dir(path);
    }
    if let Ok(hierarchy) = CgroupHierarchy::find()
        && let Ok(own) = hierarchy.of_process(std::process::id())
        && own != hierarchy.root()
    {
        let procs = hierarchy.root().join("cgroup.procs");
        let _ = fs::write(procs, std::process::id().to_string());
        let _ = fs::remove_dir(&own);
    }
    if let Some(parent) = made.first().and_then(|path| path.parent()) {
        let _ = fs::remove_dir(parent);
    }
    record.remove();
    Ok(())
}

fn is_populated(cgroup: &Path) -> bool {
    fs::read_to_string(cgroup.join("cgroup.events"))
        .is_ok_and(|events| events.contains("populated 1"))
}

/// Ignores the ending signals that may be sent to all processes of a service, a session or a terminal.
fn ignore_signals_to_all() {
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGPIPE] {
        // SAFETY: SIG_IGN is a valid disposition of these signals, and no handler runs.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}
