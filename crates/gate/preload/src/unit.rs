//! The part of a process in a systemd unit that `luc enable` has enabled: no `luc run` is above it, so its files are
//! found by the unit's name.

use std::env;
use std::ffi::CString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use luc_gate::environment::{FILTERS, STARTED, UNIT};
use luc_gate::figures::RunFigures;
use luc_gate::rounds::Arena;
use luc_gate::rounds::join::LONGEST_WAIT_NS;
use luc_gate::unit::Files;
use luc_gate::{Policy, Settings, memory, seccomp, sys};

/// The part.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) settings: Settings,
    pub(crate) rounds: &'static Arena,
    pub(crate) figures: Option<&'static RunFigures>,
    /// The unit's own filters of system calls.
    pub(crate) known_filters: u32,
}

/// What the unit's environment says; `None` outside of a unit, or where this process takes no part.
pub(crate) fn part() -> Option<Part> {
    let unit = env::var(UNIT).ok()?;
    let known_filters = known_filters()?;
    let files = Files::new(&unit, sys::user_at_start());
    Some(Part {
        settings: Settings {
            policy: Policy::Auto,
            longest_wait_ns: LONGEST_WAIT_NS,
        },
        rounds: memory::map(&c_path(files.rounds())?).ok()?,
        figures: c_path(files.figures()).and_then(|path| memory::map(&path).ok()),
        known_filters,
    })
}

/// The unit's own filters of system calls, which let the gate's calls pass: `luc enable` has looked. Only systemd's own
/// child knows how many these are, and tells its descendants; others take part if they are under none. `None` if the
/// number is none.
fn known_filters() -> Option<u32> {
    if let Ok(of_unit) = env::var(FILTERS) {
        return of_unit.parse().ok();
    }
    let is_first = env::var(STARTED).is_ok_and(|number| number == std::process::id().to_string());
    if !is_first {
        return Some(0);
    }
    let filters = seccomp::filters()?;
    // SAFETY: run by the loader before `main`, while the process has one thread.
    unsafe { env::set_var(FILTERS, filters.to_string()) };
    Some(filters)
}

fn c_path(path: PathBuf) -> Option<CString> {
    CString::new(path.into_os_string().into_vec()).ok()
}
