//! Many hosts without an engine: which messages connect them, which request was made for which other, and what its
//! time went into.
//!
//! Everything here is pure: rows come in, edges go out; nothing is read, written or panics. How the hosts' clocks relate
//! is told by `luc_fleet_clocks`.
//!
//! What hosts record of their messages are plain rows: [`End`], [`Message`], [`Packet`], [`Wait`]. [`Waits`] holds many of
//! the last in little memory. What is not certain is in no result, but in a list of what is missing, and why.
//!
//! - [`Connections`]: which two ends are one connection, by the initial sequence numbers that both have seen.
//! - [`clock_points()`]: packets of paired connections as bounds for the clocks.
//! - [`Messages`]: which sends fed which receptions, by the bytes of each direction.
//! - [`Requests`]: which thread asked for whom, and for which request another one was made, by evidence.
//! - [`Paths`]: what a request's time went into, by thread and host, to the ns; [`Effects`], [`Running`]: for whom threads
//!   worked meanwhile, and who had the processors.
//! - [`accounts()`]: what the slowest requests' time went into, beside that of usual ones.
//! - [`Engaged`]: which waiting threads have nothing to do, and which wait for an answer; [`ticks()`]: which wake for
//!   nothing.
//! - [`Why`]: why a thread does not run at a time, from thread to thread.
//! - [`Forest`]: nodes numbered so that all below one is a range; [`Sums`] over any subtree.
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
mod tree;
mod waits;
mod why;

pub use account::{Account, Charge, Portion, Sample, accounts, slow_and_usual};
pub use awaits::{Awaits, Engaged, Ticks, ticks};
pub use connections::{ConnectionPair, Connections, PairEvidence, WhyUnpaired};
pub use messages::{Gap, GapKind, LeftOut, MessageEdge, Messages, Side};
pub use packets::clock_points;
pub use path::{Before, Effects, Link, Part, PartKind, Path, Paths, Ran, Running};
pub use requests::{Answer, Exchange, HandOver, Incoming, Outgoing, Requests};
pub use rows::{
    Address, AtStart, End, EndId, Message, NameId, Opener, Packet, Sleeper, Thread, ThreadId, Wait,
    Way,
};
pub use tree::{Forest, Sums, TreeError};
pub use waits::{HostWaits, TooManyWaits, Waits};
pub use why::{Chain, ChainLink, Doing, Reason, Why};
