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
