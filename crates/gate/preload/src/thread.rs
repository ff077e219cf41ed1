//! State of each thread.

use std::cell::Cell;

use luc_gate::call::SeenWindows;
use luc_gate::slots::FILE_SYSTEMS;

/// A thread's memory.
#[derive(Debug)]
pub(crate) struct Local {
    /// Set while a call is inside the gate: a signal handler that synchronizes, too, must not join a
    /// round on top of it.
    inside: Cell<bool>,
    /// Last windows in which the thread was counted as a participant, by place.
    windows: [SeenWindows; FILE_SYSTEMS],
}

thread_local! {
    // Constant and without a destructor: plain thread-local storage, no allocation, no registration.
    static LOCAL: Local =
        const { Local { inside: Cell::new(false), windows: [const { SeenWindows::new() }; FILE_SYSTEMS] } };
}

/// Runs `gated` with the thread's memory for `place`, or `direct` if the thread is inside the gate.
///
/// If `gated` never returns (the thread is cancelled in it, or a handler jumps out of it) the thread
/// stays marked and makes direct calls from then on.
pub(crate) fn enter<T>(
    place: usize,
    gated: impl FnOnce(&SeenWindows) -> T,
    direct: impl FnOnce() -> T,
) -> T {
    LOCAL.with(|local| match local.windows.get(place) {
        Some(window) if !local.inside.replace(true) => {
            let outcome = gated(window);
            local.inside.set(false);
            outcome
        }
        _ => direct(),
    })
}
