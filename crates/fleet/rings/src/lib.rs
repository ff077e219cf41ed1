//! What rings of traces have of a window of time.
//!
//! A ring is a directory of segments that `luc record --ring` writes; [`luc_events::ring`] has its layout. A window is
//! found in it by CLOCK_REALTIME, collected from other hosts and from object stores, and kept however long rings go on.
//! What traces say is not known here, beyond of which time and host they are.
//!
//! - [`Moment`], [`Window`]: times, as people name them.
//! - [`window`]: the segments that have something of a window, read as one trace.
//! - [`pull()`]: what several hosts' rings have of one time, collected; [`PullFrom`] says from where.
//! - [`freeze()`]: what one ring has of it, kept; [`freeze_there()`]: on another host.
//! - [`send()`], [`receive()`]: segments on their way between hosts.
//! - [`travel`]: on which other hosts rings are kept, too.
//!
//! # Collecting
//!
//! [`pull()`] takes windows from sources (`pull/from`). `pull/there` runs ssh, `pull/command` takes what a command
//! writes, `pull/stream` has what passes between hosts. `pull/keep` has files that appear whole or not at all. When a
//! host triggers, [`travel`] says to which others that goes, and `pull/elsewhere` has their rings kept.

mod moment;
mod pull;
pub mod travel;
pub mod window;

pub use moment::{Moment, NotAMoment};
pub use pull::{
    CLOCK_ERROR_NS, INSTALL_STORE, KeptThere, Limits, Place, PullError, PullFrom, Pulled, Received,
    STORE, StreamError, freeze, freeze_there, host_name, pull, put, receive, send,
};
pub use window::{Window, WindowError};
