//! Counters from files that `perf stat` wrote: lines of `-x,` with or without `-I`, or of `-j`.
//!
//! perf prints scaled values. The scaling is undone here, so that a reading is the count while there was a counter.
//! perf prints the time with a counter in ns. It also prints the share of that in the time in which the event was
//! wanted. Rows of several processors, sockets or threads are added up. A row may only say that nothing was counted.
//! Its event was then wanted for as long as the others of that reading. On processors with several kinds of cores an
//! event is wanted while the task is on cores of its kind.

mod csv;
mod hybrid_cores;
mod json;
mod perf_row;
mod write_perf_stat;

use std::collections::BTreeMap;

use hybrid_cores::CoreKinds;
use perf_row::{PerfRow, RowCount, scarce_reading};

use super::counter_recording::{CounterReading, CounterRecording};
use super::hardware_event::HardwareEvent;

pub use write_perf_stat::{PerfOutputFormat, write};

/// Maximum number of empty cells in the table of events and readings, without those allowed per row: a hostile file
/// must not make a large table of few rows.
const MAX_EMPTY_CELLS: usize = 4096;
/// Number of empty cells that each row allows in addition.
const EMPTY_CELLS_PER_ROW: usize = 4;

/// An error in a file of `perf stat`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// A line that is not perf's.
    #[error(
        "line {line}: {what}; it must be a line of `perf stat -I 100 -x,` or `perf stat -I 100 -j`"
    )]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// The error in words.
        what: String,
    },
    /// The file has no counters.
    #[error("it has no counters; write it by `perf stat -I 100 -x, -e EVENTS -o FILE COMMAND`")]
    Empty,
    /// Readings have different events.
    #[error("line {line}: nearly every reading has other events; give the file of one `perf stat`")]
    Ragged {
        /// Number of the line where that is noticed.
        line: usize,
    },
}

/// Content of a file.
#[derive(Debug, Clone, Default)]
pub struct PerfStatFile {
    /// Recording of the counters.
    pub recording: CounterRecording,
    /// Units of the recording's events; empty for plain counts.
    pub units: Vec<String>,
    /// Events that the machine does not have, as perf names them.
    pub not_supported: Vec<String>,
}

/// Reads a file of `perf stat`.
///
/// # Errors
/// The first line that is not perf's, and files without counters.
pub fn parse(text: &str) -> Result<PerfStatFile, ReplayError> {
    let mut table = Table::default();
    let mut separator = None;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        let number = at + 1;
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let row = if line.starts_with('{') {
            json::row(line)
        } else {
            let separator = *separator.get_or_insert_with(|| csv::separator(line));
            csv::row(line, separator)
        };
        let row = row.map_err(|what| ReplayError::Line { line: number, what })?;
        if let Some(row) = row {
            table.add(row, number)?;
        }
    }
    table.finish(text.lines().count())
}

/// Rows by reading and event.
#[derive(Default)]
struct Table {
    events: Vec<HardwareEvent>,
    places: BTreeMap<String, usize>,
    units: Vec<String>,
    supported: Vec<bool>,
    ends_ns: Vec<u64>,
    /// Cells by reading, then by event; the last ones may be missing.
    readings: Vec<Vec<Cell>>,
    rows: usize,
    cells: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    reading: CounterReading,
    /// Whether a row had no counter and no time in which the event was wanted.
    is_waiting: bool,
    /// Scaled counts in a share that perf rounds to 0, and their time.
    scarce: Option<(f64, u64)>,
}

impl Table {
    fn add(&mut self, row: PerfRow, line: usize) -> Result<(), ReplayError> {
        let end_ns = row.end_ns.unwrap_or(0);
        match self.ends_ns.last() {
            Some(&last) if last == end_ns => {}
            Some(&last) if last > end_ns => {
                return Err(ReplayError::Line {
                    line,
                    what: "its time is before that of the line above, so another recording begins here"
                        .to_owned(),
                });
            }
            _ => {
                self.ends_ns.push(end_ns);
                self.readings.push(Vec::new());
            }
        }
        let event = HardwareEvent::of_perf(&row.event);
        let place = match self.places.get(&event.to_string()) {
            Some(&place) => place,
            None => {
                self.places.insert(event.to_string(), self.events.len());
                self.events.push(event);
                self.units.push(row.unit);
                self.supported.push(false);
                self.events.len() - 1
            }
        };
        self.rows += 1;
        let Some(cells) = self.readings.last_mut() else {
            return Ok(());
        };
        if cells.len() <= place {
            self.cells += place + 1 - cells.len();
            if self.cells > MAX_EMPTY_CELLS + EMPTY_CELLS_PER_ROW * self.rows {
                return Err(ReplayError::Ragged { line });
            }
            cells.resize(place + 1, Cell::default());
        }
        let cell = &mut cells[place];
        match row.counted {
            RowCount::NotSupported => return Ok(()),
            RowCount::Never => cell.is_waiting = true,
            RowCount::Scarcely { value, running_ns } => {
                // Of several processors the shares are alike.
                let (sum, time_ns) = cell.scarce.unwrap_or_default();
                cell.scarce = Some((sum + value, time_ns.saturating_add(running_ns)));
            }
            RowCount::Reading(reading) => cell.reading = cell.reading.and(reading),
        }
        self.supported[place] = true;
        Ok(())
    }

    /// Makes a recording of the table. Its text has `lines` lines.
    fn finish(self, lines: usize) -> Result<PerfStatFile, ReplayError> {
        if self.events.is_empty() {
            return Err(ReplayError::Empty);
        }
        // The last events may be missing in each reading.
        if self.events.len().saturating_mul(self.ends_ns.len())
            > MAX_EMPTY_CELLS + EMPTY_CELLS_PER_ROW * self.rows
        {
            return Err(ReplayError::Ragged { line: lines });
        }
        let (events, missing): (Vec<usize>, Vec<usize>) =
            (0..self.events.len()).partition(|&place| self.supported[place]);
        let named = events.iter().map(|&place| self.events[place].clone());
        let mut recording = CounterRecording::new(named.collect());
        let kinds = CoreKinds::of(recording.events());
        for (end_ns, cells) in self.ends_ns.iter().zip(&self.readings) {
            let longest = cells.iter().map(|cell| cell.reading.enabled_ns).max();
            let longest_ns = longest.unwrap_or(0);
            let readings = events.iter().map(|&place| {
                let cell = cells.get(place).copied().unwrap_or_default();
                let waited_ns = if cell.is_waiting { longest_ns } else { 0 };
                let scarce = cell
                    .scarce
                    .map(|(value, running_ns)| scarce_reading(value, running_ns, longest_ns));
                let reading = cell.reading.and(scarce.unwrap_or_default());
                CounterReading { enabled_ns: reading.enabled_ns.max(waited_ns), ..reading }
            });
            let mut readings: Vec<CounterReading> = readings.collect();
            kinds.apply(&mut readings);
            recording.add(*end_ns, &readings);
        }
        Ok(PerfStatFile {
            recording,
            units: events.iter().map(|&place| self.units[place].clone()).collect(),
            not_supported: missing.iter().map(|&place| self.events[place].to_string()).collect(),
        })
    }
}
