//! Rounds: the memory in which all callers of one file system meet, and the steps they take in it.
//!
//! A round gathers callers and releases them together. Its whole state is one 64-bit word, generation
//! and count, changed by compare-and-swap; a release starts the next generation, and callers sleep on
//! the generation as a futex. So nobody owns a round and nobody can die holding one: a caller that is
//! killed has at most been counted once too often, and everybody else leaves at their own deadline.
//!
//! - [`shared_layout`]: the memory. All zeros is its valid initial state.
//! - [`join`]: arriving, waiting, releasing; `hold_time`: for how long.
//! - `held_callers`: the same for an event loop that holds many callers at once.
//! - `flush_only`: callers that need no commit, in a round of others that do.
//! - [`user_rounds`]: the rounds of all file systems; each has two sets, for commits and for flushes.
//! - [`calls_under_way`]: how many calls there are at once.
//! - [`commit_end`]: what the first caller to come back from a commit does: note its end, ask the controller.

pub mod calls_under_way;
pub mod commit_end;
mod flush_only;
mod held_callers;
mod hold_time;
pub mod join;
pub mod shared_layout;
#[cfg(test)]
mod tests;
pub mod user_rounds;

pub use calls_under_way::CallsUnderWay;
pub use held_callers::{RoundWaiter, WaiterStep};
pub use hold_time::HoldLimits;
pub use join::{DurabilityNeed, JoinedRound, RoundRole};
pub use shared_layout::Rounds;
pub use user_rounds::{FileSystemActivity, FileSystemRounds, UserRounds};
