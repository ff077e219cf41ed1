//! Finds windows of time in rings of traces, collects them and keeps them.
//!
//! A ring is a directory of segments that `luc record --ring` writes; [`luc_events::ring`] has its layout. A window is
//! found by CLOCK_REALTIME. It is collected from other hosts and from object stores, and kept however long rings go on.
//! Of a trace only its time and host are known here.
//!
//! - [`Moment`], [`Window`]: times, as people write them.
//! - [`window`]: segments that overlap a window, read as one trace.
//! - [`pull()`]: collects a window from the rings of several hosts; [`PullFrom`] names a ring.
//! - [`freeze()`]: keeps a window of a ring; [`freeze_there()`]: on another host.
//! - [`send()`], [`receive()`]: transfer segments between hosts.
//! - [`travel`]: visits the other hosts that keep their rings, too.
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
    CLOCK_ERROR_NS, INSTALL_STORE, KeptThere, Limits, PullError, PullFrom, Pulled, Received,
    RingPlace, STORE, StreamError, freeze, freeze_there, host_name, pull, put, receive, send,
};
pub use window::{Window, WindowError};
