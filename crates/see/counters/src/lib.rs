//! Hardware counters: values that were multiplexed, with intervals; metric formulas; where a processor's cycles go.
//!
//! Everything here is pure: rows and texts come in, figures go out; nothing is read from a file, and nothing panics.
//!
//! A processor counts few events at a time, 6 say. Where more are wanted the kernel gives the counters to one group of
//! events after the other, and says for how long each was wanted and for how long it was counted.
//!
//! - [`Recording`]: counts, reading by reading. [`replay`] makes one of a file that `perf stat` wrote.
//! - [`total()`]: how often an event happened in all, with an interval. Its module says what is taken for random.
//! - [`Formula`]: the language of perf's metrics, evaluated with intervals.
//! - [`stack`]: the cycles of an instruction by what they were lost to, of some processors.
//!
//! ```
//! use luc_counters::{replay, total};
//!
//! let text = "1.0,700,,cycles,250000000,25.00,,\n1.0,400,,instructions,1000000000,100.00,,\n";
//! let replay = replay::parse(text)?;
//! let cycles = total(&replay.recording, 0)?;
//! assert_eq!(cycles.value, 700.0);
//! assert_eq!(cycles.running_share, 0.25);
//! // One reading says nothing of how far that may be off.
//! assert_eq!(cycles.half_width, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(missing_docs)]

mod estimate;
mod event;
mod formula;
mod recording;
pub mod replay;
pub mod stack;

pub use estimate::{CONFIDENCE, Estimate, LEAST_SHARE, NoInterval, Withheld, total};
pub use event::{Event, Mode};
pub use formula::{Definitions, Formula, FormulaError};
pub use recording::{Reading, Recording};
