//! Rows per second that the store writes and reads on one core, and bytes per row:
//! `cargo bench -p luc-events`.

use std::time::Instant;

use luc_events::event_kinds::{MessageDirection, WaitState};
use luc_events::store::{SEGMENT_ROWS, TraceReader, TraceWriter};
use luc_events::tables::{ConnectionMessage, OffCpuWait, TableRow, TraceDescription};
use luc_events::{
    Cgroup, ConnectionId, Dev, Pid, StackId, Tgid, TraceEvent, Transaction, WaitCause,
};

const ROWS: u64 = 40 * SEGMENT_ROWS as u64;

/// Waits of 64 threads, 1.2 us apart.
fn wait(number: u64) -> OffCpuWait {
    let on_ns = 5_000_000_000_000 + number * 1_237;
    let thread = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as u32;
    OffCpuWait {
        thread: Pid(1_000 + thread),
        process: Tgid(1_000 + thread / 8),
        cgroup: Cgroup(42),
        off_ns: on_ns - 70_000 - number % 7_919,
        woken_ns: on_ns - number % 5_003,
        on_ns,
        state: WaitState::Uninterruptible,
        cause: WaitCause::ALL[thread as usize % WaitCause::ALL.len()],
        stack: StackId(thread % 30),
        waker: Pid(thread % 3),
        dev: Dev::new(7, 0),
        transaction: Transaction((number / 1_000) as u32),
        processor: 1 + (number % 2) as u32,
    }
}

/// Requests of 100 bytes and answers of 5 on 50 connections of a server with one thread; two processors hand over 32
/// rows at a time.
fn message(number: u64) -> ConnectionMessage {
    let (batch, place) = (number / 32, number % 32);
    let turn = batch / 2 * 32 + place;
    let connection = (turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % 50;
    let is_client = batch % 2 == 1;
    let direction = if is_client ^ (place % 2 == 0) {
        MessageDirection::Received
    } else {
        MessageDirection::Sent
    };
    let bytes = if is_client ^ (place % 2 == 1) { 5 } else { 100 };
    ConnectionMessage {
        at_ns: 5_000_000_000_000 + turn * 2_474 + batch % 2 * 613,
        thread: Pid(if is_client { 2_300 } else { 1_200 }),
        process: Tgid(if is_client { 2_300 } else { 1_200 }),
        connection: ConnectionId(connection as u32 * 2 + u32::from(is_client)),
        direction,
        first_byte: turn / 100 * bytes,
        bytes,
    }
}

/// Writes all rows, and prints how fast that was.
fn write<T: TableRow + Into<TraceEvent>>(rows: Vec<T>, name: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");

    let begin = Instant::now();
    let mut writer =
        TraceWriter::create(directory.path(), TraceDescription::default()).expect("a new trace");
    for row in rows {
        writer.add(row).expect("a full segment is written");
    }
    writer.finish(TraceDescription::default()).expect("the trace is finished");
    let seconds = begin.elapsed().as_secs_f64();
    println!("write {:>6.2} million {name}/s", ROWS as f64 / seconds / 1e6);

    let bytes: u64 = std::fs::read_dir(directory.path())
        .expect("the trace's directory")
        .map(|entry| entry.and_then(|entry| entry.metadata()).expect("a file").len())
        .sum();
    println!("size  {:>6.2} bytes each", bytes as f64 / ROWS as f64);
    directory
}

fn main() {
    for _ in 0..3 {
        write((0..ROWS).map(message).collect(), "messages");
    }
    let directory = write((0..ROWS).map(wait).collect(), "waits");

    for _ in 0..3 {
        let begin = Instant::now();
        let reader = TraceReader::open(directory.path()).expect("a trace");
        let mut slept_ns = 0;
        for row in reader.rows::<OffCpuWait>().expect("the waits") {
            let row = row.expect("an undamaged row");
            slept_ns += row.on_ns - row.off_ns;
        }
        let seconds = begin.elapsed().as_secs_f64();
        println!(
            "read  {:>6.2} million waits/s ({slept_ns} ns slept)",
            ROWS as f64 / seconds / 1e6
        );
    }
}
