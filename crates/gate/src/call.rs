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
use crate::rounds::{Needs, Rounds};
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

/// What is to be synchronized.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The call.
    pub kind: CallKind,
    /// What it takes to make the data durable.
    pub needs: Needs,
    /// A regular file, whose data is written before joining a round.
    pub fd: Option<c_int>,
}

/// Makes `real` at the right moment and returns its result. `seen_window` is the thread's memory for
/// this place.
///
/// `errno` is what `real` left; an error of the early data write is reported as `real` would have
/// reported it.
pub fn synchronize(
    settings: &Settings,
    place: &Place,
    request: Request,
    seen_window: &Cell<u32>,
    real: impl FnOnce() -> c_int,
) -> c_int {
    let errno = sys::errno();
    let called_ns = sys::now_ns();
    let real = || {
        sys::set_errno(errno);
        let result = real();
        (result, sys::errno())
    };
    let rounds = place.rounds.filter(|_| settings.policy != Policy::Off);
    let (result, errno, round) = match rounds {
        None => {
            let (result, errno) = real();
            (result, errno, None)
        }
        Some(rounds) => {
            rounds.count_participant(seen_window);
            let outcome = if rounds.is_gated(&settings.policy, called_ns) {
                gated(settings, rounds, &request, called_ns, real)
            } else {
                let (result, errno) = real();
                if request.needs == Needs::Commit {
                    let returned_ns = sys::now_ns();
                    let latency_ns = returned_ns.saturating_sub(called_ns);
                    rounds.returned_ungated(&settings.policy, returned_ns, latency_ns);
                }
                (result, errno, None)
            };
            rounds.complete();
            outcome
        }
    };
    if let Some(figures) = place.figures {
        figures.record(&Call {
            kind: request.kind,
            latency_ns: sys::now_ns().saturating_sub(called_ns),
            failed: result != 0,
            round,
        });
    }
    sys::set_errno(errno);
    result
}

/// The way through a round: the result, `errno`, and what the round added.
fn gated(
    settings: &Settings,
    rounds: &Rounds,
    request: &Request,
    called_ns: u64,
    real: impl FnOnce() -> (c_int, c_int),
) -> (c_int, c_int, Option<RoundPart>) {
    let write_error = request.fd.map_or(0, sys::write_back);
    let written_back_ns = sys::now_ns().saturating_sub(called_ns);
    let joined = rounds.join(&settings.policy, request.needs, settings.longest_wait_ns);
    let (mut result, mut errno) = real();
    if result == 0 && is_write_failure(write_error) {
        // The kernel reports a failed write once per open file, and the early write has used it up.
        (result, errno) = (-1, write_error);
    }
    let first_to_return = rounds.returned_from_round(&settings.policy, &joined);
    let part = RoundPart {
        written_back_ns,
        waited_ns: joined.waited_ns,
        timed_out: joined.timed_out,
        first_to_return,
    };
    (result, errno, Some(part))
}

/// Errors of the data write itself; others (a pipe, a closed descriptor) the real call reports.
fn is_write_failure(error: c_int) -> bool {
    matches!(
        error,
        libc::EIO | libc::ENOSPC | libc::EDQUOT | libc::ENOMEM
    )
}
