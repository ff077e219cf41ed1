//! Hardware counters: multiplexed values with intervals, metric formulas, and stacks of a processor's cycles.
//!
//! Everything here is pure: rows and texts come in, figures go out. Nothing is read from a file, and nothing panics.
//!
//! A processor counts few events at a time, for example 6. If more are wanted, the kernel gives the counters to one
//! group of events after the other. It reports for how long each event was wanted, and for how long it was counted.
//!
//! - [`CounterRecording`]: counts, reading by reading. [`perf_stat_file`] makes one of a file that `perf stat` wrote.
//! - [`total()`]: the total count of an event, with an interval. Its module states the assumptions.
//! - [`Formula`]: the language of perf's metrics, evaluated with intervals.
//! - [`cycle_stack`]: the cycles of an instruction on some processors, by the source of their loss.
//!
//! ```
//! use luc_counters::{perf_stat_file, total};
//!
//! let text = "1.0,700,,cycles,250000000,25.00,,\n1.0,400,,instructions,1000000000,100.00,,\n";
//! let replay = perf_stat_file::parse(text)?;
//! let cycles = total(&replay.recording, 0)?;
//! assert_eq!(cycles.value, 700.0);
//! assert_eq!(cycles.running_share, 0.25);
//! // One reading gives no interval.
//! assert_eq!(cycles.half_width, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where the steps are
//!
//! `perf_stat_file` reads files of `perf stat`. `count_estimate` has totals with intervals.
//! `count_estimate/counter_rotation` cuts readings into rotations. `metric_formula` parses perf's metrics, and
//! `metric_formula/dual_number` has the slopes that make intervals. `cycle_stack` splits cycles by the tables in
//! `cycle_stack/processor_formulas`. `docs/how/counters.md` says what is taken for random.

#![warn(missing_docs)]

mod count_estimate;
mod counter_recording;
pub mod cycle_stack;
mod hardware_event;
mod metric_formula;
pub mod perf_stat_file;

pub use count_estimate::{
    CONFIDENCE, CountEstimate, MIN_RUNNING_SHARE, NoInterval, WithheldReason, total,
};
pub use counter_recording::{CounterReading, CounterRecording};
pub use hardware_event::{CountMode, HardwareEvent};
pub use metric_formula::{Formula, FormulaDefinitions, FormulaError};
