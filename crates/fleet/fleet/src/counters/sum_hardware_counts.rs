//! Reads the counters of a trace that `luc record --counters` made.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use luc_counters::{CountMode, CounterReading, CounterRecording, HardwareEvent};
use luc_events::event_kinds::CounterMode;
use luc_events::tables::HardwareCount;
use luc_units::plain;

use super::error::CountersError;

/// Length of a reading: a few turns of the kernel's rotation.
const READING_NS: u64 = 100_000_000;
/// Maximum number of different events: each has a value in each reading. LUC never records more.
const MAX_EVENTS: usize = 256;

/// Counts of the recorded threads.
#[derive(Debug)]
pub(crate) struct HardwareCountSums {
    pub(crate) recording: CounterRecording,
    /// Counts of each process, by its id.
    pub(crate) processes: Vec<ProcessCounts>,
}

/// Counts of a process.
#[derive(Debug)]
pub(crate) struct ProcessCounts {
    pub(crate) id: u32,
    pub(crate) name: String,
    /// Number of its threads that have counted something.
    pub(crate) threads: usize,
    pub(crate) recording: CounterRecording,
}

/// Rows of a trace.
pub(crate) struct CounterRows<'r> {
    pub(crate) start_ns: u64,
    /// Rows in order of time.
    pub(crate) counters: &'r [HardwareCount],
    /// Finds the name of a process.
    pub(crate) name: &'r dyn Fn(u32) -> Option<String>,
}

impl std::fmt::Debug for CounterRows<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows")
            .field("start_ns", &self.start_ns)
            .field("counters", &self.counters.len())
            .finish_non_exhaustive()
    }
}

/// Sums the counts of a trace, or only those of `process`, given by name or id.
///
/// # Errors
/// [`CountersError::NoCounters`].
pub(crate) fn sum_trace(
    path: &Path,
    rows: &CounterRows<'_>,
    process: Option<&str>,
) -> Result<HardwareCountSums, CountersError> {
    let &CounterRows { start_ns, counters, .. } = rows;
    let none = |why: String| CountersError::NoCounters { path: path.to_owned(), why };
    if counters.is_empty() {
        return Err(none(
            "the trace has no counters; record one with `luc record --counters`".to_owned(),
        ));
    }
    let name_of = |id: u32| {
        (rows.name)(id).map(|name| plain(&name)).unwrap_or_else(|| format!("process {id}"))
    };
    let mut by_process: BTreeMap<u32, Vec<&HardwareCount>> = BTreeMap::new();
    for row in counters {
        by_process.entry(row.process.0).or_default().push(row);
    }
    if let Some(wanted) = process {
        by_process.retain(|id, _| wanted == id.to_string() || wanted == name_of(*id));
        if by_process.is_empty() {
            return Err(none(format!(
                "no process {} has counted anything; leave out --process to see which have",
                plain(wanted)
            )));
        }
    }
    let events: BTreeSet<HardwareEvent> =
        by_process.values().flatten().map(|row| event(row)).collect();
    if events.len() > MAX_EVENTS {
        return Err(none(format!(
            "the trace counts {} events, and {MAX_EVENTS} are the most: luc did not record it",
            events.len()
        )));
    }
    let events: Vec<HardwareEvent> = events.into_iter().collect();
    let processes = by_process.iter().map(|(&id, rows)| {
        let threads: BTreeSet<u32> = rows.iter().map(|row| row.thread.0).collect();
        ProcessCounts {
            id,
            name: name_of(id),
            threads: threads.len(),
            recording: sum_rows(&events, start_ns, rows.iter().copied()),
        }
    });
    Ok(HardwareCountSums {
        processes: processes.collect(),
        recording: sum_rows(&events, start_ns, by_process.values().flatten().copied()),
    })
}

fn event(row: &HardwareCount) -> HardwareEvent {
    let mode = match row.mode {
        CounterMode::Total => CountMode::Total,
        CounterMode::User => CountMode::User,
        CounterMode::Kernel => CountMode::Kernel,
    };
    HardwareEvent::new(&row.event, mode)
}

/// Turns rows into readings. Each row counts where it ends.
fn sum_rows<'r>(
    events: &[HardwareEvent],
    start_ns: u64,
    rows: impl Iterator<Item = &'r HardwareCount>,
) -> CounterRecording {
    let mut readings: BTreeMap<u64, Vec<CounterReading>> = BTreeMap::new();
    for row in rows {
        let Ok(place) = events.binary_search(&event(row)) else {
            continue;
        };
        let number = row.at_ns.saturating_sub(start_ns).saturating_sub(1) / READING_NS;
        let of_all =
            readings.entry(number).or_insert_with(|| vec![CounterReading::default(); events.len()]);
        of_all[place] = of_all[place].and(CounterReading {
            value: row.value as f64,
            enabled_ns: row.enabled_ns,
            running_ns: row.running_ns.min(row.enabled_ns),
        });
    }
    let mut recording = CounterRecording::new(events.to_vec());
    for (number, of_all) in readings {
        recording.add(number.saturating_add(1).saturating_mul(READING_NS), &of_all);
    }
    recording
}

#[cfg(test)]
mod tests {
    use luc_events::{Pid, Tgid};

    use super::*;

    fn row(at_ns: u64, thread: u32, event: &str, value: u64, running_ns: u64) -> HardwareCount {
        HardwareCount {
            at_ns,
            thread: Pid(thread),
            process: Tgid(1),
            event: event.to_owned(),
            value,
            enabled_ns: 100,
            running_ns,
            ..HardwareCount::default()
        }
    }

    #[test]
    fn rows_of_all_threads_are_one_reading_where_they_end() {
        let events =
            ["cycles", "instructions"].map(|name| HardwareEvent::new(name, CountMode::Total));
        let start_ns = 5_000;
        let rows = [
            row(start_ns + 1, 1, "cycles", 10, 100),
            row(start_ns + 2, 2, "cycles", 20, 50),
            row(start_ns + READING_NS + 1, 1, "instructions", 7, 200),
            // The clock was set back, or the row is forged.
            row(0, 1, "cycles", 1, 100),
            row(3, 1, "other", 1, 100),
        ];
        let found = sum_rows(&events, start_ns, rows.iter());
        assert_eq!(found.ends_ns(), [READING_NS, 2 * READING_NS]);
        let cycles = found.readings(0);
        assert_eq!((cycles[0].value, cycles[0].enabled_ns, cycles[0].running_ns), (31.0, 300, 250));
        assert_eq!(cycles[1], CounterReading::default());
        assert_eq!(found.readings(1)[1].running_ns, 100);
    }
}
