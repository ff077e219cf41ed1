//! Ranking: a probe with a fixed demand for the disk, which uses nothing twice.
//!
//! It is `IO_RANKING(block_size, nops)` of the paper on I/O contention. It reads an existing file once, block by
//! block, with a pause between blocks, so its demand follows from both. Several probes with their own files share
//! nothing but the disk, so they show the cost of sharing it.
//!
//! Each run logs its bytes in each interval. Alone, that is the log from which the paper's static module finds its scan
//! phases. [`probe_files`] makes the files.

pub mod probe_files;

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::{self, BufReader, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::Duration;

use luc_host::interrupt_flag;
use luc_stats::seeded_random;
use rand::seq::SliceRandom as _;
use serde::Serialize;

use crate::error::BenchError;
use crate::latency::{LatencyFigures, OperationLatency};
use crate::workers::now_ns;
use probe_files::{MARK, fill};

/// Smaller blocks go through a buffer of this size, as in C's `fgets`.
const BUFFER_BYTES: usize = 4096;
const MAX_BLOCK_BYTES: u64 = 64 << 20;
/// The longest pause, ns.
const MAX_THINK_NS: u64 = 10_000_000_000;
/// The longest time after which a probe may end, ns.
const MAX_RUN_NS: u64 = 24 * 3_600_000_000_000;
/// Most blocks whose order is drawn: it is kept in memory.
const MAX_RANDOM_BLOCKS: u64 = 1 << 26;
const MAX_INTERVALS: u64 = 1 << 20;

/// Activity of the probe between two blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbePace {
    /// Turns of an empty loop: it keeps its processor.
    Nops(u64),
    /// Sleeps for this time, ns.
    Think(u64),
}

/// Use of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileUse {
    Read,
    /// Overwrites it in place, then fsyncs it.
    Write,
}

/// Request for one run of the probe on one file.
#[derive(Debug, Clone)]
pub struct RankingProbe {
    /// The file: it exists. To be written over it must be one that [`probe_files::create`] made.
    pub file: PathBuf,
    pub block_bytes: u64,
    pub pace: ProbePace,
    pub direction: FileUse,
    /// Seed of the blocks' order, each once; absent: from the file's start to its end.
    pub random: Option<u64>,
    /// Drop the file from the page cache first.
    pub cold: bool,
    /// Interval of the log, ns.
    pub interval_ns: u64,
    /// Ends after this time, ns, if the file has not ended before.
    pub for_ns: Option<u64>,
}

/// Report of the workload `ranking`.
#[derive(Debug, Clone, Serialize)]
pub struct RankingReport {
    pub file: PathBuf,
    pub direction: FileUse,
    pub block_bytes: u64,
    /// Seed of the blocks' order; absent: from start to end.
    pub random: Option<u64>,
    /// Turns of an empty loop after each block.
    pub nops: u64,
    /// Sleep after each block, microseconds.
    pub think_us: f64,
    /// Bytes of the file that were in the page cache at the start; absent where the kernel does not tell this user.
    pub cached_bytes: Option<u64>,
    /// Bytes read or written.
    pub bytes: u64,
    /// Time from the first block to the end; for a writer including its fsync.
    pub measured_s: f64,
    pub mb_per_second: f64,
    /// Interval of the log, seconds.
    pub interval_s: f64,
    pub bytes_per_interval: Vec<u64>,
    /// Latency of a block, from the end of the pause before it.
    pub latency: LatencyFigures,
    /// Whether a signal ended it before its end.
    pub interrupted: bool,
}

/// Runs the probe. `tick` gets the share of the file that is done, after each block.
///
/// # Errors
/// [`BenchError`]: an option is out of range, or a read or write failed. Or the file cannot be used, or may not be
/// overwritten because luc did not make it.
pub fn run(plan: &RankingProbe, tick: &mut dyn FnMut(f64)) -> Result<RankingReport, BenchError> {
    // 1. The file, out of the page cache if that is asked.
    check(plan)?;
    let file = open(plan)?;
    let failed = |what: &'static str| {
        move |reason: io::Error| BenchError::operation(&plan.file, what, reason)
    };
    let size_bytes = file.metadata().map_err(failed("looking at the file"))?.len();
    if plan.cold {
        probe_files::forget(&file).map_err(failed("dropping it from the page cache"))?;
    }
    let cached_bytes = probe_files::cached_bytes(&plan.file, &file, size_bytes);
    // 2. Accounting and pause after each block.
    let mut log = Log::begin(plan.interval_ns);
    let mut paced = |log: &mut Log, bytes: usize| {
        log.add(bytes as u64);
        let of_file = log.bytes as f64 / size_bytes.max(1) as f64;
        let of_time =
            plan.for_ns.map_or(0.0, |for_ns| log.elapsed_ns() as f64 / for_ns.max(1) as f64);
        tick(of_file.max(of_time));
        log.is_interrupted = interrupt_flag::interrupted();
        if log.is_interrupted || of_time >= 1.0 {
            return false;
        }
        pause(plan.pace);
        log.next_block();
        true
    };
    // 3. The blocks, at random or in their order.
    let mut block = vec![0; plan.block_bytes as usize];
    if let Some(seed) = plan.random {
        for number in shuffled(size_bytes.div_ceil(plan.block_bytes), seed)? {
            let position = number * plan.block_bytes;
            let bytes = (size_bytes - position).min(plan.block_bytes) as usize;
            transfer(&file, plan.direction, &mut block[..bytes], position)
                .map_err(failed("reading or writing"))?;
            if !paced(&mut log, bytes) {
                break;
            }
        }
    } else if plan.direction == FileUse::Read {
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, &file);
        loop {
            let bytes = read_block(&mut reader, &mut block).map_err(failed("reading"))?;
            if bytes == 0 || !paced(&mut log, bytes) {
                break;
            }
        }
    } else {
        let mut writer = BufWriter::with_capacity(BUFFER_BYTES, &file);
        while log.bytes < size_bytes {
            let bytes = (size_bytes - log.bytes).min(plan.block_bytes) as usize;
            fill(&mut block[..bytes], log.bytes);
            writer.write_all(&block[..bytes]).map_err(failed("writing"))?;
            if !paced(&mut log, bytes) {
                break;
            }
        }
        writer.flush().map_err(failed("writing"))?;
    }
    if plan.direction == FileUse::Write {
        file.sync_all().map_err(failed("fsync"))?;
    }
    Ok(log.report(plan, cached_bytes))
}

fn check(plan: &RankingProbe) -> Result<(), BenchError> {
    let input = |option: String, reason, advice| BenchError::Input { option, reason, advice };
    if !(1..=MAX_BLOCK_BYTES).contains(&plan.block_bytes) {
        let option = format!("--block {}", plan.block_bytes);
        let advice = "write a size such as 32, 4K or 128K";
        return Err(input(option, "not between 1 byte and 64M", advice));
    }
    if matches!(plan.pace, ProbePace::Think(ns) if ns > MAX_THINK_NS) {
        let advice = "write a time such as 500us or 2ms";
        return Err(input("--think".into(), "longer than 10s", advice));
    }
    if !(1_000_000..=3_600_000_000_000).contains(&plan.interval_ns) {
        let advice = "write a time such as 100ms or 1s";
        return Err(input("--interval".into(), "not between 1ms and 1 hour", advice));
    }
    if plan.for_ns.is_some_and(|ns| !(1..=MAX_RUN_NS).contains(&ns)) {
        let advice = "write a time such as 10s";
        return Err(input("--for".into(), "no time, or longer than a day", advice));
    }
    Ok(())
}

/// Opens the file to be read, or to be written over if it is one of ours.
fn open(plan: &RankingProbe) -> Result<File, BenchError> {
    let failed = |what: &'static str| {
        move |reason: io::Error| BenchError::Operation {
            path: plan.file.clone(),
            what: what.to_owned(),
            reason,
            advice: "make it with luc bench ranking --create SIZE, or give another",
        }
    };
    let writes = plan.direction == FileUse::Write;
    let file =
        OpenOptions::new().read(true).write(writes).open(&plan.file).map_err(failed("opening"))?;
    let about = file.metadata().map_err(failed("looking at it"))?;
    if about.is_dir() {
        return Err(failed("opening")(io::ErrorKind::IsADirectory.into()));
    }
    if writes && !is_ours(&file).map_err(failed("reading"))? {
        return Err(BenchError::Input {
            option: plan.file.display().to_string(),
            reason: "it was not made by luc bench ranking, and --write would destroy what is in it",
            advice: "make one with luc bench ranking --create SIZE FILE",
        });
    }
    Ok(file)
}

fn is_ours(file: &File) -> io::Result<bool> {
    let mut mark = [0; MARK.len()];
    match file.read_exact_at(&mut mark, 0) {
        Ok(()) => Ok(mark == *MARK),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the numbers below `count` in an order that follows from the seed.
fn shuffled(count: u64, seed: u64) -> Result<Vec<u64>, BenchError> {
    if count > MAX_RANDOM_BLOCKS {
        return Err(BenchError::Input {
            option: "--random".to_owned(),
            reason: "the file has more than 2^26 blocks",
            advice: "use a larger --block or a smaller file",
        });
    }
    let mut numbers: Vec<u64> = (0..count).collect();
    numbers.shuffle(&mut seeded_random::stream(seed, 0));
    Ok(numbers)
}

/// Reads or writes a block that is whole.
fn transfer(file: &File, direction: FileUse, block: &mut [u8], position: u64) -> io::Result<()> {
    match direction {
        FileUse::Read => file.read_exact_at(block, position),
        FileUse::Write => {
            fill(block, position);
            file.write_all_at(block, position)
        }
    }
}

/// Reads until the block is full or the file ends.
fn read_block(reader: &mut impl io::Read, block: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < block.len() {
        match reader.read(&mut block[filled..]) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn pause(pace: ProbePace) {
    match pace {
        ProbePace::Nops(count) => {
            for turn in 0..count {
                black_box(turn);
            }
        }
        ProbePace::Think(0) => {}
        ProbePace::Think(ns) => std::thread::sleep(Duration::from_nanos(ns)),
    }
}

/// Bytes by interval, and how long blocks took.
#[derive(Debug)]
struct Log {
    begun_ns: u64,
    /// Completion time of the last block, ns.
    done_ns: u64,
    /// Start time of the current block, ns.
    block_ns: u64,
    interval_ns: u64,
    bytes: u64,
    intervals: Vec<u64>,
    latency: OperationLatency,
    is_interrupted: bool,
}

impl Log {
    fn begin(interval_ns: u64) -> Self {
        let now = now_ns();
        Self {
            begun_ns: now,
            done_ns: now,
            block_ns: now,
            interval_ns,
            bytes: 0,
            intervals: Vec::new(),
            latency: OperationLatency::empty(),
            is_interrupted: false,
        }
    }

    fn add(&mut self, bytes: u64) {
        self.done_ns = now_ns();
        self.latency.add(self.done_ns - self.block_ns);
        self.add_at(bytes, self.elapsed_ns());
    }

    /// Returns the time from the beginning to the end of the last block, ns.
    fn elapsed_ns(&self) -> u64 {
        self.done_ns - self.begun_ns
    }

    /// Notes the time at which a block begins.
    fn next_block(&mut self) {
        self.block_ns = now_ns();
    }

    /// Adds bytes that were complete at this time after the start. Times beyond the longest log count for its last
    /// interval.
    fn add_at(&mut self, bytes: u64, elapsed_ns: u64) {
        self.bytes += bytes;
        let interval = (elapsed_ns / self.interval_ns).min(MAX_INTERVALS - 1) as usize;
        if self.intervals.len() <= interval {
            self.intervals.resize(interval + 1, 0);
        }
        self.intervals[interval] += bytes;
    }

    fn report(self, plan: &RankingProbe, cached_bytes: Option<u64>) -> RankingReport {
        let measured_ns = now_ns() - self.begun_ns;
        let (nops, think_ns) = match plan.pace {
            ProbePace::Nops(nops) => (nops, 0),
            ProbePace::Think(ns) => (0, ns),
        };
        RankingReport {
            file: plan.file.clone(),
            direction: plan.direction,
            block_bytes: plan.block_bytes,
            random: plan.random,
            nops,
            think_us: think_ns as f64 / 1e3,
            cached_bytes,
            bytes: self.bytes,
            measured_s: measured_ns as f64 / 1e9,
            mb_per_second: self.bytes as f64 * 1e3 / measured_ns.max(1) as f64,
            interval_s: self.interval_ns as f64 / 1e9,
            bytes_per_interval: self.intervals,
            latency: self.latency.figures("block"),
            interrupted: self.is_interrupted,
        }
    }
}

#[cfg(test)]
mod tests;
