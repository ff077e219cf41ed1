//! The file systems that this process synchronizes on, and the way of a call to its place.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use luc_gate::call::{OwnCalls, Place, Request};
use luc_gate::figures::FileSystemFigures;
use luc_gate::inspect::raw::{JournalKind, journal_of_device_raw, journal_of_file_raw};
use luc_gate::overwrites::{Candidate, Extent};
use luc_gate::rounds::{FileSystemRounds, Needs};
use luc_gate::slots::{self, FILE_SYSTEMS};
use luc_gate::{CallKind, Policy, sys};

use crate::process::{self, Process};
use crate::{mappings, thread};

/// A file system, found out on first use and then only read.
struct Slot {
    /// `st_dev` plus one; 0 while free.
    device: AtomicU64,
    /// Whether the pointers are final.
    known: AtomicU32,
    rounds: AtomicPtr<FileSystemRounds>,
    figures: AtomicPtr<FileSystemFigures>,
    own: OwnCalls,
}

static SLOTS: [Slot; FILE_SYSTEMS] = [const {
    Slot {
        device: AtomicU64::new(0),
        known: AtomicU32::new(0),
        rounds: AtomicPtr::new(std::ptr::null_mut()),
        figures: AtomicPtr::new(std::ptr::null_mut()),
        own: OwnCalls::new(),
    }
}; FILE_SYSTEMS];

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
    let regular = match stat.st_mode & libc::S_IFMT {
        libc::S_IFREG => true,
        libc::S_IFDIR => false,
        // Pipes, sockets, devices: nothing of a journal.
        _ => return real(),
    };
    let target = Target {
        kind,
        device: stat.st_dev,
        fd: Some(fd),
        data: regular.then_some(fd),
    };
    synchronize(process, target, real)
}

/// `msync` of a mapping at `address`. Its data cannot be written early: that would take a descriptor,
/// and closing one of our own would drop the program's record locks.
pub(crate) fn synchronize_mapping(address: *mut c_void, real: impl Fn() -> c_int + Copy) -> c_int {
    let Some(process) = process::get() else {
        return real();
    };
    let errno = sys::errno();
    // Looking the mapping up takes more room than a handler's stack may have.
    let device = if sys::is_on_signal_stack() {
        None
    } else {
        mappings::device_at(address as usize)
    };
    sys::set_errno(errno);
    match device {
        Some(device) => {
            let target = Target {
                kind: CallKind::Msync,
                device,
                fd: None,
                data: None,
            };
            synchronize(process, target, real)
        }
        None => real(),
    }
}

/// The object that a call synchronizes.
#[derive(Clone, Copy, Debug)]
struct Target {
    /// The call.
    kind: CallKind,
    /// `st_dev` of its file system.
    device: u64,
    /// A descriptor of it, if there is one.
    fd: Option<c_int>,
    /// The same, if it has data to write before joining a round.
    data: Option<c_int>,
}

fn synchronize(process: &Process, target: Target, real: impl Fn() -> c_int + Copy) -> c_int {
    let Target { device, fd, .. } = target;
    let Some((index, slot)) = slots::claim(&SLOTS, device) else {
        return real();
    };
    let gated = |seen: &_| {
        let errno = sys::errno();
        let mut place = slot.place();
        let known = slot.is_known();
        // A handler's stack may be too small for what follows.
        if (!known || place.rounds.is_some()) && sys::is_on_signal_stack() {
            sys::set_errno(errno);
            return real();
        }
        if !known {
            slot.find_figures(process, device);
            slot.adopt(process, device, fd);
            place = slot.place();
        }
        let extent = target
            .data
            .filter(|_| target.kind == CallKind::Fdatasync && place.rounds.is_some())
            .and_then(|fd| Some((fd, Extent::of(fd)?)));
        let candidate = extent.and_then(|(fd, extent)| extent.candidate(fd));
        sys::set_errno(errno);
        let request = Request {
            kind: target.kind,
            may_need_flush_only: candidate.is_some(),
            fd: target.data,
        };
        let needs = || candidate.map_or(Needs::Commit, Candidate::needs);
        let result = luc_gate::synchronize(&process.settings, &place, request, needs, seen, real);
        if let (0, Some((_, extent))) = (result, extent) {
            extent.remember();
        }
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

/// The status of a descriptor's file; `None`, and `errno` changed, if it has none. By `fstat`, which every program
/// makes that reads or writes files: a filter of system calls knows it.
fn stat_of(fd: c_int) -> Option<libc::stat> {
    // SAFETY: all-zero is a valid `stat`.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `stat` is valid for writes; a bad descriptor is an error.
    let result = unsafe { libc::fstat(fd, &raw mut stat) };
    (result == 0).then_some(stat)
}

impl slots::Slot for Slot {
    fn device(&self) -> &AtomicU64 {
        &self.device
    }
}

impl Slot {
    fn place(&'static self) -> Place {
        // SAFETY: null or a part of the user's rounds, which are never unmapped.
        let rounds = unsafe { self.rounds.load(Ordering::Acquire).as_ref() };
        // SAFETY: null or a part of the run's figures, which are never unmapped.
        let figures = unsafe { self.figures.load(Ordering::Acquire).as_ref() };
        Place {
            rounds,
            figures,
            own: &self.own,
        }
    }

    fn find_figures(&self, process: &Process, device: u64) {
        if let Some(figures) = process.figures.and_then(|run| run.file_system(device)) {
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
        if let Some(rounds) = process.rounds.find(device)
            && can_gain(process, device, fd)
        {
            self.publish(process, rounds);
            self.known.store(1, Ordering::Release);
        }
    }

    /// Finds out what stands behind the device. Several threads may do so at once, and a fork in
    /// between does no harm: all find the same.
    fn find_out(&self, process: &Process, device: u64, fd: Option<c_int>) {
        if can_gain(process, device, fd)
            && let Some(rounds) = process.rounds.claim(device)
        {
            self.publish(process, rounds);
        }
        self.known.store(1, Ordering::Release);
    }

    fn publish(&self, process: &Process, rounds: &'static FileSystemRounds) {
        rounds.commits.start(&process.settings.policy);
        self.rounds
            .store(std::ptr::from_ref(rounds).cast_mut(), Ordering::Release);
    }
}

/// Whether calls on the device may gain by company: on a journal without fast commit, under a policy that
/// does more than count.
fn can_gain(process: &Process, device: u64, fd: Option<c_int>) -> bool {
    if process.settings.policy == Policy::Off || !process.takes_part(device) {
        return false;
    }
    let kind = match fd {
        Some(fd) => journal_of_file_raw(fd),
        None => journal_of_device_raw(libc::major(device), libc::minor(device)),
    };
    kind == JournalKind::Jbd2
}
