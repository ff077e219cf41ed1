//! The file systems that this process synchronizes on, and the way of a call to its place.

use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use luc_rounds::device_slots::{self, FILE_SYSTEMS};
use luc_rounds::figures::FileSystemFigures;
use luc_rounds::gated_call::{CallFileSystem, OwnCallTime, SyncRequest};
use luc_rounds::journal_lookup::{JournalKind, journal_of_device_raw, journal_of_file_raw};
use luc_rounds::overwrite_detection::{FileExtent, OverwriteCandidate};
use luc_rounds::raw_syscall::Errno;
use luc_rounds::rounds::{DurabilityNeed, FileSystemRounds};
use luc_rounds::{GatePolicy, GatedCallKind, call_path_syscalls, mapping_cache, proc_self_maps};

use crate::process_state::{self, GatedProcess};
use crate::{real_functions, retry_notified_call, thread_state};

/// A file system, found out on first use and then only read.
struct SyncedSlot {
    /// `st_dev` plus one; 0 while free.
    device: AtomicU64,
    /// Whether the pointers are final.
    known: AtomicU32,
    rounds: AtomicPtr<FileSystemRounds>,
    figures: AtomicPtr<FileSystemFigures>,
    own: OwnCallTime,
}

static SLOTS: [SyncedSlot; FILE_SYSTEMS] = [const {
    SyncedSlot {
        device: AtomicU64::new(0),
        known: AtomicU32::new(0),
        rounds: AtomicPtr::new(core::ptr::null_mut()),
        figures: AtomicPtr::new(core::ptr::null_mut()),
        own: OwnCallTime::new(),
    }
}; FILE_SYSTEMS];

/// `fsync` or `fdatasync` of `fd`.
pub(crate) fn synchronize_file(
    kind: GatedCallKind,
    fd: c_int,
    real: impl Fn() -> c_int + Copy,
) -> c_int {
    let Some(process) = process_state::get() else {
        return retry_notified_call::repeat(fd, real);
    };
    let Ok(stat) = call_path_syscalls::status(fd) else {
        return real();
    };
    process.count();
    let regular = match stat.st_mode & libc::S_IFMT {
        libc::S_IFREG => true,
        libc::S_IFDIR => false,
        // Pipes, sockets, devices: nothing of a journal.
        _ => return real(),
    };
    let target = Target {
        kind,
        device: stat.st_dev,
        object: Object::File { fd, inode: stat.st_ino, regular },
    };
    synchronize(process, target, real)
}

/// `msync` of a mapping at `address`. Its data cannot be written early: that would take a descriptor,
/// and closing one of our own would drop the program's record locks.
pub(crate) fn synchronize_mapping(address: *mut c_void, real: impl Fn() -> c_int + Copy) -> c_int {
    let Some(process) = process_state::get() else {
        return real();
    };
    process.count();
    let address = address as usize;
    // Looking the mapping up takes more room than a handler's stack may have.
    let device = if call_path_syscalls::is_on_signal_stack() {
        None
    } else {
        mapping_cache::device_at(address)
    };
    match device {
        Some(device) => {
            let target =
                Target { kind: GatedCallKind::Msync, device, object: Object::Mapping { address } };
            synchronize(process, target, real)
        }
        None => real(),
    }
}

/// Target of a synchronization.
#[derive(Clone, Copy, Debug)]
struct Target {
    kind: GatedCallKind,
    /// `st_dev` of its file system.
    device: u64,
    object: Object,
}

/// The program's name for the target, which the kernel looks up when the real call is made.
#[derive(Clone, Copy, Debug)]
enum Object {
    /// A file or a directory.
    File {
        fd: c_int,
        inode: u64,
        /// Whether it has data to write before joining a round.
        regular: bool,
    },
    Mapping {
        address: usize,
    },
}

impl Target {
    /// A descriptor of it, if there is one.
    fn fd(&self) -> Option<c_int> {
        match self.object {
            Object::File { fd, .. } => Some(fd),
            Object::Mapping { .. } => None,
        }
    }

    /// A descriptor of it, if it has data to write before joining a round.
    fn data(&self) -> Option<c_int> {
        match self.object {
            Object::File { fd, regular, .. } => Some(fd).filter(|_| regular),
            Object::Mapping { .. } => None,
        }
    }

    /// The mapped file, if it is a mapping.
    fn mapped(&self) -> Option<proc_self_maps::MappedFile> {
        match self.object {
            Object::File { .. } => None,
            Object::Mapping { address } => proc_self_maps::file_at(address).ok().flatten(),
        }
    }

    /// Whether the descriptor still means the same file, or the `mapped` file is still there. If that is not known, the
    /// kernel's own call tells.
    fn is_same(&self, mapped: Option<proc_self_maps::MappedFile>) -> bool {
        match self.object {
            Object::File { fd, inode, .. } => match call_path_syscalls::status(fd) {
                Ok(stat) => stat.st_dev == self.device && stat.st_ino == inode,
                Err(Errno(errno)) => errno != libc::EBADF,
            },
            Object::Mapping { address } => match proc_self_maps::file_at(address) {
                Ok(now) => mapped.is_none() || now == mapped,
                Err(proc_self_maps::MapsUnreadable) => true,
            },
        }
    }

    /// The kernel's error for a target that is gone.
    fn gone(&self) -> Errno {
        Errno(match self.object {
            Object::File { .. } => libc::EBADF,
            Object::Mapping { .. } => libc::ENOMEM,
        })
    }
}

#[inline(never)]
fn synchronize(process: &GatedProcess, target: Target, real: impl Fn() -> c_int + Copy) -> c_int {
    let Target { device, .. } = target;
    let Some((index, slot)) = device_slots::claim(&SLOTS, device) else {
        return real();
    };
    let gated = |seen: &_| {
        let mut place = slot.place();
        let known = slot.is_known();
        // A handler's stack may be too small for what follows.
        if (!known || place.rounds.is_some()) && call_path_syscalls::is_on_signal_stack() {
            return Ok(real());
        }
        if !known {
            slot.find_figures(process, device);
            slot.adopt(process, device, target.fd());
            place = slot.place();
        }
        let extent = target
            .data()
            .filter(|_| target.kind == GatedCallKind::Fdatasync && place.rounds.is_some())
            .and_then(|fd| Some((fd, FileExtent::of(fd)?)));
        let candidate = extent.and_then(|(fd, extent)| extent.candidate(fd));
        let mapped = Cell::new(None);
        let request = SyncRequest {
            kind: target.kind,
            may_need_flush_only: candidate.is_some(),
            fd: target.data(),
            before_hold: || mapped.set(target.mapped()),
            is_same: || target.is_same(mapped.get()),
            gone: target.gone(),
        };
        let needs = || candidate.map_or(DurabilityNeed::Commit, OverwriteCandidate::needs);
        let result =
            luc_rounds::synchronize(&process.settings, &place, &request, needs, seen, real);
        if let (Ok(0), Some((_, extent))) = (result, extent) {
            extent.remember();
        }
        // The program may have given the number to another file meanwhile.
        if !known && target.is_same(mapped.get()) {
            // After the call, not before: only a file system that has been synchronized once tells
            // everybody whether fast commit is on.
            slot.find_out(process, device, target.fd());
        }
        result
    };
    match thread_state::enter(index, gated, || Ok(real())) {
        Ok(result) => result,
        Err(errno) => real_functions::as_c(Err(errno)) as c_int,
    }
}

impl device_slots::DeviceSlot for SyncedSlot {
    fn device(&self) -> &AtomicU64 {
        &self.device
    }
}

impl SyncedSlot {
    fn place(&'static self) -> CallFileSystem {
        // SAFETY: null or a part of the user's rounds, which are never unmapped.
        let rounds = unsafe { self.rounds.load(Ordering::Acquire).as_ref() };
        // SAFETY: null or a part of the run's figures, which are never unmapped.
        let figures = unsafe { self.figures.load(Ordering::Acquire).as_ref() };
        CallFileSystem { rounds, figures, own: &self.own }
    }

    fn find_figures(&self, process: &GatedProcess, device: u64) {
        if let Some(figures) = process.figures.and_then(|run| run.file_system(device)) {
            self.figures.store(core::ptr::from_ref(figures).cast_mut(), Ordering::Release);
        }
    }

    fn is_known(&self) -> bool {
        self.known.load(Ordering::Acquire) != 0
    }

    /// Takes part from the first call on where others already do: many programs synchronize once in their life.
    fn adopt(&self, process: &GatedProcess, device: u64, fd: Option<c_int>) {
        if let Some(rounds) = process.rounds.find(device)
            && can_gain(process, device, fd)
        {
            self.publish(process, rounds);
            self.known.store(1, Ordering::Release);
        }
    }

    /// Finds the journal behind the device. Several threads may do so at once, and a fork in between does no harm: all
    /// find the same.
    fn find_out(&self, process: &GatedProcess, device: u64, fd: Option<c_int>) {
        if can_gain(process, device, fd)
            && let Some(rounds) = process.rounds.claim(device)
        {
            self.publish(process, rounds);
        }
        self.known.store(1, Ordering::Release);
    }

    fn publish(&self, process: &GatedProcess, rounds: &'static FileSystemRounds) {
        rounds.commits.start(&process.settings.policy);
        self.rounds.store(core::ptr::from_ref(rounds).cast_mut(), Ordering::Release);
    }
}

/// Whether calls on the device may gain by sharing commits: on a journal without fast commits, under a policy that does
/// more than count.
fn can_gain(process: &GatedProcess, device: u64, fd: Option<c_int>) -> bool {
    if process.settings.policy == GatePolicy::Off || !process.takes_part(device) {
        return false;
    }
    let kind = match fd {
        Some(fd) => journal_of_file_raw(fd),
        None => journal_of_device_raw(libc::major(device), libc::minor(device)),
    };
    kind == JournalKind::Jbd2
}
