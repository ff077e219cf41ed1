//! State of each thread.

use core::arch::{asm, global_asm};
use core::cell::Cell;

use luc_rounds::device_slots::FILE_SYSTEMS;
use luc_rounds::gated_call::CountedWindows;

/// A thread's memory. All zeros is its initial state.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct PreloadThread {
    /// Set while a call is inside the gate: a signal handler that synchronizes must not join a round on top of it.
    inside: Cell<bool>,
    /// Last windows in which the thread was counted as a participant, by place.
    windows: [CountedWindows; FILE_SYSTEMS],
}

// Thread-local storage of the initial executable, for which the loader makes room before any thread starts: no
// call, no allocation, nothing that could fail.
global_asm!(
    ".pushsection .tbss.luc_gate_local, \"awT\", @nobits",
    ".balign 16",
    ".hidden luc_gate_local",
    ".globl luc_gate_local",
    ".type luc_gate_local, @object",
    "luc_gate_local:",
    ".zero {size}",
    ".size luc_gate_local, {size}",
    ".popsection",
    size = const size_of::<PreloadThread>(),
);

#[cfg(target_arch = "x86_64")]
fn local() -> *const PreloadThread {
    let place;
    // SAFETY: adds the storage's offset to the thread's pointer, which its first word holds.
    unsafe {
        asm!(
            "mov {0}, qword ptr fs:[0]",
            "add {0}, qword ptr [rip + luc_gate_local@GOTTPOFF]",
            out(reg) place,
            options(nostack, pure, readonly),
        );
    }
    place
}

#[cfg(target_arch = "aarch64")]
fn local() -> *const PreloadThread {
    let place;
    // SAFETY: adds the storage's offset to the thread's pointer.
    unsafe {
        asm!(
            "mrs {1}, tpidr_el0",
            "adrp {0}, :gottprel:luc_gate_local",
            "ldr {0}, [{0}, :gottprel_lo12:luc_gate_local]",
            "add {0}, {0}, {1}",
            out(reg) place,
            out(reg) _,
            options(nostack, pure, readonly),
        );
    }
    place
}

/// Runs `gated` with the thread's memory for `place`, or `direct` if the thread is inside the gate.
///
/// `gated` may never return: the thread is cancelled in it, or a handler jumps out of it. The thread then stays marked,
/// and makes direct calls from then on.
pub(crate) fn enter<T>(
    place: usize,
    gated: impl FnOnce(&CountedWindows) -> T,
    direct: impl FnOnce() -> T,
) -> T {
    // SAFETY: the thread's own storage, which nobody else has and which lives as long as the thread.
    let local = unsafe { &*local() };
    match local.windows.get(place) {
        Some(window) if !local.inside.replace(true) => {
            let outcome = gated(window);
            local.inside.set(false);
            outcome
        }
        _ => direct(),
    }
}
