//! Finds windows of time in rings of traces, collects them and keeps them.
//!
//! A ring is a directory of segments that `luc record --ring` writes; [`luc_events::ring`] has its layout. A window is
//! found by CLOCK_REALTIME. It is collected from other hosts and from object stores, and kept however long rings go on.
//! Of a trace only its time and host are known here.
//!
//! - [`LogTime`], [`TimeWindow`]: times, as people write them.
//! - [`time_window`]: segments that overlap a window, read as one trace.
//! - [`pull()`]: collects a window from the rings of several hosts; [`PullFrom`] names a ring.
//! - [`freeze()`]: keeps a window of a ring; [`freeze_there()`]: on another host.
//! - [`send()`], [`receive()`]: transfer segments between hosts.
//! - [`pass_trigger`]: visits the other hosts that keep their rings, too.
//!
//! # Collecting
//!
//! [`pull()`] takes windows from sources (`pull/pull_source`). `pull/ssh` runs ssh, `pull/command` takes what a command
//! writes, `pull/tar_stream` has what passes between hosts. `pull/keep_segments` has files that appear whole or not at
//! all. When a host triggers, [`pass_trigger`] says to which others that goes, and `pull/freeze_elsewhere` has their
//! rings kept.

mod log_time;
pub mod pass_trigger;
mod pull;
pub mod time_window;

pub use log_time::{LogTime, NotALogTime};
pub use pull::{
    CLOCK_ERROR_NS, INSTALL_STORE, PullError, PullFrom, Pulled, ReceivedAmount, RemotelyKept,
    RingPlace, STORE, StreamError, StreamLimits, freeze, freeze_there, host_name, pull, put,
    receive, send,
};
pub use time_window::{TimeWindow, WindowError};
