//! Reports the counters of processors in a trace (`luc record --counters`), or in a file that `perf stat` wrote.
//!
//! - [`counters()`]: totals with intervals, by process, too, and the stacks of cycles.
//! - [`ThreadEvents`]: events that a thread counted between two times, for parts of requests.
//!
//! [`luc_counters`] has the arithmetic. Traces are read elsewhere; only files of `perf stat` are read here.

mod error;
mod figures;
mod thread_events;
mod trace;

pub(crate) use figures::StackAt;
pub(crate) use thread_events::{ThreadEvents, cycles_of_an_instruction, sum};

pub use error::CountersError;
pub use figures::{Counters, Show, events_of};
pub use thread_events::EventCount;

use std::path::Path;

use luc_events::tables::{Counter, Task};

use crate::error::FleetError;
use crate::read::rows;
use crate::task::Tasks;
use figures::{report_file, report_trace};
use luc_fleet_rings::window;
use trace::Rows;

/// Reads the counters of a trace, or of a file that `perf stat` wrote.
///
/// # Errors
/// [`FleetError::Trace`] for a trace that cannot be read; [`FleetError::Counters`].
pub fn counters(path: &Path, show: Show<'_>) -> Result<Counters, FleetError> {
    if !path.is_dir() {
        return Ok(report_file(path, show)?);
    }
    let (start_ns, counters, tasks) = window::read(path, None, |reader| {
        let counters: Vec<Counter> = rows(reader, &["cgroup"])?;
        let tasks: Vec<Task> = rows(reader, &["cgroup"])?;
        Ok::<_, FleetError>((reader.trace().start_ns, counters, tasks))
    })?;
    let tasks = Tasks::new(&tasks);
    let rows = Rows {
        start_ns,
        counters: &counters,
        name: &|id| tasks.name(id, u64::MAX).map(str::to_owned),
    };
    Ok(report_trace(path, &rows, show)?)
}
