//! Rounds that the callers of a file system share, as the preload library and the notifier run them.
//!
//! Everything here works in a process that may have no C library that we know: system calls by instruction
//! ([`raw_syscall`]), no allocation, no lock, no thread-local memory, nothing that can be interposed.
//!
//! - [`gated_call`]: one gated call from beginning to end.
//! - [`rounds`]: the shared memory in which callers meet.
//! - [`shared_file`], [`device_slots`]: how that memory is mapped and divided; [`time_namespace`]: whose times it
//!   holds; [`vdso_clock`]: the clock.
//! - [`overwrite_detection`]: which calls need only a flush of the device.
//! - [`journal_lookup`]: which journal stands behind a file.
//! - [`seccomp_filter`]: is this process under a filter of system calls?
//! - [`gate_policy`]: how callers are brought together.
//! - [`figures`]: what is counted for the report.

#![cfg_attr(not(any(test, feature = "text")), no_std)]

pub mod call_path_syscalls;
pub mod device_slots;
pub mod environment_names;
pub mod figures;
pub mod fixed_path;
pub mod gate_policy;
pub mod gated_call;
pub mod journal_lookup;
pub mod mapping_cache;
pub mod overwrite_detection;
pub mod proc_self_maps;
pub mod raw_syscall;
pub mod rounds;
pub mod seccomp_filter;
pub mod shared_file;
pub mod time_namespace;
pub mod vdso_clock;

pub use figures::GatedCallKind;
pub use gate_policy::GatePolicy;
pub use gated_call::{CallFileSystem, CallSettings, synchronize};
