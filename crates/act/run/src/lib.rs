//! Runs a command whose fsyncs share commits, and measures and explains the gain.
//!
//! [`PlannedRun`] runs a command once, under the gate, the kernel module or both. [`explain()`] and
//! [`explain_meanwhile()`] record a run and divide the time of its fsyncs. [`compare()`] makes runs with and
//! without, in random order.
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
//! - `luc_gate::inspect` looks before anything runs: ELF, scripts, privileges, journals. `luc_gate::user_directory`
//!   makes and removes the shared files.
//! - `luc_launch` finds the library, passes signals and the exit status through, and collects the outcome.
//! - `luc-gate-preload` has the interposed functions, and what each process and thread remembers.
//! - `luc_rounds` has one call from beginning to end (`call`) and the shared memory (`rounds`): `arena`, `layout`,
//!   `join`, `hold`, `commit_end`.
//! - `luc_control::auto_gate` learns, tries, engages, checks, steps aside.
//!
//! Where the kernel module is loaded, `luc_module::level` decides before the start who batches on which journal.
//! While the command runs it lends the module's settings to these journals, and restores them.

mod compare_gain;
mod error;
mod explain_run;
mod planned_run;
mod sync_witness;

pub use compare_gain::{GainComparison, GainOptions, GainProgress, compare};
pub use error::RunError;
pub use explain_run::{RecordedRun, TimeSplit, TimeSplitChange, explain, explain_meanwhile};
pub use planned_run::{PlannedRun, RecordedSyncWays, RunOutcome, level_name, requested};
