//! How sure a comparison is: medians, their intervals, ratios of two settings, orders of runs.

mod bootstrap;
mod interleave;
mod order;

pub use bootstrap::{Interval, StatsError, ratio_interval};
pub use interleave::{Side, interleave};
pub use order::{MedianInterval, median, median_interval};
