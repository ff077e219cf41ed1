//! Rows per second that the store writes and reads on one core, and bytes per row:
//! `cargo bench -p luc-events`.

use std::time::Instant;

use luc_events::codes::WaitState;
use luc_events::store::{Reader, SEGMENT_ROWS, Writer};
use luc_events::tables::{Trace, Wait};
use luc_events::{Cause, Cgroup, Dev, Pid, StackId, Tgid, Transaction};

const ROWS: u64 = 40 * SEGMENT_ROWS as u64;

/// Waits of 64 threads, 1.2 us apart.
fn wait(number: u64) -> Wait {
    let on_ns = 5_000_000_000_000 + number * 1_237;
    let thread = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as u32;
    Wait {
        thread: Pid(1_000 + thread),
        process: Tgid(1_000 + thread / 8),
        cgroup: Cgroup(42),
        off_ns: on_ns - 70_000 - number % 7_919,
        woken_ns: on_ns - number % 5_003,
        on_ns,
        state: WaitState::Uninterruptible,
        cause: Cause::ALL[thread as usize % Cause::ALL.len()],
        stack: StackId(thread % 30),
        waker: Pid(thread % 3),
        dev: Dev::new(7, 0),
        transaction: Transaction((number / 1_000) as u32),
    }
}

fn main() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let rows: Vec<Wait> = (0..ROWS).map(wait).collect();

    let begin = Instant::now();
    let mut writer = Writer::create(directory.path(), Trace::default()).expect("a new trace");
    for row in rows {
        writer.add(row).expect("a full segment is written");
    }
    writer
        .finish(Trace::default())
        .expect("the trace is finished");
    let seconds = begin.elapsed().as_secs_f64();
    println!("write {:>6.2} million waits/s", ROWS as f64 / seconds / 1e6);

    let bytes: u64 = std::fs::read_dir(directory.path())
        .expect("the trace's directory")
        .map(|entry| {
            entry
                .and_then(|entry| entry.metadata())
                .expect("a file")
                .len()
        })
        .sum();
    println!("size  {:>6.2} bytes/wait", bytes as f64 / ROWS as f64);

    for _ in 0..3 {
        let begin = Instant::now();
        let reader = Reader::open(directory.path()).expect("a trace");
        let mut slept_ns = 0;
        for row in reader.rows::<Wait>().expect("the waits") {
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
