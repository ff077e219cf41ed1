//! How the clocks of many hosts relate, with guaranteed bounds, by the messages between them.
//!
//! Everything here is pure: messages' times come in, offsets go out; nothing is read, written or panics.
//!
//! Clocks of two hosts are related by the messages between them, which take some time, but never less than none. Each
//! bounds the offset on one side, and the offset's curvature is bounded, since only crystals and their temperature are
//! left once NTP is taken out. So the offset has guaranteed bounds at every moment, and not only an estimate. They are
//! at best half the smallest round trip wide on either side: nobody can do better without trusting that both ways take
//! the same time (Lundelius and Lynch, *An Upper and Lower Bound for Clock Synchronization*, 1984).
//!
//! - [`ClockMap`]: from CLOCK_MONOTONIC to CLOCK_MONOTONIC_RAW, which NTP does not slew.
//! - [`OffsetPoint`], [`PairPoints`]: messages as bounds; [`MessageThinner`] keeps the few that bound most.
//! - [`fit()`], [`PairFit`]: the offset of two hosts at any time, with jumps of a clock found.
//! - [`one_line`]: what others do, one straight line for each pair, for comparison.
//! - [`place`]: many hosts at one moment; [`FleetClocks`]: at any time; [`FleetClocks::order`] of two events.
//!
//! ```
//! use luc_fleet_clocks::{FitOptions, PairPoints, fit};
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
//! # Ok::<(), luc_fleet_clocks::ClockError>(())
//! ```
//!
//! # Where the steps are
//!
//! 1. `monotonic_raw_map` maps CLOCK_MONOTONIC to CLOCK_MONOTONIC_RAW by `monotonic_raw_map/rate_stretches`, which meet
//!    where NTP changed the rate. `monotonic_raw_map/rate_changes` says how far off that may be.
//! 2. `offset_points` makes a bound of each message; `message_thinner` keeps the best of each 4 ms.
//! 3. `pair_fit` cuts the messages of a pair into buckets (`pair_fit/message_bucket`), each with the `lower_hull` of
//!    both directions.
//! 4. In `pair_fit`, `fit_segment` has the knots of a time without jumps. `separating_lines` finds the lines between
//!    the hulls that bound them; `tighten_bounds` bounds each knot by all others; `find_jump` finds where a clock
//!    jumped.
//! 5. `mesh` places many hosts at one moment: by shortest paths over the bounds, then by least squares inside them.
//! 6. `fleet_clocks` does that at all knots; `fleet_clocks/event_order` says in which order two events were.
//!
//! `offset_line` is the rival: one straight line for a pair. `docs/evaluation/fleet-clocks.md` compares both with the
//! truth.
#![warn(missing_docs)]

mod bounds;
mod error;
mod fit_options;
mod fleet_clocks;
mod host_ids;
mod lower_hull;
mod mesh;
mod message_thinner;
mod monotonic_raw_map;
mod offset_line;
mod offset_points;
mod pair_fit;
mod separating_lines;

pub use bounds::Bounds;
pub use error::ClockError;
pub use fit_options::FitOptions;
pub use fleet_clocks::{EventOrder, FleetClocks, HostEvent, HostPair, ReferenceTime};
pub use host_ids::{HostId, HostIndex};
pub use mesh::{HostOffset, PairBounds, place};
pub use message_thinner::{MessageThinner, PairDirection};
pub use monotonic_raw_map::{ClockMap, ClockSample};
pub use offset_line::{OffsetLine, one_line};
pub use offset_points::{MAX_TIME_NS, OffsetPoint, PairPoints};
pub use pair_fit::{ClockJump, FitKnot, OffsetEstimate, OffsetEvidence, PairFit, fit};
