//! How sure a comparison is: medians, their intervals, ratios of two settings, orders of runs, when to stop, and what
//! goes along with a figure.

mod association;
mod bootstrap;
mod components;
#[cfg(test)]
mod coverage;
mod interleave;
mod interpolated;
mod logs;
mod order;
mod paired;
mod ranks;
pub(crate) mod simulated;
mod stopping;
mod warmup;

pub use association::{Association, associations};
pub use bootstrap::{Interval, StatsError, ratio_interval};
pub use components::{Components, components};
pub use interleave::{Side, interleave};
pub use interpolated::interpolated_interval;
pub(crate) use interpolated::leaves_some_out;
pub(crate) use logs::geometric_interval;
pub use order::{MedianInterval, median, median_interval};
pub use paired::paired_ratios;
pub use ranks::spearman;
pub use stopping::{FEWEST, Goal, Verdict, relative_half_width};
pub use warmup::warm_up;
