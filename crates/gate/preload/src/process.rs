//! The process' part in the gate: prepared when the library is loaded, checked when the process first synchronizes.
//!
//! Whether the process is under a filter of system calls, for which the kernel writes a page of text, and whose clock it
//! has, is asked then. Until then the library makes no other calls than the dynamic loader has made before it.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use luc_rounds::figures::RunFigures;
use luc_rounds::figures::participants::{Participant, ParticipantId, State};
use luc_rounds::rounds::Arena;
use luc_rounds::slots::FILE_SYSTEMS;
use luc_rounds::{Settings, clock, seccomp, sys};

/// What was prepared at the process' start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pub(crate) settings: Settings,
    pub(crate) rounds: &'static Arena,
    pub(crate) figures: Option<&'static RunFigures>,
    pub(crate) count_only: CountOnly,
    /// Filters of system calls that let the gate's calls pass, as whoever made the environment is under them as well, or
    /// has looked at them.
    pub(crate) known_filters: u32,
}

/// Devices whose calls are only counted: the kernel module batches there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CountOnly([Option<(u32, u32)>; FILE_SYSTEMS]);

impl CountOnly {
    /// Adds a device. Of more than can be told apart the last one is forgotten.
    pub(crate) fn add(&mut self, device: (u32, u32)) {
        if let Some(place) = self.0.iter_mut().find(|place| place.is_none()) {
            *place = Some(device);
        }
    }
}

impl Process {
    /// Whether calls on a device take part in rounds.
    pub(crate) fn takes_part(&self, device: u64) -> bool {
        let numbers = (libc::major(device), libc::minor(device));
        !self.count_only.0.contains(&Some(numbers))
    }

    /// Counts a call of this process, which enters the run's table with its first one. So does a child after a fork.
    pub(crate) fn count(&self) {
        let Some(figures) = self.figures else {
            return;
        };
        let process = sys::process_id();
        let known = ENTRY.load(Relaxed);
        let id = if (known >> 32) as u32 == process {
            ParticipantId::from_number(known as u32)
        } else {
            enter(figures, process, State::TakesPart)
        };
        figures.participants.count(id);
    }
}

/// This process' number, and its place in the run's table; 0 before its first call.
static ENTRY: AtomicU64 = AtomicU64::new(0);

#[cold]
fn enter(figures: &RunFigures, process: u32, state: State) -> ParticipantId {
    let id = figures.participants.enter(&Participant {
        process,
        namespace: clock::process_namespace(),
        name: sys::thread_name(),
        calls: 0,
        state,
    });
    ENTRY.store(u64::from(process) << 32 | u64::from(id.number()), Relaxed);
    id
}

/// The part, written once before [`STATE`] says so.
struct Prepared(UnsafeCell<MaybeUninit<Process>>);

// SAFETY: written by the loader's only thread, and only read once `STATE` is no longer `OUTSIDE`.
unsafe impl Sync for Prepared {}

static PREPARED: Prepared = Prepared(UnsafeCell::new(MaybeUninit::uninit()));

static STATE: AtomicU32 = AtomicU32::new(OUTSIDE);

/// Every call goes straight through.
const OUTSIDE: u32 = 0;
/// There is a part, and nobody has asked yet whether the process may take it.
const UNCHECKED: u32 = 1;
/// The process takes part.
const INSIDE: u32 = 2;
/// A supervisor is notified of the process' calls.
const NOTIFIED: u32 = 3;

/// Takes what was prepared at the start.
pub(crate) fn prepare(process: Process) {
    if let Some(figures) = process.figures {
        figures.processes.fetch_add(1, Relaxed);
    }
    // SAFETY: the loader's only thread; nobody reads before the state is changed.
    unsafe { (*PREPARED.0.get()).write(process) };
    STATE.store(UNCHECKED, Release);
}

/// Takes no part but in what notifications leave open.
pub(crate) fn be_notified() {
    STATE.store(NOTIFIED, Release);
}

/// Whether a supervisor is notified of the process' calls.
pub(crate) fn is_notified() -> bool {
    STATE.load(Relaxed) == NOTIFIED
}

/// The process' part; `None` when it has none, and every call goes straight through.
pub(crate) fn get() -> Option<&'static Process> {
    let state = STATE.load(Acquire);
    if !matches!(state, UNCHECKED | INSIDE) {
        return None;
    }
    // SAFETY: written before the state was changed, and never after.
    let process = unsafe { (*PREPARED.0.get()).assume_init_ref() };
    (state == INSIDE || may_take_part(process)).then_some(process)
}

/// Whether the process is under no filters but the known ones, as one more may kill for any of the gate's calls, and has
/// the clock of the shared memory's times. It leaves for good if not. Where that cannot be read, calls go straight
/// through, and the next one asks again.
#[cold]
fn may_take_part(process: &Process) -> bool {
    let Some(filters) = seccomp::filters() else {
        return false;
    };
    let state = if filters > process.known_filters {
        State::Filtered
    } else if clock::namespace().is_some_and(|clock| process.rounds.has_clock(clock)) {
        State::TakesPart
    } else {
        State::OtherClock
    };
    if state == State::TakesPart {
        // Another thread may have left meanwhile.
        return STATE.compare_exchange(UNCHECKED, INSIDE, Release, Acquire) != Err(OUTSIDE);
    }
    // Under a filter no call of ours is made that the loader has not made: its place is by its number alone.
    if state == State::OtherClock
        && let Some(figures) = process.figures
    {
        enter(figures, sys::process_id(), state);
    }
    STATE.store(OUTSIDE, Release);
    false
}

/// Leaves for good: the process gets a filter of system calls, which may know none of the gate's. Other
/// threads that are in a call finish it.
pub(crate) fn leave() {
    let state = STATE.load(Acquire);
    if state == INSIDE || state == UNCHECKED {
        // SAFETY: written before the state was changed, and never after.
        let process = unsafe { (*PREPARED.0.get()).assume_init_ref() };
        STATE.store(OUTSIDE, Release);
        if let Some(figures) = process.figures {
            let number = sys::process_id();
            let known = ENTRY.load(Relaxed);
            if (known >> 32) as u32 == number {
                let id = ParticipantId::from_number(known as u32);
                figures.participants.leave(id, State::Filtered);
            } else {
                enter(figures, number, State::Filtered);
            }
        }
    }
}
