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

mod bootstrap_ratio;
#[cfg(test)]
mod coverage_tests;
mod interpolated_median;
mod log_ratio_mean;
mod order_statistics;
mod paired_ratios;
mod principal_components;
mod quantile;
mod rank_correlation;
mod ranks;
mod run_order;
pub mod seeded_random;
pub mod selection;
mod share_interval;
pub mod simulated_coverage;
mod stopping_rule;
mod student_t;
mod warmup;
mod weighted_speedup;

pub use bootstrap_ratio::{
    BootstrapInterval, MIN_RUNS_OF_INTERVAL, RatioEnds, Resampled, StatsError, ratio_ends,
    ratio_interval, resampled_ratios,
};
pub use interpolated_median::{interpolated_interval, leaves_some_out};
pub use log_ratio_mean::{MeanInterval, geometric_interval};
pub use order_statistics::{MedianInterval, median, median_interval};
pub use paired_ratios::paired_ratios;
pub use principal_components::{PrincipalComponents, components};
pub use quantile::quantile;
pub use rank_correlation::{RankCorrelation, associations};
pub use ranks::spearman;
pub use run_order::{RunSide, interleave};
pub use share_interval::share_interval;
pub use stopping_rule::{MIN_REPEATS, StoppingRule, StoppingVerdict, relative_half_width};
pub use student_t::student;
pub use warmup::warm_up;
pub use weighted_speedup::{SharedRunFigures, TaskTimes, WeightedSpeedup, together, worst_against};
