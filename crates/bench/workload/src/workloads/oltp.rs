//! Oltp: a database as Filebench's stock personality models it (Oracle 9i under TPC-C): readers,
//! writers that overwrite in place ("shadow" and "dbwr" processes there), and a log writer.
//!
//! Reads and writes are small, at random places of files that exist; each client goes through the
//! files in turn (`opennext`). In Filebench readers and writers are coupled by semaphores: a writer
//! makes a burst of 100 writes for 1000 reads, the log a write for 3200.

mod coupling;
mod parameters;

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use luc_host::interrupt_flag;
use luc_stats::seeded_random;
use rand::RngExt;
use serde::Serialize;

use super::raise_file_limit;
use super::timed_run::{self, TimedPlan, TimedReportHead, TimedRunOutcome, TimedWorkload};
use crate::error::BenchError;
use crate::latency::LatencyFigures;
use crate::workers::{ClientFault, RunProgress, WorkloadClient, now_ns};
use coupling::{ConsumerDemand, SemaphoreCoupling};
pub use parameters::{FILEBENCH, LUC, OltpParameters, SyncMethod};

const READ: usize = 0;
const WRITE: usize = 1;
const SYNC: usize = 2;
const LOG_WRITE: usize = 3;
const LOG_SYNC: usize = 4;
const DATA: WriteOperations = WriteOperations { write: WRITE, sync: SYNC };
const LOG: WriteOperations = WriteOperations { write: LOG_WRITE, sync: LOG_SYNC };

/// Operations as which a write and its synchronization count.
#[derive(Clone, Copy)]
struct WriteOperations {
    write: usize,
    sync: usize,
}

#[derive(Debug, Clone)]
pub struct Oltp {
    /// Directory, clients, times; the number of clients must agree with the parameters.
    pub timed: TimedPlan,
    /// Clients by their work, files, sizes.
    pub parameters: OltpParameters,
}

/// Report of the workload `oltp`.
#[derive(Debug, Clone, Serialize)]
pub struct OltpReport {
    #[serde(flatten)]
    pub head: TimedReportHead,
    pub parameters: OltpParameters,
    /// Reads, writes and log writes completed in the interval; an fsync belongs to its write.
    pub flowops: u64,
    pub flowops_per_second: f64,
    pub log_writes_per_second: f64,
    /// Latency of each operation that ran, without the choice of the file.
    pub operations: Vec<LatencyFigures>,
}

/// Makes the files, runs the workload. `tick` is called about ten times a second during the run.
///
/// # Errors
/// [`BenchError`]: a parameter is out of range, the directory cannot be used or is full, or a client
/// could not start.
pub fn run(plan: &Oltp, tick: &mut dyn FnMut(RunProgress)) -> Result<OltpReport, BenchError> {
    plan.parameters.check()?;
    let outcome = timed_run::run(plan, &plan.timed, tick)?;
    Ok(report(plan, outcome))
}

/// Files and counters that all clients share.
#[derive(Debug)]
pub(super) struct DatabaseFiles {
    files: Vec<File>,
    log: File,
    coupling: Option<SemaphoreCoupling>,
}

impl DatabaseFiles {
    /// Makes the files, syncs them, opens them as the writers do.
    fn create(plan: &Oltp, scratch: &Path) -> Result<Self, BenchError> {
        let parameters = &plan.parameters;
        raise_file_limit(parameters.files)?;
        let failed =
            |error| BenchError::operation(&plan.timed.directory, "making the files", error);
        let mut random = seeded_random::stream(plan.timed.seed, u64::MAX);
        let paths: Vec<_> =
            (1..=parameters.files).map(|file| scratch.join(format!("data{file:05}"))).collect();
        let log = scratch.join("log");
        let sizes = paths.iter().map(|path| (path, parameters.file_size_bytes));
        for (path, size) in sizes.chain([(&log, parameters.log_size_bytes)]) {
            if interrupt_flag::interrupted() {
                return Err(BenchError::Interrupted);
            }
            fs::write(path, seeded_random::bytes(&mut random, size as usize)).map_err(failed)?;
        }
        timed_run::sync_file_system(scratch).map_err(failed)?;
        let open = |path: &Path, durability: SyncMethod| {
            let mut options = OpenOptions::new();
            options.read(true).write(true);
            options.custom_flags(durability.open_flags());
            options.open(path).map_err(failed)
        };
        let coupling = if parameters.coupled {
            Some(SemaphoreCoupling::new(demands(parameters)).map_err(failed)?)
        } else {
            None
        };
        Ok(Self {
            files: paths
                .iter()
                .map(|path| open(path, parameters.write_durability))
                .collect::<Result<_, _>>()?,
            log: open(&log, parameters.log_durability)?,
            coupling,
        })
    }
}

/// Returns Filebench's semaphores: the writers', then the log's.
fn demands(parameters: &OltpParameters) -> Vec<ConsumerDemand> {
    let writer = ConsumerDemand { reads: 1000, ahead: 2000 };
    let log = ConsumerDemand { reads: 3200, ahead: 1000 };
    let mut demands = vec![writer; parameters.writers];
    demands.push(log);
    demands
}

/// A client's buffers and random stream.
pub(super) struct OltpClientState {
    random: rand_chacha::ChaCha8Rng,
    buffer: Vec<u8>,
    memory: Vec<u8>,
}

/// Role of a client, with its number among clients of that role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Reader(usize),
    Writer(usize),
    Log,
}

impl Oltp {
    fn role(&self, client: usize) -> Role {
        let OltpParameters { readers, writers, .. } = self.parameters;
        match client.checked_sub(readers) {
            None => Role::Reader(client),
            Some(writer) if writer < writers => Role::Writer(writer),
            Some(_) => Role::Log,
        }
    }
}

impl TimedWorkload for Oltp {
    const NAME: &'static str = "oltp";
    const OPERATIONS: &'static [&'static str] = &["read", "write", "fsync", "logwrite", "logfsync"];
    type Shared = DatabaseFiles;
    type Own = OltpClientState;

    fn make(&self, scratch: &Path) -> Result<DatabaseFiles, BenchError> {
        DatabaseFiles::create(self, scratch)
    }

    fn prepare(
        &self,
        _: &DatabaseFiles,
        client: &WorkloadClient<'_>,
    ) -> Result<OltpClientState, ClientFault> {
        let mut random = seeded_random::stream(self.timed.seed, client.index as u64);
        let size = match self.role(client.index) {
            Role::Log => self.parameters.log_io_size_bytes,
            Role::Reader(_) | Role::Writer(_) => self.parameters.io_size_bytes,
        };
        Ok(OltpClientState {
            buffer: seeded_random::bytes(&mut random, size as usize),
            memory: vec![0; 4096],
            random,
        })
    }

    fn work(
        &self,
        database: &DatabaseFiles,
        client: &WorkloadClient<'_>,
        own: OltpClientState,
    ) -> Result<(), ClientFault> {
        let mut session = Session { plan: self, client, database, own };
        match self.role(client.index) {
            Role::Reader(number) => session.read(number),
            Role::Writer(number) => session.write(number),
            Role::Log => session.log(),
        }
    }
}

struct Session<'a> {
    plan: &'a Oltp,
    client: &'a WorkloadClient<'a>,
    database: &'a DatabaseFiles,
    own: OltpClientState,
}

impl<'a> Session<'a> {
    fn read(&mut self, number: usize) -> Result<(), ClientFault> {
        let (plan, client) = (self.plan, self.client);
        plan.timed.rounds(client, |round| {
            let offset = self.place();
            let start = now_ns();
            self.file(number, round)
                .read_exact_at(&mut self.own.buffer, offset)
                .map_err(ClientFault::of(READ))?;
            self.count(READ, start, now_ns());
            self.compute(plan.parameters.read_stores);
            if let Some(coupling) = &self.database.coupling {
                coupling.post(client);
            }
            Ok(())
        })
    }

    fn write(&mut self, number: usize) -> Result<(), ClientFault> {
        let (plan, client) = (self.plan, self.client);
        let burst = plan.parameters.burst_writes;
        plan.timed.rounds(client, |round| {
            for step in round * burst..(round + 1) * burst {
                let offset = self.place();
                let durability = plan.parameters.write_durability;
                self.put(self.file(number, step), offset, durability, DATA)?;
            }
            self.compute(plan.parameters.write_stores);
            if let Some(coupling) = &self.database.coupling {
                coupling.take(client, number);
            }
            Ok(())
        })
    }

    fn log(&mut self) -> Result<(), ClientFault> {
        let OltpParameters { writers, log_size_bytes, log_io_size_bytes, log_durability, .. } =
            self.plan.parameters;
        let records = log_size_bytes / log_io_size_bytes;
        self.plan.timed.rounds(self.client, |round| {
            let offset = round % records * log_io_size_bytes;
            self.put(&self.database.log, offset, log_durability, LOG)?;
            if let Some(coupling) = &self.database.coupling {
                coupling.take(self.client, writers);
            }
            Ok(())
        })
    }

    /// Returns the data file of a client's access number `step`: client `number` begins with the file of that number.
    fn file(&self, number: usize, step: u64) -> &'a File {
        let files = &self.database.files;
        &files[(number + step as usize) % files.len()]
    }

    /// Draws a place in a data file. In Filebench the last block is never chosen; here it is.
    fn place(&mut self) -> u64 {
        let OltpParameters { file_size_bytes, io_size_bytes, .. } = self.plan.parameters;
        let blocks = file_size_bytes / io_size_bytes;
        self.own.random.random_range(0..blocks) * io_size_bytes
    }

    fn put(
        &self,
        file: &File,
        offset: u64,
        durability: SyncMethod,
        operations: WriteOperations,
    ) -> Result<(), ClientFault> {
        let WriteOperations { write, sync } = operations;
        let start = now_ns();
        file.write_all_at(&self.own.buffer, offset).map_err(ClientFault::of(write))?;
        let written = now_ns();
        self.count(write, start, written);
        if durability == SyncMethod::Fsync {
            self.plan.timed.sync(file).map_err(ClientFault::of(sync))?;
            self.count(sync, written, now_ns());
        }
        Ok(())
    }

    fn count(&self, operation: usize, start: u64, end: u64) {
        if self.client.counts(end) {
            self.client.record(operation, end - start);
        }
    }

    /// Performs Filebench's `hog`: stores that the compiler may not leave out.
    fn compute(&mut self, stores: u64) {
        let size = self.own.memory.len();
        for store in 0..stores {
            self.own.memory[store as usize % size] = std::hint::black_box(store as u8);
        }
    }
}

fn report(plan: &Oltp, outcome: TimedRunOutcome) -> OltpReport {
    let mut operations = outcome.latencies(Oltp::OPERATIONS);
    let log_writes = operations[LOG_WRITE].count;
    let flowops = operations[READ].count + operations[WRITE].count + log_writes;
    let parameters = plan.parameters;
    operations.retain(|figures| match &*figures.operation {
        "read" => parameters.readers > 0,
        "write" => parameters.writers > 0,
        "fsync" => parameters.writers > 0 && parameters.write_durability == SyncMethod::Fsync,
        "logfsync" => parameters.log_durability == SyncMethod::Fsync,
        _ => true,
    });
    OltpReport {
        parameters,
        flowops,
        flowops_per_second: outcome.per_second(flowops),
        log_writes_per_second: outcome.per_second(log_writes),
        operations,
        head: outcome.head,
    }
}

#[cfg(test)]
mod tests;
