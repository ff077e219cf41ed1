//! The process' part in the gate: prepared when the library is loaded, checked when the process first synchronizes.
//!
//! Most programs never synchronize, and in these the library makes no system call at all. At a process' first
//! synchronization it looks for filters of system calls, maps the shared memory and compares the clock.

use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use luc_rounds::device_slots::FILE_SYSTEMS;
use luc_rounds::figures::RunFigures;
use luc_rounds::figures::participants::{Participant, ParticipantId, Participation};
use luc_rounds::rounds::UserRounds;
use luc_rounds::shared_file::{self, MapError, OtherUsersMemory, SharedPath};
use luc_rounds::{CallSettings, call_path_syscalls, raw_syscall, seccomp_filter, time_namespace};

use crate::weak_symbols;

/// State that was prepared at the process' start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PreparedProcess {
    pub(crate) settings: CallSettings,
    pub(crate) memory: GateMemory,
    pub(crate) count_only: CountOnlyDevices,
    /// Number of filters of system calls that let the gate's calls pass: the maker of the environment is under them as
    /// well, or has looked at them.
    pub(crate) known_filters: u32,
}

/// Place of the shared memory.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::large_enum_variant, reason = "nothing here allocates")]
pub(crate) enum GateMemory {
    /// Mapped at the start: a service may change its user and its root before it synchronizes.
    Mapped(MappedGate),
    /// Named by these files. Descendants of root's `luc run` with another user or another root inherit a descriptor
    /// instead. Mapped when the process first synchronizes.
    Named { rounds: SharedPath, figures: Option<SharedPath>, guests: Option<c_int>, owner: u32 },
}

/// Shared rounds and figures that this process has mapped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MappedGate {
    pub(crate) rounds: &'static UserRounds,
    pub(crate) figures: Option<&'static RunFigures>,
}

impl GateMemory {
    fn map(&self) -> Result<MappedGate, MapError> {
        match self {
            Self::Mapped(mapped) => Ok(*mapped),
            Self::Named { rounds, figures, guests, owner } => {
                map_named(rounds, figures.as_ref(), *owner).or_else(|error| {
                    let guests: &OtherUsersMemory = shared_file::map_sealed(guests.ok_or(error)?)?;
                    Ok(MappedGate { rounds: &guests.rounds, figures: Some(&guests.figures) })
                })
            }
        }
    }
}

fn map_named(
    rounds: &SharedPath,
    figures: Option<&SharedPath>,
    owner: u32,
) -> Result<MappedGate, MapError> {
    let path = rounds.as_c_str().ok_or(MapError::OtherLayout)?;
    Ok(MappedGate {
        rounds: shared_file::map(path, owner)?,
        figures: figures.and_then(|path| shared_file::map(path.as_c_str()?, owner).ok()),
    })
}

/// A process that takes part in the gate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatedProcess {
    pub(crate) settings: CallSettings,
    pub(crate) rounds: &'static UserRounds,
    pub(crate) figures: Option<&'static RunFigures>,
    count_only: CountOnlyDevices,
}

/// Devices whose calls are only counted: the kernel module batches there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CountOnlyDevices([Option<(u32, u32)>; FILE_SYSTEMS]);

impl CountOnlyDevices {
    /// Adds a device, if there is room.
    pub(crate) fn add(&mut self, device: (u32, u32)) {
        if let Some(place) = self.0.iter_mut().find(|place| place.is_none()) {
            *place = Some(device);
        }
    }
}

impl GatedProcess {
    /// Whether calls on a device take part in rounds.
    pub(crate) fn takes_part(&self, device: u64) -> bool {
        let numbers = (libc::major(device), libc::minor(device));
        !self.count_only.0.contains(&Some(numbers))
    }

    /// Counts a call of this process. It enters the run's table with its first call, and so does a child after a fork.
    pub(crate) fn count(&self) {
        let Some(figures) = self.figures else {
            return;
        };
        let process = call_path_syscalls::process_id();
        let known = ENTRY.load(Relaxed);
        let id = if (known >> 32) as u32 == process {
            ParticipantId::from_number(known as u32)
        } else {
            enter(figures, process, Participation::TakesPart)
        };
        let early = match EARLY.load(Relaxed) {
            0 => 0,
            _ => EARLY.swap(0, Relaxed),
        };
        figures.participants.count(id, 1 + u64::from(early));
    }
}

/// This process' number, and its place in the run's table; 0 before its first call.
static ENTRY: AtomicU64 = AtomicU64::new(0);

#[cold]
fn enter(figures: &RunFigures, process: u32, state: Participation) -> ParticipantId {
    let id = figures.participants.enter(&Participant {
        process,
        namespace: time_namespace::process_namespace(),
        name: call_path_syscalls::thread_name(),
        calls: 0,
        state,
    });
    ENTRY.store(u64::from(process) << 32 | u64::from(id.number()), Relaxed);
    id
}

/// A value that is written once, before [`STATE`] says so.
struct Once<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: written by one thread, and only read once `STATE` says so.
unsafe impl<T: Copy> Sync for Once<T> {}

impl<T: Copy> Once<T> {
    const fn new() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// # Safety
    /// Nobody reads or writes meanwhile.
    unsafe fn write(&self, value: T) {
        // SAFETY: as the caller promises.
        unsafe { (*self.0.get()).write(value) };
    }

    /// # Safety
    /// It was written, and is not any more.
    unsafe fn read(&'static self) -> &'static T {
        // SAFETY: as the caller promises.
        unsafe { (*self.0.get()).assume_init_ref() }
    }
}

static PREPARED: Once<PreparedProcess> = Once::new();
static PROCESS: Once<GatedProcess> = Once::new();

static STATE: AtomicU32 = AtomicU32::new(OUTSIDE);

/// Every call goes straight through.
const OUTSIDE: u32 = 0;
/// [`PREPARED`] is written, and nobody has asked yet whether the process may take part.
const PREPARED_ONLY: u32 = 1;
/// A thread writes [`PROCESS`]; calls of others go straight through meanwhile.
const JOINING: u32 = 2;
/// [`PROCESS`] is written: the process takes part.
const INSIDE: u32 = 3;
/// A supervisor is notified of the process' calls.
const NOTIFIED: u32 = 4;

/// Takes the state that was prepared at the start.
pub(crate) fn prepare(prepared: PreparedProcess) {
    // SAFETY: the loader's only thread; nobody reads before the state is changed.
    unsafe { PREPARED.write(prepared) };
    STATE.store(PREPARED_ONLY, Release);
}

/// Takes no part, except in calls that a signal ends before their notice.
pub(crate) fn be_notified() {
    STATE.store(NOTIFIED, Release);
}

/// Whether a supervisor is notified of the process' calls.
pub(crate) fn is_notified() -> bool {
    STATE.load(Relaxed) == NOTIFIED
}

/// The process' part; `None` when it has none, and every call goes straight through.
pub(crate) fn get() -> Option<&'static GatedProcess> {
    match STATE.load(Acquire) {
        // SAFETY: written before the state was changed, and never after.
        INSIDE => Some(unsafe { PROCESS.read() }),
        PREPARED_ONLY => join(),
        JOINING => {
            EARLY.fetch_add(1, Relaxed);
            None
        }
        _ => None,
    }
}

/// Number of calls that went straight through while another thread joined.
static EARLY: AtomicU32 = AtomicU32::new(0);

/// Joins the gate with the process' first synchronization. The call goes straight through if it is unknown whether
/// the process may join. So does a call on a handler's stack, which may be too small. The next call asks again. A
/// child that is forked meanwhile stays outside.
#[cold]
#[inline(never)]
fn join() -> Option<&'static GatedProcess> {
    STATE.compare_exchange(PREPARED_ONLY, JOINING, Acquire, Relaxed).ok()?;
    // SAFETY: written before the state was changed, and never after.
    let prepared = unsafe { PREPARED.read() };
    let next = match seccomp_filter::filters() {
        None => PREPARED_ONLY,
        // One more may kill for any of the gate's calls.
        Some(filters) if filters > prepared.known_filters => OUTSIDE,
        Some(_) if call_path_syscalls::is_on_signal_stack() => PREPARED_ONLY,
        Some(_) => look(prepared),
    };
    // Another thread may have left meanwhile.
    STATE.compare_exchange(JOINING, next, Release, Relaxed).ok()?;
    // SAFETY: written by `look`.
    (next == INSIDE).then(|| unsafe { PROCESS.read() })
}

/// The next state of a process that may make calls: inside, if it finds the shared memory and has the clock of the
/// times there.
#[inline(never)]
fn look(prepared: &PreparedProcess) -> u32 {
    let image = weak_symbols::auxiliary(libc::AT_SYSINFO_EHDR).unwrap_or(0);
    // SAFETY: what the kernel has put there.
    unsafe { call_path_syscalls::use_clock(image as usize) };
    let MappedGate { rounds, figures } = match prepared.memory.map() {
        Ok(mapped) => mapped,
        Err(MapError::System(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EAGAIN)) => {
            return PREPARED_ONLY;
        }
        Err(_) => return OUTSIDE,
    };
    let has_clock = time_namespace::namespace().is_some_and(|clock| rounds.has_clock(clock));
    // A filter may answer for the clock's call.
    if has_clock && call_path_syscalls::now_ns() > 0 {
        let process = GatedProcess {
            settings: prepared.settings,
            rounds,
            figures,
            count_only: prepared.count_only,
        };
        // SAFETY: the thread that has changed the state; nobody reads before it is changed again.
        unsafe { PROCESS.write(process) };
        return INSIDE;
    }
    if let Some(figures) = figures {
        enter(figures, call_path_syscalls::process_id(), Participation::OtherClock);
    }
    OUTSIDE
}

/// Leaves for good: the process gets a filter of system calls, which may deny all of the gate's. Threads in a call make
/// only the program's own system calls from now on.
pub(crate) fn leave() {
    let before = STATE.swap(OUTSIDE, AcqRel);
    if before == INSIDE {
        say_that_it_leaves();
    }
    if before != OUTSIDE {
        raw_syscall::end();
    }
}

fn say_that_it_leaves() {
    // SAFETY: written before the state was changed, and never after.
    let process = unsafe { PROCESS.read() };
    let Some(figures) = process.figures else {
        return;
    };
    let number = call_path_syscalls::process_id();
    let known = ENTRY.load(Relaxed);
    if (known >> 32) as u32 == number {
        let id = ParticipantId::from_number(known as u32);
        figures.participants.leave(id, Participation::Filtered);
    } else {
        enter(figures, number, Participation::Filtered);
    }
}
