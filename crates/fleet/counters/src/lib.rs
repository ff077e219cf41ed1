//! Counters of processors: what they say of a trace (`luc record --counters`), and of a file that `perf stat` wrote.
//!
//! - [`of_trace`], [`of_file`]: totals with intervals, by process too, and where the cycles went.
//! - [`Counted`]: what a thread counted between two times, for parts of requests.
//!
//! The arithmetic is that of [`luc_counters`]. Rows of traces come in; only files of `perf stat` are read here.

mod counted;
mod error;
mod figures;
mod trace;

pub use counted::{Counted, EventCount, cycles_of_an_instruction, sum};
pub use error::CountersError;
pub use figures::{At, Counters, Cpi, OfProcess, Show, Total, events_of, of_file, of_trace};
pub use trace::Rows;
