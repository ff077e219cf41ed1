//! State of the process: read from the environment once, when the library is loaded.
//!
//! Most programs never synchronize. So whether the process is under a filter of system calls, for which the kernel writes
//! a page of text, is asked when it first does. Until then the library makes no other calls than the dynamic loader has
//! made before it.

use std::env;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use luc_gate::environment::{
    COUNT_ONLY, FIGURES, FILTERS, LONGEST_WAIT_NS, POLICY, ROUNDS, devices_from_text,
};
use luc_gate::figures::RunFigures;
use luc_gate::rounds::Arena;
use luc_gate::{Settings, memory, seccomp, sys};

use crate::real;
use crate::unit::{self, Part};

/// The process' part in the gate.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) settings: Settings,
    pub(crate) rounds: &'static Arena,
    pub(crate) figures: Option<&'static RunFigures>,
    /// Devices whose calls are only counted: the kernel module batches there.
    count_only: Vec<(u32, u32)>,
    /// Filters of system calls that let the gate's calls pass, as whoever made the environment is under them as well, or
    /// has looked at them.
    known_filters: u32,
    /// Whether the process is under no other filters.
    is_free: AtomicBool,
}

impl From<Part> for Process {
    fn from(part: Part) -> Self {
        Self {
            settings: part.settings,
            rounds: part.rounds,
            figures: part.figures,
            count_only: Vec::new(),
            known_filters: part.known_filters,
            is_free: AtomicBool::new(false),
        }
    }
}

impl Process {
    /// Whether calls on a device take part in rounds.
    pub(crate) fn takes_part(&self, device: u64) -> bool {
        let numbers = (libc::major(device), libc::minor(device));
        !self.count_only.contains(&numbers)
    }
}

static PROCESS: AtomicPtr<Process> = AtomicPtr::new(std::ptr::null_mut());

/// The process' part; `None` when it has none, and every call goes straight through.
pub(crate) fn get() -> Option<&'static Process> {
    // SAFETY: either null or a box leaked by `load`, never freed; all that changes is atomic.
    let process = unsafe { PROCESS.load(Ordering::Acquire).as_ref() }?;
    (process.is_free.load(Ordering::Relaxed) || is_free(process)).then_some(process)
}

/// Whether the process is under no filters but the known ones; leaves for good if it is, as one more may kill for any of
/// the gate's calls. Where that cannot be read, calls go straight through, and the next one asks again.
#[cold]
fn is_free(process: &Process) -> bool {
    let errno = sys::errno();
    let is_free = match seccomp::filters() {
        Some(filters) if filters > process.known_filters => {
            leave();
            false
        }
        Some(_) => {
            process.is_free.store(true, Ordering::Relaxed);
            true
        }
        None => false,
    };
    sys::set_errno(errno);
    is_free
}

/// Leaves for good: the process gets a filter of system calls, which may know none of the gate's. Other
/// threads that are in a call finish it.
pub(crate) fn leave() {
    PROCESS.store(std::ptr::null_mut(), Ordering::Release);
}

/// Run by the dynamic loader before `main`, single-threaded: allocation is still harmless here.
extern "C" fn load() {
    let errno = sys::errno();
    real::resolve();
    if let Some(process) = read_environment().or_else(|| Some(unit::part()?.into())) {
        if let Some(figures) = process.figures {
            figures.processes.fetch_add(1, Ordering::Relaxed);
        }
        PROCESS.store(Box::into_raw(Box::new(process)), Ordering::Release);
    }
    sys::set_errno(errno);
}

#[used]
// SAFETY: the loader calls each entry of this section once, as a C function whose arguments may be
// ignored.
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn() = load;

fn read_environment() -> Option<Process> {
    let path = |name| {
        let path = env::var(name).ok()?;
        CString::new(path).ok()
    };
    let rounds = path(ROUNDS)?;
    let policy = env::var(POLICY).ok()?.parse().ok()?;
    let longest_wait_ns: u64 = env::var(LONGEST_WAIT_NS).ok()?.parse().ok()?;
    let known_filters = env::var(FILTERS).ok()?.parse().ok()?;
    Some(Process {
        settings: Settings {
            policy,
            longest_wait_ns,
        },
        rounds: memory::map(&rounds).ok()?,
        count_only: env::var(COUNT_ONLY)
            .map_or_else(|_| Vec::new(), |text| devices_from_text(&text)),
        figures: path(FIGURES).and_then(|path| memory::map(&path).ok()),
        known_filters,
        is_free: AtomicBool::new(false),
    })
}
