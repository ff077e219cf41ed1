//! The fsync gate: brings the fsyncs of all participating threads and processes on one ext4 file system into common journal
//! commits. It needs no help of the kernel and weakens no fsync.
//!
//! `libluc_gate_preload.so` (the `preload` package) interposes the calls. The parts that it shares with the notifier
//! are in `luc-rounds`, which needs no standard library. They are exported here under the same names. This library
//! holds all else.
//!
//! - [`policy`]: the policies of the command line.
//! - [`inspect`]: decides whether this program can, and this file system does, profit at all.
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
