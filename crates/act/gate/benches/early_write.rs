//! Compares the early write with the one that would use up errors, `sync_file_range` with its WAIT
//! flags: `cargo bench -p luc-gate -- DIRECTORY`, on the file system to be measured (default: where it is run).
//!
//! Each thread appends records to a file of its own and writes each record early. It takes the two calls in turns, so
//! that both see the same disk.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use luc_gate::writeback_errors::{EarlyWrite, write_early};

const RECORDS: usize = 1000;
const THREADS: [usize; 3] = [1, 4, 16];
const RECORD_BYTES: [usize; 2] = [4096, 65_536];

fn main() {
    // Cargo adds words of its own, such as `--bench`.
    let directory = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let directory = directory.unwrap_or_else(|| ".".to_owned());
    println!("threads  record, bytes  FIEMAP, us  sync_file_range, us  ratio (medians)");
    for threads in THREADS {
        for bytes in RECORD_BYTES {
            let [fiemap, range] = medians_us(Path::new(&directory), threads, bytes);
            println!(
                "{threads:>7}  {bytes:>13}  {fiemap:>10.1}  {range:>19.1}  {:>5.3}",
                fiemap / range
            );
        }
    }
}

/// The medians over all threads: by FIEMAP and by `sync_file_range`, in microseconds.
fn medians_us(directory: &Path, threads: usize, bytes: usize) -> [f64; 2] {
    let together = Barrier::new(threads);
    let mut all = [Vec::new(), Vec::new()];
    thread::scope(|scope| {
        let writers: Vec<_> =
            (0..threads).map(|_| scope.spawn(|| times(directory, bytes, &together))).collect();
        for writer in writers {
            let times = writer.join().expect("a writer's times");
            for (all, own) in all.iter_mut().zip(times) {
                all.extend(own);
            }
        }
    });
    all.map(|mut times: Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64() * 1e6
    })
}

/// Times of one thread's early writes, by FIEMAP and by `sync_file_range`.
fn times(directory: &Path, bytes: usize, together: &Barrier) -> [Vec<Duration>; 2] {
    let mut file = tempfile::tempfile_in(directory).expect("a file in the directory");
    let record = vec![1; bytes];
    let mut times = [Vec::new(), Vec::new()];
    for number in 0..RECORDS {
        file.write_all(&record).expect("the record is written");
        together.wait();
        let begin = Instant::now();
        if number % 2 == 0 {
            assert_eq!(write_early(file.as_raw_fd()), EarlyWrite::Done);
        } else {
            sync_range(&file);
        }
        times[number % 2].push(begin.elapsed());
    }
    times
}

fn sync_range(file: &File) {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: `sync_file_range` takes no pointers.
    let result = unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, flags) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}
