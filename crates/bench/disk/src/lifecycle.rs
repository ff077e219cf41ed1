//! Creates, lists, fails, cuts, restores and removes disks.
//!
//! Creation makes, in this order: state directory, daemon with its FUSE mount, loop device, file system, mount.
//! Removal takes them away in reverse order. It finds each in the kernel (mountinfo, sysfs, /proc) and not in notes.
//! So it also clears the leftovers of a crash between any two steps. A failed creation is removed the same way.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use luc_host::interrupt_flag;

use crate::control_protocol::{self, ControlReply, ControlRequest};
use crate::disk_holder::DiskHolder;
use crate::disk_spec::{DiskInfo, DiskSpec, DiskStats, EmulatedDiskState, MountSpec};
use crate::fuse_fs::MAX_REQUEST_BYTES;
use crate::injected_fault::{FaultSpec, FaultStatus};
use crate::state_dir::StateDir;
use crate::volatile_cache::CutReport;
use crate::{Error, daemon, loopdev, mounts};

/// A daemon that has not answered by then is stuck.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Time that removal waits for things that normally take milliseconds.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(2);
/// Time that programs in other mount namespaces get to end.
const LASTING_TIMEOUT: Duration = Duration::from_secs(4);
/// Time between two attempts to remove a disk that is in use.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Creates a disk. `daemon` is the `luc` binary, run again as the disk's daemon.
///
/// The disk takes no time until it is complete: making and mounting the file system is quick with
/// every model, and durable.
///
/// # Errors
/// Bad input, a machine that cannot do it, a tool that failed, or [`Error::Interrupted`]. Nothing
/// is left behind.
pub fn create(spec: &DiskSpec, daemon: &Path) -> Result<DiskInfo, Error> {
    let mut spec = spec.clone();
    let state = StateDir::of(&spec.name)?;
    if !(1 << 20..=1 << 44).contains(&spec.size_bytes) || !spec.size_bytes.is_multiple_of(4096) {
        return Err(Error::Size(spec.size_bytes));
    }
    if spec.read_ahead_bytes > 64 << 20 || !spec.read_ahead_bytes.is_multiple_of(4096) {
        return Err(Error::ReadAhead(spec.read_ahead_bytes));
    }
    spec.model.check()?;
    check_machine()?;
    if let Some(mkfs) = &spec.mkfs {
        mounts::check_mkfs(mkfs)?;
    }
    if let Some(mount) = &mut spec.mount {
        mount.dir = mounts::check_mount_dir(&mount.dir)?;
    }
    let _lock = state.create(&spec)?;
    let built = build(&spec, &state, daemon);
    if built.is_err() {
        // The error that stopped the creation is the one to report.
        let _ = tear_down(&spec.name, &state, true);
    }
    built?;
    Ok(info(&spec.name, &state))
}

fn build(spec: &DiskSpec, state: &StateDir, daemon: &Path) -> Result<(), Error> {
    let go_on = || {
        if interrupt_flag::interrupted() { Err(Error::Interrupted) } else { Ok(()) }
    };
    go_on()?;
    daemon::start(daemon, state, &spec.name)?;
    go_on()?;
    let device = loopdev::attach(&state.image())?;
    loopdev::tune(&device, spec, MAX_REQUEST_BYTES);
    go_on()?;
    if let Some(mkfs) = &spec.mkfs {
        mounts::mkfs(&device, mkfs)?;
    }
    if let Some(mount) = &spec.mount {
        mounts::mount(&device, mount)?;
    }
    ask(&spec.name, state, ControlRequest::Begin)?;
    state.set_complete()?;
    go_on()
}

fn check_machine() -> Result<(), Error> {
    if !rustix::process::geteuid().is_root() {
        return Err(Error::NotRoot);
    }
    std::fs::File::options().read(true).write(true).open("/dev/fuse").map_err(Error::NoFuse)?;
    loopdev::check()
}

/// Lists all disks by name, including those that a crash left half created or half removed.
///
/// # Errors
/// None today; callers should not have to change when there is one.
pub fn list() -> Result<Vec<DiskInfo>, Error> {
    let known = |name: String| StateDir::of(&name).map(|state| info(&name, &state));
    StateDir::names().into_iter().map(known).collect()
}

/// Returns a disk's counters since its creation.
///
/// # Errors
/// [`Error::NoSuchDisk`], [`Error::Dead`].
pub fn stats(name: &str) -> Result<DiskStats, Error> {
    let state = existing(name)?;
    match ask(name, &state, ControlRequest::Stats)? {
        ControlReply::Stats(stats) => Ok(stats),
        other => Err(unexpected(name, &other)),
    }
}

/// Makes requests of a disk fail from now on, in place of an earlier fault. A failed write changes nothing on the disk,
/// and a failed flush makes nothing durable. The fault lasts until [`clear_fault`] or until its time is over; a power
/// cut does not end it.
///
/// # Errors
/// [`Error::Errno`], [`Error::Fault`], [`Error::NoSuchDisk`], [`Error::Dead`].
pub fn fail(name: &str, fault: &FaultSpec) -> Result<FaultStatus, Error> {
    let state = existing(name)?;
    let size_bytes = state.spec().map_or(0, |spec| spec.size_bytes);
    fault.check(size_bytes)?;
    match ask(name, &state, ControlRequest::Fail(fault.clone()))? {
        ControlReply::Fault { fault: Some(status) } => Ok(status),
        other => Err(unexpected(name, &other)),
    }
}

/// Ends the fault of [`fail`], and returns its counters.
///
/// # Errors
/// [`Error::NoSuchDisk`], [`Error::Dead`], [`Error::State`] when no requests fail.
pub fn clear_fault(name: &str) -> Result<FaultStatus, Error> {
    let state = existing(name)?;
    match ask(name, &state, ControlRequest::Clear)? {
        ControlReply::Fault { fault } => fault.ok_or_else(|| no_fault(name)),
        other => Err(unexpected(name, &other)),
    }
}

/// Returns the fault that [`fail`] began, and its counters.
///
/// # Errors
/// As [`clear_fault`].
pub fn fault(name: &str) -> Result<FaultStatus, Error> {
    let state = existing(name)?;
    match ask(name, &state, ControlRequest::Status)? {
        ControlReply::Status { fault, .. } => fault.ok_or_else(|| no_fault(name)),
        other => Err(unexpected(name, &other)),
    }
}

fn no_fault(name: &str) -> Error {
    Error::State {
        name: name.to_owned(),
        reason: "does not fail: give it an errno with `luc disk fail NAME --errno E`",
    }
}

/// Cuts a disk's power. When this returns, nothing written later can become durable and every request fails with EIO,
/// until [`restore`].
///
/// Without a seed all unflushed writes are lost. With a seed, each unflushed sector keeps its newest contents, an older
/// unflushed version, or its flushed contents, at random. The same seed and the same writes give the same outcome.
///
/// # Errors
/// [`Error::NoSuchDisk`], [`Error::Dead`], [`Error::State`] when it is cut already.
pub fn cut(name: &str, seed: Option<u64>) -> Result<CutReport, Error> {
    let state = existing(name)?;
    match ask(name, &state, ControlRequest::Cut { seed })? {
        ControlReply::Cut(report) => Ok(report),
        ControlReply::AlreadySo => {
            Err(Error::State { name: name.to_owned(), reason: "is cut already: restore it first" })
        }
        other => Err(unexpected(name, &other)),
    }
}

/// Restores the power of a cut disk. The disk must not be mounted, since the kernel's memory would not have survived
/// the power cut either.
///
/// # Errors
/// [`Error::NoSuchDisk`], [`Error::StillMounted`], [`Error::Dead`], [`Error::State`] when it is
/// not cut.
pub fn restore(name: &str) -> Result<(), Error> {
    let state = existing(name)?;
    let not_cut = || Error::State {
        name: name.to_owned(),
        reason: "is not cut: there is nothing to restore",
    };
    if !matches!(ask(name, &state, ControlRequest::Status)?, ControlReply::Status { cut: true, .. })
    {
        return Err(not_cut());
    }
    for device in loopdev::attached_to(&state.image()) {
        if let Some(dir) = mounts::mounts_of(&device).pop() {
            return Err(Error::StillMounted { name: name.to_owned(), dir });
        }
        // While everything still fails, so that no stale block can be written back.
        loopdev::drop_cache(&device)?;
    }
    match ask(name, &state, ControlRequest::Restore)? {
        ControlReply::Done => Ok(()),
        ControlReply::AlreadySo => Err(not_cut()),
        other => Err(unexpected(name, &other)),
    }
}

/// Removes a disk: unmounts its file systems, detaches its device, ends its daemon.
///
/// # Errors
/// [`Error::NoSuchDisk`], [`Error::InUse`], [`Error::Locked`], or what could not be removed.
pub fn remove(name: &str) -> Result<(), Error> {
    let state = existing(name)?;
    let _lock = state.lock(name)?;
    tear_down(name, &state, false)
}

/// Removes a disk as [`remove`] does, and waits up to `timeout` until programs release it. Holders that rarely release
/// it ([`DiskHolder::is_lasting`]) get less time.
///
/// # Errors
/// As [`remove`].
pub fn remove_when_free(
    name: &str,
    timeout: Duration,
    meanwhile: &mut dyn FnMut(),
) -> Result<(), Error> {
    let begun = Instant::now();
    loop {
        let error = match remove(name) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let timeout = match &error {
            Error::InUse { holder, .. } if holder.is_lasting() => timeout.min(LASTING_TIMEOUT),
            Error::InUse { .. } | Error::Locked(_) => timeout,
            _ => return Err(error),
        };
        if begun.elapsed() >= timeout {
            return Err(error);
        }
        meanwhile();
        std::thread::sleep(RETRY_INTERVAL);
    }
}

/// Removes every disk, also one in use, whose users then get errors. Returns their names.
///
/// # Errors
/// The first that could not be removed, after all have been tried.
pub fn remove_all() -> Result<Vec<String>, Error> {
    let mut removed = Vec::new();
    let mut first_error = None;
    for name in StateDir::names() {
        let state = StateDir::of(&name)?;
        let outcome = state.lock(&name).and_then(|_lock| tear_down(&name, &state, true));
        match outcome {
            Ok(()) => removed.push(name),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    first_error.map_or(Ok(removed), Err)
}

/// Mounts a disk's file system again, as after a cut and [`restore`].
///
/// # Errors
/// [`Error::NoSuchDisk`], [`Error::MountDir`], or what `mount` said.
pub fn mount_disk(name: &str, mount: &MountSpec) -> Result<(), Error> {
    let state = existing(name)?;
    let dir = mounts::check_mount_dir(&mount.dir)?;
    let info = info(name, &state);
    mounts::mount(&info.device, &MountSpec { dir, options: mount.options.clone() })
}

/// Undoes every step of a creation that was taken, last first.
fn tear_down(name: &str, state: &StateDir, force: bool) -> Result<(), Error> {
    let answered =
        control_protocol::ask(state.path(), ControlRequest::Hurry, REMOVE_TIMEOUT).is_ok();
    if !answered {
        // It is dead or stuck. A kill releases those who wait for it.
        daemon::end(state, Duration::ZERO);
    }
    let image = state.image();
    for device in loopdev::attached_to(&image) {
        for dir in mounts::mounts_of(&device).into_iter().rev() {
            if mounts::unmount(&dir).is_err() {
                if !force {
                    return Err(Error::InUse {
                        name: name.to_owned(),
                        holder: DiskHolder::find(&device, Some(&dir)),
                    });
                }
                mounts::unmount_lazily(&dir);
            }
        }
        loopdev::untune(&device);
        let detached = loopdev::detach(
            &device,
            &image,
            if force { REMOVE_TIMEOUT / 4 } else { REMOVE_TIMEOUT },
        )?;
        if !detached && !force {
            return Err(Error::InUse {
                name: name.to_owned(),
                holder: DiskHolder::find(&device, None),
            });
        }
    }
    let fuse = state.fuse();
    while mounts::is_mount_point(&fuse) {
        mounts::unmount_lazily(&fuse);
    }
    daemon::end(state, REMOVE_TIMEOUT);
    state.remove()
}

fn info(name: &str, state: &StateDir) -> DiskInfo {
    let spec = state.spec();
    let device = loopdev::attached_to(&state.image()).into_iter().next().unwrap_or_default();
    let daemon_pid = daemon::find(state).first().copied().unwrap_or(0);
    let (disk_state, fault) =
        match control_protocol::ask(state.path(), ControlRequest::Status, ANSWER_TIMEOUT) {
            _ if !state.is_complete() => (EmulatedDiskState::Creating, None),
            Ok(ControlReply::Status { cut: true, fault }) => (EmulatedDiskState::Cut, fault),
            Ok(ControlReply::Status { cut: false, fault }) => (EmulatedDiskState::Running, fault),
            Ok(_) => (EmulatedDiskState::Running, None),
            Err(_) => (EmulatedDiskState::Dead, None),
        };
    let mount = (device != PathBuf::new()).then(|| mounts::mounts_of(&device).into_iter().next());
    DiskInfo {
        name: name.to_owned(),
        mount: mount.flatten(),
        device,
        size_bytes: spec.as_ref().map_or(0, |spec| spec.size_bytes),
        model: spec.map_or(crate::ModelSpec::free(), |spec| spec.model),
        daemon_pid,
        state: disk_state,
        fault,
    }
}

fn existing(name: &str) -> Result<StateDir, Error> {
    let state = StateDir::of(name)?;
    if state.path().is_dir() { Ok(state) } else { Err(Error::NoSuchDisk(name.to_owned())) }
}

fn ask(name: &str, state: &StateDir, ask: ControlRequest) -> Result<ControlReply, Error> {
    control_protocol::ask(state.path(), ask, ANSWER_TIMEOUT)
        .map_err(|error| Error::Dead { name: name.to_owned(), reason: error.to_string() })
}

fn unexpected(name: &str, answer: &ControlReply) -> Error {
    Error::Dead { name: name.to_owned(), reason: format!("it said {answer:?}") }
}
