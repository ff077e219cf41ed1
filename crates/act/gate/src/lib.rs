//! The fsync gate: brings the fsyncs of all participating threads and processes on one ext4 file system into common
//! journal commits. It needs no help of the kernel and weakens no fsync.
//!
//! `libluc_gate_preload.so` (the `preload` package) interposes the calls. The parts that it shares with the notifier
//! are in `luc-rounds`, which needs no standard library. They are exported here under the same names. This library
//! holds all else.
//!
//! - [`gate_policy`]: the policies of the command line.
//! - [`inspect`]: decides whether this program can, and this file system does, profit at all.
//! - [`user_directory`]: the files that hold the shared memory of a user's runs; [`unit_shared_files`]: those of a
//!   systemd unit.

pub mod inspect;
pub mod seccomp_filter;
pub mod shared_values;
pub mod unit_shared_files;
pub mod user_directory;
pub mod writeback_errors;

pub use luc_rounds::{
    CallFileSystem, CallSettings, GatePolicy, GatedCallKind, device_slots, environment_names,
    figures, gate_policy, gated_call, overwrite_detection, proc_self_maps, rounds, synchronize,
    time_namespace,
};
