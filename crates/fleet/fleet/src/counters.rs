//! Counters of a trace, or of a file that `perf stat` wrote.

use std::path::Path;

use luc_events::tables::{Counter, Task};
use luc_fleet_counters::{Counters, Rows, Show, of_file, of_trace};

use crate::error::FleetError;
use crate::read::rows;
use crate::task::Tasks;
use luc_fleet_rings::window;

/// Reads the counters of a trace, or of a file that `perf stat` wrote.
///
/// # Errors
/// What [`luc_events::store::Reader`] says of a trace that cannot be read; [`FleetError::Counters`].
pub fn counters(path: &Path, show: Show<'_>) -> Result<Counters, FleetError> {
    if !path.is_dir() {
        return Ok(of_file(path, show)?);
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
    Ok(of_trace(path, &rows, show)?)
}
