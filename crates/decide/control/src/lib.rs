//! Controllers: how long a journal commit should wait for more callers, and which tasks may use a disk together.
//!
//! Controllers are pure and clockless: time is an argument, and decisions are return values. Nothing locks or sleeps.
//! Except for `throttle` nothing allocates. The states are plain integers and floats with a C layout, and every bit
//! pattern is valid. So they can live in memory shared between processes, and survive a participant that dies during an
//! update.
//!
//! - [`delay_jc`]: the thesis' delayJC, a restarting timer with bounded restarts.
//! - [`pid`]: the LUC paper's controller, and [`stability`] its closed-loop poles.
//! - [`setpoint`]: how soon callers return after a commit, and how many are worth waiting for.
//! - [`engagement`]: compares gated with ungated samples, to see whether batching pays.
//! - [`auto_gate`]: all of them together, the default policy.
//! - `throttle`: which tasks may use a disk, and which are frozen meanwhile; a feature.
#![warn(missing_docs)]
#![cfg_attr(not(any(test, feature = "throttle")), no_std)]

pub mod auto_gate;
pub mod commit_end;
mod commit_sample;
pub mod delay_jc;
pub mod engagement;
pub mod pid;
pub mod setpoint;
pub mod stability;
#[cfg(feature = "throttle")]
pub mod throttle;

/// Largest number of participants whose returns are told apart. More participants still share rounds.
pub const MAX_PARTICIPANTS: usize = 512;
