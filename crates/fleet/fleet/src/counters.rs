//! Reports the counters of processors in a trace (`luc record --counters`), or in a file that `perf stat` wrote.
//!
//! - [`counters()`]: totals with intervals, by process, too, and the stacks of cycles.
//! - [`ThreadEvents`]: events that a thread counted between two times, for parts of requests.
//!
//! [`luc_counters`] has the arithmetic. Traces are read elsewhere; only files of `perf stat` are read here.

mod counters_report;
mod error;
mod sum_hardware_counts;
mod thread_events;

pub(crate) use counters_report::IntervalStacks;
pub(crate) use thread_events::{ThreadEvents, cycles_of_an_instruction, sum};

pub use counters_report::{CounterSelection, CountersReport, events_of};
pub use error::CountersError;
pub use thread_events::EventCount;

use std::path::Path;

use luc_events::tables::{HardwareCount, ThreadInfo};

use crate::error::FleetError;
use crate::host_tasks::HostTasks;
use crate::read_hosts::rows;
use counters_report::{report_file, report_trace};
use luc_fleet_rings::time_window;
use sum_hardware_counts::CounterRows;

/// Reads the counters of a trace, or of a file that `perf stat` wrote.
///
/// # Errors
/// [`FleetError::Trace`] for a trace that cannot be read; [`FleetError::Counters`].
pub fn counters(path: &Path, show: CounterSelection<'_>) -> Result<CountersReport, FleetError> {
    if !path.is_dir() {
        return Ok(report_file(path, show)?);
    }
    let (start_ns, counters, tasks) = time_window::read(path, None, |reader| {
        let counters: Vec<HardwareCount> = rows(reader, &["cgroup"])?;
        let tasks: Vec<ThreadInfo> = rows(reader, &["cgroup"])?;
        Ok::<_, FleetError>((reader.trace().start_ns, counters, tasks))
    })?;
    let tasks = HostTasks::new(&tasks);
    let rows = CounterRows {
        start_ns,
        counters: &counters,
        name: &|id| tasks.name(id, u64::MAX).map(str::to_owned),
    };
    Ok(report_trace(path, &rows, show)?)
}
