//! Shared by the tests of the store.

use std::fs;
use std::path::Path;

use luc_events::event_kinds::WaitState;
use luc_events::store::{SCHEMA_VERSION, TraceReader};
use luc_events::tables::{OffCpuWait, TableRow, TraceDescription};
use luc_events::{Cgroup, Dev, Pid, StackId, Tgid, Transaction, WaitCause};

/// A trace's description that ends at this time.
pub(crate) fn description(end_ns: u64) -> TraceDescription {
    TraceDescription {
        at_ns: end_ns,
        schema_version: SCHEMA_VERSION,
        host: "tester".to_owned(),
        kernel: "6.18.0".to_owned(),
        processors: 2,
        mode: "events".to_owned(),
        end_ns,
        ..TraceDescription::default()
    }
}

/// A wait that ends at this time, its other columns depending on it.
pub(crate) fn wait_row(on_ns: u64) -> OffCpuWait {
    let number = on_ns as u32;
    OffCpuWait {
        thread: Pid(1_000 + number % 64),
        process: Tgid(1_000 + number % 8),
        cgroup: Cgroup(42),
        off_ns: on_ns.saturating_sub(10 + on_ns % 7),
        woken_ns: on_ns.saturating_sub(on_ns % 5),
        on_ns,
        state: WaitState::Uninterruptible,
        cause: WaitCause::ALL[number as usize % WaitCause::ALL.len()],
        stack: StackId(number % 30),
        waker: Pid(number % 3),
        dev: Dev::new(7, number % 2),
        transaction: Transaction(number / 10),
        processor: 2,
    }
}

/// Reads all rows of a table.
pub(crate) fn read<T: TableRow>(directory: &Path) -> Vec<T> {
    let reader = TraceReader::open(directory).unwrap();
    reader.rows::<T>().unwrap().collect::<Result<_, _>>().unwrap()
}

/// Returns the names of a table's files.
pub(crate) fn part_files(directory: &Path, table: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(&format!("{table}-")))
        .collect();
    names.sort();
    names
}
