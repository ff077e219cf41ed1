//! One gated call, from the program's call to its return.
//!
//! The order of things is what makes it work: the file's data is written first (a journal commit only
//! has to wait for data that is still under way), then the caller joins a round, then every caller of
//! the round makes its own real call, which finds all the others in the same transaction. Nothing here
//! allocates or locks; whatever is unexpected leads to the real call at once.

use std::cell::Cell;
use std::ffi::c_int;

use crate::figures::CallKind;
use crate::figures::segment::{Call, FileSystemFigures, RoundPart};
use crate::policy::Policy;
use crate::rounds::Rounds;
use crate::sys;

/// What a call works with: its file system's rounds and figures.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Where callers meet; `None` where nothing can be gained (no journal, fast commit).
    pub rounds: Option<&'static Rounds>,
    /// Where figures go.
    pub figures: Option<&'static FileSystemFigures>,
}

/// What holds for all calls of the process.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The policy.
    pub policy: Policy,
    /// The longest that a caller is held, in nanoseconds.
    pub longest_wait_ns: u64,
}

/// Makes `real` at the right moment and returns its result. `fd` is given for a regular file, whose
/// data is written before joining a round. `seen_window` is the thread's memory for this place.
///
/// `errno` is what `real` left; an error of the early data write is reported as `real` would have
/// reported it.
pub fn synchronize(
    settings: &Settings,
    place: &Place,
    kind: CallKind,
    fd: Option<c_int>,
    seen_window: &Cell<u32>,
    real: impl FnOnce() -> c_int,
) -> c_int {
    let errno = sys::errno();
    let called_ns = sys::now_ns();
    let Some(rounds) = place.rounds.filter(|_| settings.policy != Policy::Off) else {
        sys::set_errno(errno);
        let result = real();
        let latency_ns = sys::now_ns().saturating_sub(called_ns);
        record(
            place,
            &Call {
                kind,
                latency_ns,
                failed: result != 0,
                round: None,
            },
        );
        return result;
    };
    rounds.count_participant(seen_window);
    if !rounds.is_gated() {
        sys::set_errno(errno);
        let result = real();
        let left = sys::errno();
        let returned_ns = sys::now_ns();
        let latency_ns = returned_ns.saturating_sub(called_ns);
        rounds.returned_ungated(&settings.policy, returned_ns, latency_ns);
        rounds.complete();
        record(
            place,
            &Call {
                kind,
                latency_ns,
                failed: result != 0,
                round: None,
            },
        );
        sys::set_errno(left);
        return result;
    }
    let write_error = fd.map_or(0, sys::write_back);
    let written_back_ns = sys::now_ns().saturating_sub(called_ns);
    let joined = rounds.join(&settings.policy, settings.longest_wait_ns);
    sys::set_errno(errno);
    let mut result = real();
    if result == 0 && is_write_failure(write_error) {
        // The kernel reports a failed write once per open file, and the early write has used it up.
        sys::set_errno(write_error);
        result = -1;
    }
    let left = sys::errno();
    let latency_ns = sys::now_ns().saturating_sub(called_ns);
    let first = rounds.returned_from_round(&settings.policy, joined.generation);
    rounds.complete();
    let round = RoundPart {
        written_back_ns,
        waited_ns: joined.waited_ns,
        timed_out: joined.timed_out,
        first_to_return: first,
    };
    record(
        place,
        &Call {
            kind,
            latency_ns,
            failed: result != 0,
            round: Some(round),
        },
    );
    sys::set_errno(left);
    result
}

fn record(place: &Place, call: &Call) {
    if let Some(figures) = place.figures {
        figures.record(call);
    }
}

/// Errors of the data write itself; others (a pipe, a closed descriptor) the real call reports.
fn is_write_failure(error: c_int) -> bool {
    matches!(
        error,
        libc::EIO | libc::ENOSPC | libc::EDQUOT | libc::ENOMEM
    )
}
