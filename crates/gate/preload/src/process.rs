//! What holds for the whole process: read from the environment once, when the library is loaded.

use std::env;
use std::ffi::CString;
use std::sync::atomic::{AtomicPtr, Ordering};

use luc_gate_core::environment::{
    COUNT_ONLY, DIRECTORY, FIGURES, LONGEST_WAIT_NS, POLICY, RoundsFiles, devices_from_text,
};
use luc_gate_core::figures::RunFigures;
use luc_gate_core::{Settings, memory, sys};

use crate::real;

/// The process' part in the gate.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) settings: Settings,
    pub(crate) files: RoundsFiles,
    pub(crate) figures: Option<&'static RunFigures>,
    /// Devices whose calls are only counted: the kernel module batches there.
    count_only: Vec<(u32, u32)>,
}

impl Process {
    /// Whether calls on a device take part in rounds.
    pub(crate) fn takes_part(&self, major: u32, minor: u32) -> bool {
        !self.count_only.contains(&(major, minor))
    }
}

static PROCESS: AtomicPtr<Process> = AtomicPtr::new(std::ptr::null_mut());

/// The process' part; `None` when it has none, and every call goes straight through.
pub(crate) fn get() -> Option<&'static Process> {
    // SAFETY: either null or a box leaked by `load`, never freed or changed.
    unsafe { PROCESS.load(Ordering::Acquire).as_ref() }
}

/// Run by the dynamic loader before `main`, single-threaded: allocation is still harmless here.
extern "C" fn load() {
    let errno = sys::errno();
    real::resolve();
    if let Some(process) = read_environment() {
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
    let directory = env::var(DIRECTORY).ok()?;
    let policy = env::var(POLICY).ok()?.parse().ok()?;
    let longest_wait_ns: u64 = env::var(LONGEST_WAIT_NS).ok()?.parse().ok()?;
    let figures = env::var(FIGURES)
        .ok()
        .and_then(|path| CString::new(path).ok())
        .and_then(|path| memory::map_existing(&path).ok());
    Some(Process {
        settings: Settings {
            policy,
            longest_wait_ns,
        },
        files: RoundsFiles::new(&directory, &policy)?,
        count_only: env::var(COUNT_ONLY)
            .map_or_else(|_| Vec::new(), |text| devices_from_text(&text)),
        figures,
    })
}
