//! Rounds that the callers of a file system share, as the preload library and the notifier run them.
//!
//! Everything here works in a process that may have no C library that we know: system calls by instruction
//! ([`syscall`]), no allocation, no lock, no thread-local memory, nothing that can be interposed.
//!
//! - [`call`]: one gated call from beginning to end.
//! - [`rounds`]: the shared memory in which callers meet.
//! - [`memory`], [`slots`]: how that memory is mapped and divided; [`clock`]: whose times it holds; [`vdso`]: the clock.
//! - [`overwrites`]: which calls need only a flush of the device.
//! - [`journal`]: which journal stands behind a file.
//! - [`seccomp`]: is this process under a filter of system calls?
//! - [`policy`]: how callers are brought together.
//! - [`figures`]: what is counted for the report.

#![cfg_attr(not(any(test, feature = "text")), no_std)]

pub mod call;
pub mod clock;
pub mod environment;
pub mod figures;
pub mod journal;
pub mod mappings;
pub mod maps;
pub mod memory;
pub mod overwrites;
pub mod path;
pub mod policy;
pub mod rounds;
pub mod seccomp;
pub mod slots;
pub mod sys;
pub mod syscall;
pub mod vdso;

pub use call::{Place, Settings, synchronize};
pub use figures::CallKind;
pub use policy::Policy;
