//! Overwrite: each client writes into a file of its own that exists already, and synchronizes it
//! after each write. The write changes nothing but data, so the synchronization needs a flush of the
//! disk and no commit. PostgreSQL and InnoDB use their logs so: they make them once and overwrite them.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use luc_host::interrupt_flag;
use luc_stats::seeded_random;
use rand::RngExt as _;
use serde::Serialize;

use super::timed_run::{
    self, RecordWrite, SyncCall, TimedPlan, TimedReportHead, TimedRunOutcome, TimedWorkload,
    checked_record,
};
use crate::error::BenchError;
use crate::latency::LatencyFigures;
use crate::workers::{ClientFault, RunProgress, WorkloadClient};

const WRITE: usize = 0;
const SYNC: usize = 1;

/// Order of a client's writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OverwriteOrder {
    /// Behind the last write, and from the beginning again at the end.
    Consecutive,
    /// Random multiples of the record size.
    Random,
}

#[derive(Debug, Clone)]
pub struct Overwrite {
    pub timed: TimedPlan,
    pub file_size_bytes: u64,
    pub record_size_bytes: u64,
    pub offsets: OverwriteOrder,
    pub call: SyncCall,
}

/// Report of the workload `overwrite`.
#[derive(Debug, Clone, Serialize)]
pub struct OverwriteReport {
    #[serde(flatten)]
    pub head: TimedReportHead,
    pub file_size_bytes: u64,
    pub record_size_bytes: u64,
    pub offsets: OverwriteOrder,
    pub call: SyncCall,
    pub syncs: u64,
    pub syncs_per_second: f64,
    /// Latencies of write and synchronization.
    pub operations: Vec<LatencyFigures>,
}

/// Makes the files, runs the workload. `tick` is called about ten times a second during the run.
///
/// # Errors
/// [`BenchError`]: a size is out of range, the directory cannot be used or is full, or a client
/// could not start.
pub fn run(
    plan: &Overwrite,
    tick: &mut dyn FnMut(RunProgress),
) -> Result<OverwriteReport, BenchError> {
    checked_record(plan.record_size_bytes, "--file-size", plan.file_size_bytes)?;
    let outcome = timed_run::run(plan, &plan.timed, tick)?;
    Ok(report(plan, outcome))
}

/// A client's file, contents and next place.
pub(super) struct OverwriteClient {
    file: File,
    record: Vec<u8>,
    random: rand_chacha::ChaCha8Rng,
}

fn path_of(scratch: &Path, client: usize) -> PathBuf {
    scratch.join(format!("log{client:04}"))
}

impl Overwrite {
    /// Writes a client's file as a whole, so that no write of the run changes its extents.
    fn make_file(&self, path: &Path, random: &mut rand_chacha::ChaCha8Rng) -> std::io::Result<()> {
        const PIECE_BYTES: u64 = 1 << 20;
        let mut file = File::create(path)?;
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, self.file_size_bytes)
            .or_else(|error| match error {
                // Not every file system has fallocate; writing allocates as well.
                rustix::io::Errno::OPNOTSUPP => Ok(()),
                error => Err(error),
            })?;
        let piece = seeded_random::bytes(random, self.file_size_bytes.min(PIECE_BYTES) as usize);
        let mut left = self.file_size_bytes as usize;
        while left > 0 {
            let length = left.min(piece.len());
            file.write_all(&piece[..length])?;
            left -= length;
        }
        file.sync_all()
    }
}

impl TimedWorkload for Overwrite {
    const NAME: &'static str = "overwrite";
    const OPERATIONS: &'static [&'static str] = &["write", "sync"];
    /// The directory of the files.
    type Shared = PathBuf;
    type Own = OverwriteClient;

    fn make(&self, scratch: &Path) -> Result<PathBuf, BenchError> {
        let failed =
            |error| BenchError::operation(&self.timed.directory, "making the files", error);
        let mut random = seeded_random::stream(self.timed.seed, u64::MAX);
        for client in 0..self.timed.schedule.clients {
            if interrupt_flag::interrupted() {
                return Err(BenchError::Interrupted);
            }
            self.make_file(&path_of(scratch, client), &mut random).map_err(failed)?;
        }
        timed_run::sync_file_system(scratch).map_err(failed)?;
        Ok(scratch.to_path_buf())
    }

    fn prepare(
        &self,
        scratch: &PathBuf,
        client: &WorkloadClient<'_>,
    ) -> Result<OverwriteClient, ClientFault> {
        let mut random = seeded_random::stream(self.timed.seed, client.index as u64);
        let file = OpenOptions::new()
            .write(true)
            .open(path_of(scratch, client.index))
            .map_err(ClientFault::of(WRITE))?;
        Ok(OverwriteClient {
            file,
            record: seeded_random::bytes(&mut random, self.record_size_bytes as usize),
            random,
        })
    }

    fn work(
        &self,
        _: &PathBuf,
        client: &WorkloadClient<'_>,
        mut own: OverwriteClient,
    ) -> Result<(), ClientFault> {
        let records = self.file_size_bytes / self.record_size_bytes;
        self.timed.rounds(client, |step| {
            let record = match self.offsets {
                OverwriteOrder::Consecutive => step % records,
                OverwriteOrder::Random => own.random.random_range(0..records),
            };
            let write = RecordWrite {
                file: &own.file,
                at_bytes: record * self.record_size_bytes,
                record: &own.record,
                call: self.call,
            };
            self.timed.write_durably(client, &write, WRITE)
        })
    }
}

fn report(plan: &Overwrite, outcome: TimedRunOutcome) -> OverwriteReport {
    let operations = outcome.latencies(&["write", plan.call.name()]);
    let syncs = operations[SYNC].count;
    OverwriteReport {
        file_size_bytes: plan.file_size_bytes,
        record_size_bytes: plan.record_size_bytes,
        offsets: plan.offsets,
        call: plan.call,
        syncs,
        syncs_per_second: outcome.per_second(syncs),
        operations,
        head: outcome.head,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch_directory::ScratchDirectory;

    fn plan(directory: &Path, offsets: OverwriteOrder) -> Overwrite {
        Overwrite {
            timed: TimedPlan::of_threads(directory, 3, 50_000_000),
            file_size_bytes: 40_000,
            record_size_bytes: 8192,
            offsets,
            call: SyncCall::Fdatasync,
        }
    }

    #[test]
    fn every_write_is_synchronized_and_nothing_is_left() {
        for offsets in [OverwriteOrder::Consecutive, OverwriteOrder::Random] {
            let parent = ScratchDirectory::create(&std::env::temp_dir()).expect("scratch");
            let report = run(&plan(parent.path(), offsets), &mut |_| {}).expect("run");
            assert!(report.syncs > 0);
            assert_eq!(report.operations.len(), 2);
            assert_eq!(report.operations[0].count, report.syncs);
            assert_eq!(report.operations[1].operation, "fdatasync");
            assert_eq!(std::fs::read_dir(parent.path()).expect("list").count(), 0, "{offsets:?}");
        }
    }

    #[test]
    fn a_file_is_written_as_a_whole_before() {
        let parent = ScratchDirectory::create(&std::env::temp_dir()).expect("scratch");
        let plan = Overwrite {
            file_size_bytes: (1 << 20) + 1000,
            ..plan(parent.path(), OverwriteOrder::Random)
        };
        let path = parent.path().join("file");
        plan.make_file(&path, &mut seeded_random::stream(1, 0)).expect("made");
        let contents = std::fs::read(&path).expect("contents");
        assert_eq!(contents.len() as u64, plan.file_size_bytes);
        assert!(contents.chunks(512).all(|sector| sector.iter().any(|&byte| byte != 0)));
    }

    #[test]
    fn a_record_fits_into_the_file() {
        for record_size_bytes in [0, 40_001] {
            let plan =
                Overwrite { record_size_bytes, ..plan(Path::new("/tmp"), OverwriteOrder::Random) };
            let error = run(&plan, &mut |_| {}).expect_err("refused");
            assert!(error.to_string().contains("--record-size"), "{error}");
        }
    }
}
