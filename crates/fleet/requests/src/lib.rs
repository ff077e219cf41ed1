//! Requests across many hosts, without an engine: the messages that connect hosts, the request that each call was made
//! for, and the critical path of each request.
//!
//! Everything here is pure: rows come in, edges go out; nothing is read, written or panics. `luc_fleet_clocks` relates
//! the hosts' clocks.
//!
//! Hosts record plain rows: [`End`], [`Message`], [`Packet`], [`Wait`]. [`Waits`] holds many waits in little memory. No
//! result has anything uncertain; lists beside it say what is missing, and why.
//!
//! - [`Connections`]: pairs of ends, by the initial sequence numbers that both have seen.
//! - [`clock_points()`]: packets of paired connections as bounds for the clocks.
//! - [`Messages`]: sends and their receptions, by the bytes of each direction.
//! - [`Requests`]: requests and calls of threads, and the request that each call was made for, by evidence.
//! - [`Paths`]: parts of a request's time by thread and host, to the ns. [`Effects`]: requests that threads worked for.
//!   [`Running`]: threads that had the processors.
//! - [`accounts()`]: costs of the slowest requests, beside those of usual ones.
//! - [`Engaged`]: threads that have nothing to do, and threads that wait for an answer. [`ticks()`]: threads that wake
//!   for nothing.
//! - [`Why`]: the reason why a thread does not run at a time, from thread to thread.
//! - [`Forest`]: nodes numbered so that each subtree is a range. [`Sums`]: sums over any subtree.
//!
//! # Where the steps are
//!
//! 1. `connections` pairs the ends of a connection: by both initial sequence numbers, then by addresses, then by the
//!    numbers alone. Where several ends fit, none is taken.
//! 2. `packets` makes bounds for the clocks of paired ends: of each byte the first transmission and the first
//!    reception.
//! 3. `messages` matches sends and receptions of a direction by their bytes, in one sweep. Bytes that two rows of a
//!    side claim are on no edge.
//! 4. `requests` finds requests and answers of each end by direction and order, then the request that each was made
//!    for. A cause has its evidence; what is not known stays so.
//! 5. `path` walks backward from an answer to who ended each wait, across hosts. Its parts sum to the request's time
//!    exactly; each part between hosts has the error of the clocks.
//! 6. `account` compares the slowest requests with usual ones, as shares with intervals.
//!
//! `awaits` says which waiting threads have something to do. `why` follows waits from thread to thread at one moment.
//! `tree` numbers a forest before and after, so that a subtree is a range. If a host's recorder sums brief waits, its
//! wake-ups tell nothing.

mod account;
mod awaits;
mod connections;
mod messages;
mod packets;
mod path;
mod requests;
mod rows;
#[cfg(test)]
mod testing;
mod tree;
mod waits;
mod why;

pub use account::{Account, Charge, Portion, Sample, accounts, slow_and_usual};
pub use awaits::{Awaits, Engaged, Ticks, ticks};
pub use connections::{ConnectionPair, Connections, PairEvidence, WhyUnpaired};
pub use messages::{Gap, GapKind, LeftOut, MessageEdge, Messages, Side};
pub use packets::clock_points;
pub use path::{Before, Effects, Link, Part, PartKind, Path, Paths, Ran, Running};
pub use requests::{
    Answer, CallId, Cause, Exchange, HandOver, Incoming, Outgoing, RequestId, Requests,
};
pub use rows::{
    Address, AtStart, End, EndId, Message, NameId, Opener, Packet, Sleeper, Thread, ThreadId, Wait,
    Way,
};
pub use tree::{Forest, Sums, TreeError};
pub use waits::{HostWaits, TooManyWaits, Waits};
pub use why::{Chain, ChainThread, Doing, Reason, Why};
