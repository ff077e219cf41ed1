//! The file systems that this process synchronizes on, and the way of a call to its place.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use luc_gate_core::call::{Place, Request};
use luc_gate_core::figures::FileSystemFigures;
use luc_gate_core::inspect::raw::{JournalKind, journal_of_device_raw, journal_of_file_raw};
use luc_gate_core::rounds::{Needs, Rounds};
use luc_gate_core::{CallKind, memory, sys};

use crate::overwrites::Extent;
use crate::process::{self, Process};
use crate::{mappings, thread};

/// File systems that one process tells apart; calls on further ones are passed through.
pub(crate) const PLACES: usize = 16;

/// A file system, found out on first use and then only read.
struct Slot {
    /// `st_dev` plus one; 0 while free.
    device: AtomicU64,
    /// Whether the pointers are final.
    known: AtomicU32,
    rounds: AtomicPtr<Rounds>,
    figures: AtomicPtr<FileSystemFigures>,
}

static SLOTS: [Slot; PLACES] = [const {
    Slot {
        device: AtomicU64::new(0),
        known: AtomicU32::new(0),
        rounds: AtomicPtr::new(std::ptr::null_mut()),
        figures: AtomicPtr::new(std::ptr::null_mut()),
    }
}; PLACES];

/// `fsync` or `fdatasync` of `fd`.
pub(crate) fn synchronize_file(
    kind: CallKind,
    fd: c_int,
    real: impl Fn() -> c_int + Copy,
) -> c_int {
    let Some(process) = process::get() else {
        return real();
    };
    let errno = sys::errno();
    let Some(stat) = stat_of(fd) else {
        sys::set_errno(errno);
        return real();
    };
    let regular = match libc::mode_t::from(stat.stx_mode) & libc::S_IFMT {
        libc::S_IFREG => true,
        libc::S_IFDIR => false,
        // Pipes, sockets, devices: nothing of a journal.
        _ => return real(),
    };
    let extent = Extent::of(&stat);
    let in_place = regular && kind == CallKind::Fdatasync && extent.is_unchanged();
    let target = Target {
        device: libc::makedev(stat.stx_dev_major, stat.stx_dev_minor),
        fd: Some(fd),
        data: regular.then_some(fd),
        needs: if in_place {
            Needs::Flush
        } else {
            Needs::Commit
        },
    };
    let result = synchronize(process, kind, target, real);
    if regular && result == 0 {
        extent.remember();
    }
    result
}

/// `msync` of a mapping at `address`. Its data cannot be written early: that would take a descriptor,
/// and closing one of our own would drop the program's record locks.
pub(crate) fn synchronize_mapping(address: *mut c_void, real: impl Fn() -> c_int + Copy) -> c_int {
    let Some(process) = process::get() else {
        return real();
    };
    let errno = sys::errno();
    let device = mappings::device_at(address as usize);
    sys::set_errno(errno);
    match device {
        Some(device) => {
            let target = Target {
                device,
                fd: None,
                data: None,
                needs: Needs::Commit,
            };
            synchronize(process, CallKind::Msync, target, real)
        }
        None => real(),
    }
}

/// What a call synchronizes.
#[derive(Clone, Copy, Debug)]
struct Target {
    /// `st_dev` of its file system.
    device: u64,
    /// A descriptor of it, if there is one.
    fd: Option<c_int>,
    /// The same, if it has data to write before joining a round.
    data: Option<c_int>,
    /// What it takes.
    needs: Needs,
}

fn synchronize(
    process: &Process,
    kind: CallKind,
    target: Target,
    real: impl Fn() -> c_int + Copy,
) -> c_int {
    let Target { device, fd, .. } = target;
    let Some((index, slot)) = slot_of(device) else {
        return real();
    };
    let gated = |window: &_| {
        if !slot.is_known() {
            let errno = sys::errno();
            slot.find_figures(process, device);
            slot.adopt(process, device, fd);
            sys::set_errno(errno);
        }
        let known = slot.is_known();
        let request = Request {
            kind,
            needs: target.needs,
            fd: target.data,
        };
        let result =
            luc_gate_core::synchronize(&process.settings, &slot.place(), request, window, real);
        if !known {
            // After the call, not before: only a file system that has been synchronized once tells
            // everybody whether fast commit is on.
            let left = sys::errno();
            slot.find_out(process, device, fd);
            sys::set_errno(left);
        }
        result
    };
    thread::enter(index, gated, real)
}

/// What stands behind a descriptor; `None`, and `errno` changed, if nothing does.
fn stat_of(fd: c_int) -> Option<libc::statx> {
    // SAFETY: all-zero is a valid `statx`.
    let mut stat: libc::statx = unsafe { std::mem::zeroed() };
    let mask = libc::STATX_BASIC_STATS | libc::STATX_BTIME;
    // SAFETY: a C string and a `statx` that is valid for writes; a bad descriptor is an error.
    let result = unsafe { libc::statx(fd, c"".as_ptr(), libc::AT_EMPTY_PATH, mask, &raw mut stat) };
    (result == 0).then_some(stat)
}

fn slot_of(device: u64) -> Option<(usize, &'static Slot)> {
    let key = device.wrapping_add(1);
    SLOTS.iter().enumerate().find(|(_, slot)| {
        let taken = slot.device.load(Ordering::Acquire);
        taken == key
            || (taken == 0
                && match slot
                    .device
                    .compare_exchange(0, key, Ordering::AcqRel, Ordering::Acquire)
                {
                    Ok(_) => true,
                    Err(now) => now == key,
                })
    })
}

impl Slot {
    fn place(&self) -> Place {
        // SAFETY: null or a mapping that is never unmapped.
        let rounds = unsafe { self.rounds.load(Ordering::Acquire).as_ref() };
        // SAFETY: null or a part of the run's figures, which are never unmapped.
        let figures = unsafe { self.figures.load(Ordering::Acquire).as_ref() };
        Place { rounds, figures }
    }

    fn find_figures(&self, process: &Process, device: u64) {
        let (major, minor) = (libc::major(device), libc::minor(device));
        if let Some(figures) = process
            .figures
            .and_then(|run| run.file_system(major, minor))
        {
            self.figures
                .store(std::ptr::from_ref(figures).cast_mut(), Ordering::Release);
        }
    }

    fn is_known(&self) -> bool {
        self.known.load(Ordering::Acquire) != 0
    }

    /// Takes part from the first call on where others already do: many programs synchronize once in
    /// their life.
    fn adopt(&self, process: &Process, device: u64, fd: Option<c_int>) {
        let (major, minor) = (libc::major(device), libc::minor(device));
        let path = process.files.path(major, minor);
        if process.takes_part(major, minor)
            && journal_behind(fd, major, minor) == JournalKind::Jbd2
            && let Ok(rounds) = memory::map_existing(path.as_c_str())
        {
            self.publish(process, rounds);
            self.known.store(1, Ordering::Release);
        }
    }

    /// Finds out what stands behind the device. Several threads may do so at once, and a fork in
    /// between does no harm: all find the same, and the first to publish wins.
    fn find_out(&self, process: &Process, device: u64, fd: Option<c_int>) {
        let (major, minor) = (libc::major(device), libc::minor(device));
        if process.takes_part(major, minor) && journal_behind(fd, major, minor) == JournalKind::Jbd2
        {
            let path = process.files.path(major, minor);
            if let Ok(rounds) = memory::map(path.as_c_str()) {
                self.publish(process, rounds);
            }
        }
        self.known.store(1, Ordering::Release);
    }

    fn publish(&self, process: &Process, rounds: &'static Rounds) {
        rounds.start(&process.settings.policy);
        let mine = std::ptr::from_ref(rounds).cast_mut();
        let published = self.rounds.compare_exchange(
            std::ptr::null_mut(),
            mine,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if published.is_err() {
            // SAFETY: mapped by the caller and shown to nobody.
            unsafe { memory::unmap(rounds) };
        }
    }
}

fn journal_behind(fd: Option<c_int>, major: u32, minor: u32) -> JournalKind {
    match fd {
        Some(fd) => journal_of_file_raw(fd),
        None => journal_of_device_raw(major, minor),
    }
}
