//! Requests across many hosts, without an engine: the messages that connect hosts, and the request that each call was made
//! for.
//!
//! Everything here is pure: rows come in, edges go out; nothing is read, written or panics. `luc_fleet_clocks` relates
//! the hosts' clocks.
//!
//! Each host records its connections' ends, messages, packets and waits: [`ConnectionEnd`], [`MessageRow`],
//! [`PacketRow`], [`ThreadWait`]. Requests are inferred from them here. [`FleetWaits`] holds many waits in little
//! memory. No result has anything uncertain; lists beside it say what is missing, and why.
//!
//! - [`Connections`]: pairs of ends, by the initial sequence numbers that both have seen.
//! - [`clock_points()`]: packets of paired connections as bounds for the clocks.
//! - [`MatchedMessages`]: sends and their receptions, by the bytes of each direction.
//! - [`Requests`]: requests and calls of threads, and the request that each call was made for, by evidence.
//! - [`ThreadHistories`]: waits and messages of each thread. [`Effects`]: requests that threads worked for.
//! - [`accounts()`]: costs of the slowest requests, beside those of usual ones.
//! - [`EngagedTimes`]: threads that have nothing to do, and threads that wait for an answer. [`ticks()`]: threads that
//!   wake for nothing.
//! - [`NumberedForest`]: nodes numbered so that each subtree is a range. [`SubtreeSums`]: sums over any subtree.
//!
//! # Where the steps are
//!
//! 1. `connections` pairs the ends of a connection: by both initial sequence numbers, then by addresses, then by the
//!    numbers alone. Where several ends fit, none is taken.
//! 2. `packet_clock_bounds` makes bounds for the clocks of paired ends: of each byte the first transmission and the
//!    first reception.
//! 3. `messages` matches sends and receptions of a direction by their bytes, in one sweep. Bytes that two rows of a
//!    side claim are on no edge.
//! 4. `requests` finds requests and answers of each end by direction and order, then the request that each was made
//!    for. A cause has its evidence; what is not known stays so.
//! 5. `slow_request_costs` compares the slowest requests with usual ones, as shares with intervals. What a request's
//!    time went into comes from the graph of waits (`luc-waits`).
//!
//! `wait_purpose` says which waiting threads have something to do. `numbered_forest` numbers a forest before and after, so that a subtree is a range. If a host's recorder
//! sums brief waits, its wake-ups tell nothing.

mod connections;
mod fleet_waits;
mod host_rows;
mod messages;
mod numbered_forest;
mod packet_clock_bounds;
mod requests;
mod slow_request_costs;
#[cfg(test)]
mod test_rows;
mod thread_histories;
mod wait_purpose;

pub use connections::{ConnectionPair, Connections, PairEvidence, WhyUnpaired};
pub use fleet_waits::{FleetWaits, HostWaits, TooManyWaits};
pub use host_rows::{
    ByteDirection, ConnectionEnd, ConnectionOpener, EndAddress, EndId, MessageRow, NameId,
    PacketRow, SequenceAtStart, SleepingThread, ThreadId, ThreadIdentity, ThreadWait,
};
pub use messages::{ByteGap, GapKind, MatchedMessages, MessageEdge, MessageSide, UnmatchedRows};
pub use numbered_forest::{NumberedForest, SubtreeSums, TreeError};
pub use packet_clock_bounds::clock_points;
pub use requests::{
    CallCause, CallId, Exchange, ExchangeAnswer, HandOver, Incoming, Outgoing, RequestId, Requests,
};
pub use slow_request_costs::{
    RequestCost, RequestCosts, SlowRequestCost, TimeShare, accounts, slow_and_usual,
};
pub use thread_histories::{Effects, ThreadHistories};
pub use wait_purpose::{EngagedTimes, PeriodicWakeups, WaitPurpose, ticks};
