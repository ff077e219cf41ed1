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
use luc_gate::{Policy, Settings, memory, seccomp};

/// The part.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) settings: Settings,
    pub(crate) rounds: &'static Arena,
    pub(crate) figures: Option<&'static RunFigures>,
}

/// What the unit's environment says; `None` outside of a unit, or where this process takes no part.
pub(crate) fn part() -> Option<Part> {
    let unit = env::var(UNIT).ok()?;
    if !knows_its_filters() {
        return None;
    }
    // SAFETY: no arguments, no failure.
    let user = unsafe { libc::geteuid() };
    let files = Files::new(&unit, user);
    Some(Part {
        settings: Settings {
            policy: Policy::Auto,
            longest_wait_ns: LONGEST_WAIT_NS,
        },
        rounds: memory::map(&c_path(files.rounds())?).ok()?,
        figures: c_path(files.figures()).and_then(|path| memory::map(&path).ok()),
    })
}

/// Whether all filters of system calls that this process is under are the unit's own, which let the gate's calls pass:
/// `luc enable` has looked. Only systemd's own child knows how many these are, and tells its descendants.
fn knows_its_filters() -> bool {
    let filters = seccomp::filters();
    if let Ok(of_unit) = env::var(FILTERS) {
        return of_unit.parse().is_ok_and(|of_unit: u32| filters <= of_unit);
    }
    let is_first = env::var(STARTED).is_ok_and(|number| number == std::process::id().to_string());
    if is_first {
        // SAFETY: run by the loader before `main`, while the process has one thread.
        unsafe { env::set_var(FILTERS, filters.to_string()) };
    }
    is_first || filters == 0
}

fn c_path(path: PathBuf) -> Option<CString> {
    CString::new(path.into_os_string().into_vec()).ok()
}
