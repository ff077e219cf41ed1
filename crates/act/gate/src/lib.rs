//! The fsync gate: brings the fsyncs of all participating threads and processes on one ext4 file system
//! into common journal commits, without the kernel's help and without weakening any of them.
//!
//! `libluc_gate_preload.so` (the `preload` package) interposes the calls. What it shares with the notifier is in
//! `luc-rounds`, which needs no standard library, and stands here under the same names; this library holds
//! everything else.
//!
//! - [`policy`]: what may be asked for on the command line.
//! - [`inspect`]: can this program, and does this file system, profit at all?
//! - [`files`]: the files that hold the shared memory of a user's runs; [`mod@unit`]: those of a systemd unit.

pub mod files;
pub mod inspect;
pub mod memory;
pub mod seccomp;
pub mod sys;
pub mod unit;

pub use luc_rounds::{
    CallKind, Place, Policy, Settings, call, clock, environment, figures, maps, overwrites, policy,
    rounds, slots, synchronize,
};
