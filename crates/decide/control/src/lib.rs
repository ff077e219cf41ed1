//! Controllers: when a journal commit should wait for company, and which tasks may use a disk together.
//!
//! Everything here is pure and clockless: time comes in as an argument, decisions go out as values, nothing locks or
//! sleeps. But for `throttle` nothing allocates; the states are plain integers and floats with a C layout, for
//! which every bit pattern is valid, so that they can live in memory shared between processes and
//! survive a participant that dies in the middle of an update.
//!
//! - [`delay`]: the thesis' delayJC, a restarting timer with bounded restarts.
//! - [`pid`]: the LUC paper's controller, and [`stability`] its closed-loop poles.
//! - [`setpoint`]: how soon callers come back after a commit, and how many are worth waiting for.
//! - [`engagement`]: gated against ungated samples: does batching pay here?
//! - [`auto`]: all of them together, the default policy.
//! - `throttle`: which tasks may use a disk, and which are frozen meanwhile; a feature.
#![warn(missing_docs)]
#![cfg_attr(not(any(test, feature = "throttle")), no_std)]

pub mod auto;
pub mod delay;
pub mod engagement;
pub mod epoch;
pub mod pid;
mod sample;
pub mod setpoint;
pub mod stability;
#[cfg(feature = "throttle")]
pub mod throttle;

/// The most participants whose returns are told apart; more still share rounds.
pub const MAX_PARTICIPANTS: usize = 512;
