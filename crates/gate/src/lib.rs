//! The fsync gate: brings the fsyncs of all participating threads and processes on one ext4 file system
//! into common journal commits, without the kernel's help and without weakening any of them.
//!
//! `libluc_gate_preload.so` (the `preload` package) interposes the calls; this library holds everything else,
//! so that `luc` and the tests can use it without being interposed themselves.
//!
//! - [`call`]: one gated call from beginning to end.
//! - [`rounds`]: the shared memory in which callers meet.
//! - [`memory`], [`environment`], [`slots`]: how that memory is found, mapped and divided.
//! - [`overwrites`]: which calls need only a flush of the device.
//! - [`seccomp`]: is this process under a filter of system calls?
//! - [`policy`]: what may be asked for on the command line.
//! - [`figures`]: what is counted for the report.
//! - [`inspect`]: can this program, and does this file system, profit at all?
//! - [`files`]: the files that hold the shared memory of a user's runs; [`mod@unit`]: those of a systemd unit.

pub mod call;
pub mod environment;
pub mod figures;
pub mod files;
pub mod inspect;
pub mod maps;
pub mod memory;
pub mod overwrites;
pub mod policy;
pub mod rounds;
pub mod seccomp;
pub mod slots;
pub mod sys;
pub mod unit;

pub use call::{Place, Settings, synchronize};
pub use figures::CallKind;
pub use policy::Policy;
