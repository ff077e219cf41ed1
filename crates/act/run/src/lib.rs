//! Runs a command whose fsyncs share commits, and measures and explains the gain.
//!
//! [`PlannedRun`] runs a command once, under the gate, the kernel module or both. [`explain()`] and [`explain_meanwhile()`]
//! record a run and divide the time of its fsyncs. [`compare()`] makes runs with and without, in random order.
//!
//! # One run, from end to end
//!
//! ```text
//! luc run ── inspect: can this program be gated? ──▶ launch: session, figures, environment
//!                                                         │ LD_PRELOAD=libluc_gate_preload.so
//!    program ── fsync ──▶ preload: which file system? ──▶ rounds: one gated call
//!                                                         │ 1 write the file's data, wait for it
//!                                                         │ 2 join the round in shared memory, wait
//!                                                         │ 3 the program's own fsync, with all others
//!                                                         │ 4 the first to come back notes the commit's
//!                                                         │   end and asks control what to do next
//!    luc run ◀── figures: histogram, waits, decisions ◀───┘
//! ```
//!
//! - `luc_gate::inspect` looks before anything runs: ELF, scripts, privileges, journals. `luc_gate::files` makes and
//!   removes the shared files.
//! - `luc_launch` finds the library, passes signals and the exit status through, and collects the outcome.
//! - `luc-gate-preload` has the interposed functions, and what each process and thread remembers.
//! - `luc_rounds` has one call from beginning to end (`call`) and the shared memory (`rounds`): `arena`, `layout`,
//!   `join`, `hold`, `commit_end`.
//! - `luc_control::auto` learns, tries, engages, checks, steps aside.
//!
//! Where the kernel module is loaded, `luc_module::level` decides before the start who batches on which journal.
//! While the command runs it lends the module's settings to these journals, and restores them.

mod compare;
mod error;
mod explain;
mod level;
mod witness;

pub use compare::{Comparison, Options, Progress, compare};
pub use error::RunError;
pub use explain::{Change, Recorded, TimeSplit, explain, explain_meanwhile};
pub use level::{PassingBy, PlannedRun, RunOutcome, level_name, requested};
