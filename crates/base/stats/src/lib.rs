//! Statistics of comparisons: medians, quantiles, intervals, ratios, orders of runs, stopping rules and correlations.
//! Also finds the best of several candidates, and rates tasks that share a resource.
//!
//! ```
//! use luc_stats::{median, median_interval};
//!
//! let rates = [98.0, 101.0, 99.0, 103.0, 100.0, 97.0, 102.0];
//! assert_eq!(median(&rates), Some(100.0));
//! let interval = median_interval(&rates).expect("seven figures are enough for 95 %");
//! assert!(interval.low <= 100.0 && 100.0 <= interval.high);
//! ```

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
mod proportion;
mod quantile;
pub mod random;
mod ranks;
pub mod selection;
pub mod simulated;
mod stopping;
mod student;
mod throughput;
mod warmup;

pub use association::{Association, associations};
pub use bootstrap::{Interval, StatsError, ratio_interval};
pub use components::{Components, components};
pub use interleave::{Side, interleave};
pub use interpolated::{interpolated_interval, leaves_some_out};
pub use logs::{MeanInterval, geometric_interval};
pub use order::{MedianInterval, median, median_interval};
pub use paired::paired_ratios;
pub use proportion::share_interval;
pub use quantile::quantile;
pub use ranks::spearman;
pub use stopping::{Goal, MIN_REPEATS, Verdict, relative_half_width};
pub use student::student;
pub use throughput::{TaskTimes, Together, WeightedSpeedup, together, worst_against};
pub use warmup::warm_up;
