//! Many hosts without an engine: how their clocks relate, with guaranteed bounds; which messages connect
//! them, and which request was made for which other.
//!
//! Everything here is pure: rows come in, offsets and edges go out; nothing is read, written or panics.
//!
//! # Clocks
//!
//! Clocks of two hosts are related by the messages between them, which take some time, but never less than none. Each
//! bounds the offset on one side, and the offset's curvature is bounded, since only crystals and their temperature are
//! left once NTP is taken out. So the offset has guaranteed bounds at every moment, and not only an estimate. They are
//! at best half the smallest round trip wide on either side: nobody can do better without trusting that both ways take
//! the same time (Lundelius and Lynch, *An Upper and Lower Bound for Clock Synchronization*, 1984).
//!
//! - [`ClockMap`]: from CLOCK_MONOTONIC to CLOCK_MONOTONIC_RAW, which NTP does not slew.
//! - [`Point`], [`PairPoints`]: messages as bounds; [`Thinner`] keeps the few that bound most.
//! - [`clock_points()`]: the points of packets that hosts have recorded.
//! - [`fit()`], [`PairFit`]: the offset of two hosts at any time, with jumps of a clock found.
//! - [`one_line`]: what others do, one straight line for each pair, for comparison.
//! - [`place`]: many hosts at one moment; [`Fleet`]: at any time; [`Fleet::order`] of two events.
//!
//! ```
//! use luc_fleet_core::{FitOptions, PairPoints, fit};
//!
//! // B is 5 ms ahead; messages take 10 µs there and 12 µs back.
//! let mut points = PairPoints::default();
//! for millisecond in 0..1000 {
//!     let at_ns = millisecond * 1_000_000;
//!     points.add_forward(at_ns, at_ns + 5_000_000 + 10_000)?;
//!     points.add_backward(at_ns + 5_000_000, at_ns + 12_000)?;
//! }
//! let fit = fit(&points, &FitOptions::default())?;
//! let found = fit.at(500_000_000);
//! assert!(found.bounds.contains(5_000_000));
//! // Half the difference of the two ways is what no method can see.
//! assert!((found.offset_ns.expect("both ways") - 5_000_000).abs() <= 1_010);
//! # Ok::<(), luc_fleet_core::ClockError>(())
//! ```
//!
//! # Edges
//!
//! What hosts record of their messages are plain rows: [`End`], [`Message`], [`Packet`], [`Wait`]. What is not certain
//! is in no result, but in a list of what is missing, and why.
//!
//! - [`Connections`]: which two ends are one connection, by the initial sequence numbers that both have seen.
//! - [`Messages`]: which sends fed which receptions, by the bytes of each direction.
//! - [`Requests`]: which thread asked for whom, and for which request another one was made, by evidence.
//! - [`Paths`]: what a request's time went into, by thread and host, to the ns; [`Effects`], [`Running`]: for whom threads
//!   worked meanwhile, and who had the processors.
//! - [`accounts()`]: what the slowest requests' time went into, beside that of usual ones.
//! - [`Why`]: why a thread does not run at a time, from thread to thread.
//! - [`Forest`]: nodes numbered so that all below one is a range; [`Sums`] over any subtree.

mod account;
mod bounds;
mod connections;
mod error;
mod fit;
mod fleet;
mod host;
mod hull;
mod line;
mod mesh;
mod messages;
mod options;
mod packets;
mod path;
mod point;
mod raw;
mod requests;
mod rows;
mod separate;
mod thin;
mod tree;
mod why;

pub use account::{Account, Charge, Portion, Sample, accounts, slow_and_usual};
pub use bounds::Bounds;
pub use connections::{ConnectionPair, Connections, PairEvidence, WhyUnpaired};
pub use error::ClockError;
pub use fit::{Estimate, Evidence, Jump, Knot, PairFit, fit};
pub use fleet::{Event, Fleet, Order, Pair, Placed};
pub use host::HostId;
pub use line::{Line, one_line};
pub use mesh::{PairBounds, Place, place};
pub use messages::{Gap, GapKind, LeftOut, MessageEdge, Messages, Side};
pub use options::FitOptions;
pub use packets::clock_points;
pub use path::{Effects, Link, Part, PartKind, Path, Paths, Running};
pub use point::{MAX_TIME_NS, PairPoints, Point};
pub use raw::{ClockMap, ClockSample};
pub use requests::{Answer, Exchange, HandOver, Incoming, Outgoing, Requests};
pub use rows::{
    AtStart, End, EndId, Message, Opener, Packet, Sleeper, Thread, ThreadId, Wait, Way,
};
pub use thin::{Direction, Thinner};
pub use tree::{Forest, Sums, TreeError};
pub use why::{Chain, ChainLink, Doing, Reason, Why};
