//! Varmail: a mail server as Filebench's stock personality models it. Each client loops over
//! delete; create, append, fsync, close; open, read, append, fsync, close; open, read, close.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use luc_host::interrupt_flag;
use luc_stats::seeded_random;
use rand::RngExt;
use serde::Serialize;

use super::round_plan::{self, RoundPlan};
use super::timed_run::{self, TimedPlan, TimedReportHead, TimedRunOutcome, TimedWorkload};
use crate::error::BenchError;
use crate::fileset::{Fileset, WantedFile};
use crate::latency::LatencyFigures;
use crate::workers::{Arrivals, ClientFault, RunProgress, WorkloadClient, now_ns};

const DELETE: usize = 0;
/// First operation of the groups that start with create, open to append, and open to read.
const GROUPS: [usize; 3] = [1, 5, 10];

/// Parameters of the workload `varmail`.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct VarmailParameters {
    pub name: &'static str,
    pub clients: usize,
    /// Names in the fileset, in one flat directory.
    pub files: usize,
    /// Mean size of the files made in advance; gamma distributed with shape 1.5.
    pub mean_file_size_bytes: u64,
    /// An append is uniform in [0, this): Filebench's `appendfilerand` quirk, so that its mean is
    /// half of the "mean append size". An append of nothing is an operation too.
    pub append_size_bytes: u64,
    /// Files are read in pieces of this size.
    pub io_size_bytes: u64,
    /// Part of the names that exist at the start, in percent; each by its own draw.
    pub preallocated_percent: u32,
}

/// `varmail.f` as Filebench ships it.
pub const FILEBENCH: VarmailParameters = VarmailParameters {
    name: "filebench",
    clients: 16,
    files: 1000,
    mean_file_size_bytes: 16 << 10,
    append_size_bytes: 16 << 10,
    io_size_bytes: 1 << 20,
    preallocated_percent: 80,
};

/// The LUC paper's: 64 threads, 256 files, 1 KB files, I/O and appends.
pub const LUC: VarmailParameters = VarmailParameters {
    name: "luc",
    clients: 64,
    files: 256,
    mean_file_size_bytes: 1 << 10,
    append_size_bytes: 1 << 10,
    io_size_bytes: 1 << 10,
    preallocated_percent: 80,
};

#[derive(Debug, Clone)]
pub struct Varmail {
    /// Directory, clients, times; its number of clients counts.
    pub timed: TimedPlan,
    pub parameters: VarmailParameters,
    /// A directory per client with its share of the files, as mailboxes are, instead of one that all share.
    pub directory_per_client: bool,
    /// Rounds in which each client goes through its loop once, on a journal at rest, as mail comes in bursts; the
    /// schedule's times then do not count. Absent: each client loops for a time.
    pub rounds: Option<usize>,
    /// Arrivals of the clients in a round; absent: at once. Ignored without rounds.
    pub arrivals: Option<Arrivals>,
}

/// Report of the workload `varmail`.
#[derive(Debug, Clone, Serialize)]
pub struct VarmailReport {
    #[serde(flatten)]
    pub head: TimedReportHead,
    pub parameters: VarmailParameters,
    /// Whether each client had a directory of its own.
    pub directory_per_client: bool,
    /// Rounds of one loop per client; absent: loop after loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<usize>,
    /// Arrivals of the clients in a round; absent: at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    pub flowops: u64,
    /// The same per second: "ops/s" of Filebench's summary.
    pub flowops_per_second: f64,
    pub fsyncs_per_second: f64,
    /// Latency of each operation, without the choice of the file.
    pub operations: Vec<LatencyFigures>,
}

/// Makes the files, runs the workload. `tick` is called about ten times a second during the run.
///
/// # Errors
/// [`BenchError`]: the directory cannot be used, is full, or a client could not start.
pub fn run(plan: &Varmail, tick: &mut dyn FnMut(RunProgress)) -> Result<VarmailReport, BenchError> {
    let outcome = match plan.rounds {
        Some(rounds) => in_rounds(plan, rounds)?,
        None => timed_run::run(plan, &plan.timed, tick)?,
    };
    Ok(report(plan, outcome))
}

fn in_rounds(plan: &Varmail, count: usize) -> Result<TimedRunOutcome, BenchError> {
    let rounds = RoundPlan { count, arrivals: plan.arrivals.as_ref() };
    let prepare = |_: &Vec<MailDirectory>, client: &WorkloadClient<'_>, round: usize| {
        let number = round * plan.timed.schedule.clients + client.index;
        Ok(plan.own(number as u64))
    };
    let body =
        |trees: &Vec<MailDirectory>, client: &WorkloadClient<'_>, own: VarmailClientState| {
            plan.session(trees, client, own).run_once()
        };
    round_plan::run(plan, &plan.timed, rounds, prepare, body)
}

/// The paths and states of the files of one directory.
#[derive(Debug)]
pub(super) struct MailDirectory {
    paths: Vec<PathBuf>,
    set: Fileset,
}

impl MailDirectory {
    /// Makes directory `number`, from 0, of `directories` and its files that exist at the start, and syncs them.
    fn create(
        plan: &Varmail,
        scratch: &Path,
        number: usize,
        directories: usize,
    ) -> Result<Self, BenchError> {
        let parameters = &plan.parameters;
        // Filebench puts even a flat set below `name/00000001`.
        let directory = scratch.join(format!("bigfileset/{:08}", number + 1));
        let failed =
            |error| BenchError::operation(&plan.timed.directory, "making the files", error);
        fs::create_dir_all(&directory).map_err(failed)?;
        let paths: Vec<PathBuf> = (1..=parameters.files.div_ceil(directories))
            .map(|file| directory.join(format!("{file:08}")))
            .collect();
        let set = Fileset::new(paths.len()).map_err(failed)?;
        let mut random = seeded_random::stream(plan.timed.seed, u64::MAX - number as u64);
        for (index, path) in paths.iter().enumerate() {
            if interrupt_flag::interrupted() {
                return Err(BenchError::Interrupted);
            }
            let size =
                seeded_random::gamma(&mut random, parameters.mean_file_size_bytes as f64, 1.5);
            if random.random_range(0..100) < parameters.preallocated_percent {
                let data = seeded_random::bytes(&mut random, size as usize);
                fs::write(path, data).map_err(failed)?;
                set.set_existing(index);
            }
        }
        timed_run::sync_file_system(&directory).map_err(failed)?;
        Ok(Self { paths, set })
    }
}

/// A client's buffers and random stream.
pub(super) struct VarmailClientState {
    random: rand_chacha::ChaCha8Rng,
    append: Vec<u8>,
    read: Vec<u8>,
}

impl TimedWorkload for Varmail {
    const NAME: &'static str = "varmail";
    /// Names as in `varmail.f`.
    const OPERATIONS: &'static [&'static str] = &[
        "deletefile1",
        "createfile2",
        "appendfilerand2",
        "fsyncfile2",
        "closefile2",
        "openfile3",
        "readfile3",
        "appendfilerand3",
        "fsyncfile3",
        "closefile3",
        "openfile4",
        "readfile4",
        "closefile4",
    ];
    /// One directory for all clients, or one for each.
    type Shared = Vec<MailDirectory>;
    type Own = VarmailClientState;

    fn make(&self, scratch: &Path) -> Result<Vec<MailDirectory>, BenchError> {
        let directories = if self.directory_per_client { self.timed.schedule.clients } else { 1 };
        (0..directories)
            .map(|number| MailDirectory::create(self, scratch, number, directories))
            .collect()
    }

    fn prepare(
        &self,
        _: &Vec<MailDirectory>,
        client: &WorkloadClient<'_>,
    ) -> Result<VarmailClientState, ClientFault> {
        Ok(self.own(client.index as u64))
    }

    fn work(
        &self,
        trees: &Vec<MailDirectory>,
        client: &WorkloadClient<'_>,
        own: VarmailClientState,
    ) -> Result<(), ClientFault> {
        let mut session = self.session(trees, client, own);
        self.timed.rounds(client, |_| session.run_once())
    }
}

impl Varmail {
    /// Makes buffers, and the random stream of this number.
    fn own(&self, number: u64) -> VarmailClientState {
        let mut random = seeded_random::stream(self.timed.seed, number);
        VarmailClientState {
            append: seeded_random::bytes(&mut random, self.parameters.append_size_bytes as usize),
            read: vec![0; self.parameters.io_size_bytes.max(1) as usize],
            random,
        }
    }

    fn session<'a>(
        &'a self,
        trees: &'a [MailDirectory],
        client: &'a WorkloadClient<'_>,
        own: VarmailClientState,
    ) -> Session<'a> {
        Session { timed: &self.timed, client, tree: &trees[client.index % trees.len()], own }
    }
}

struct Session<'a> {
    timed: &'a TimedPlan,
    client: &'a WorkloadClient<'a>,
    tree: &'a MailDirectory,
    own: VarmailClientState,
}

impl Session<'_> {
    /// Goes through the loop once, or until the end of the run.
    fn run_once(&mut self) -> Result<(), ClientFault> {
        self.delete()?;
        for group in GROUPS {
            if self.client.running(now_ns()) {
                self.group(group)?;
            }
        }
        Ok(())
    }

    /// Times a call and counts it if it completed in the measured interval.
    fn measure<T>(
        &self,
        operation: usize,
        call: impl FnOnce() -> io::Result<T>,
    ) -> Result<T, ClientFault> {
        let start = now_ns();
        let value = call().map_err(ClientFault::of(operation))?;
        let end = now_ns();
        if self.client.counts(end) {
            self.client.record(operation, end - start);
        }
        Ok(value)
    }

    /// Deletes the next file that nobody has open. Filebench looks at one file only and skips the
    /// operation if that is open; with few files and many clients it then runs out of names.
    fn delete(&self) -> Result<(), ClientFault> {
        let Some(index) = self.tree.set.pick(WantedFile::Closed) else {
            return Ok(());
        };
        self.measure(DELETE, || fs::remove_file(&self.tree.paths[index]))?;
        self.tree.set.deleted(index);
        Ok(())
    }

    /// Runs the group that begins with operation `first`. A group has some of create or open, read, append, fsync,
    /// close. Without a file to open or a name to create, the group is skipped and not counted.
    fn group(&mut self, first: usize) -> Result<(), ClientFault> {
        let create = first == GROUPS[0];
        let wanted = if create { WantedFile::Missing } else { WantedFile::Existing };
        let Some(index) = self.tree.set.pick(wanted) else {
            return Ok(());
        };
        let path = &self.tree.paths[index];
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(create);
        let mut file = self.measure(first, || options.open(path))?;
        self.tree.set.opened(index);
        let mut operation = first + 1;
        if !create {
            let mut buffer = std::mem::take(&mut self.own.read);
            self.measure(operation, || read_whole(&mut file, &mut buffer))?;
            self.own.read = buffer;
            operation += 1;
        }
        if first != GROUPS[2] {
            let length = match self.own.append.len() {
                0 => 0,
                size => self.own.random.random_range(0..size),
            };
            self.measure(operation, || append(&mut file, &self.own.append[..length]))?;
            self.measure(operation + 1, || self.timed.sync(&file))?;
            operation += 2;
        }
        self.measure(operation, || {
            drop(file);
            Ok(())
        })?;
        self.tree.set.closed(index);
        Ok(())
    }
}

fn read_whole(file: &mut File, buffer: &mut [u8]) -> io::Result<()> {
    while file.read(buffer)? > 0 {}
    Ok(())
}

fn append(file: &mut File, data: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::End(0))?;
    file.write_all(data)
}

fn report(plan: &Varmail, outcome: TimedRunOutcome) -> VarmailReport {
    let operations = outcome.latencies(Varmail::OPERATIONS);
    let flowops = operations.iter().map(|figures| figures.count).sum();
    let fsyncs = operations
        .iter()
        .filter(|figures| figures.operation.starts_with("fsync"))
        .map(|figures| figures.count)
        .sum();
    VarmailReport {
        parameters: VarmailParameters { clients: outcome.head.clients, ..plan.parameters },
        directory_per_client: plan.directory_per_client,
        rounds: plan.rounds,
        arrivals: plan.arrivals.clone(),
        flowops,
        flowops_per_second: outcome.per_second(flowops),
        fsyncs_per_second: outcome.per_second(fsyncs),
        operations,
        head: outcome.head,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch_directory::ScratchDirectory;

    #[test]
    fn every_operation_runs_and_nothing_is_left() {
        let parent = ScratchDirectory::create(&std::env::temp_dir()).expect("scratch");
        let plan = Varmail {
            timed: TimedPlan::of_threads(parent.path(), 4, 300_000_000),
            parameters: VarmailParameters { files: 30, ..LUC },
            directory_per_client: false,
            rounds: None,
            arrivals: None,
        };
        let report = run(&plan, &mut |_| {}).expect("run");
        assert_eq!(report.operations.len(), 13);
        assert!(report.operations.iter().all(|figures| figures.count > 0), "{report:?}");
        assert_eq!(report.flowops, report.operations.iter().map(|row| row.count).sum::<u64>());
        assert_eq!(fs::read_dir(parent.path()).expect("list").count(), 0);
    }

    #[test]
    fn in_rounds_every_client_goes_through_its_loop_once() {
        let parent = ScratchDirectory::create(&std::env::temp_dir()).expect("scratch");
        let plan = Varmail {
            timed: TimedPlan::of_threads(parent.path(), 3, 1),
            parameters: VarmailParameters { files: 30, ..LUC },
            directory_per_client: true,
            rounds: Some(2),
            arrivals: Some(Arrivals::Uniform(100_000)),
        };
        let report = run(&plan, &mut |_| {}).expect("run");
        assert!(report.operations.iter().all(|figures| figures.count == 6), "{report:?}");
        assert_eq!(report.rounds, Some(2));
        assert_eq!(report.arrivals, plan.arrivals);
        assert_eq!(fs::read_dir(parent.path()).expect("list").count(), 0);
    }

    #[test]
    fn the_same_seed_makes_the_same_files() {
        let parent = ScratchDirectory::create(&std::env::temp_dir()).expect("scratch");
        let sizes = |name: &str, seed| {
            let directory = parent.path().join(name);
            fs::create_dir(&directory).expect("directory");
            let parameters = VarmailParameters { files: 50, ..FILEBENCH };
            let plan = Varmail {
                timed: TimedPlan { seed, ..TimedPlan::of_threads(&directory, 1, 1) },
                parameters,
                directory_per_client: false,
                rounds: None,
                arrivals: None,
            };
            let tree = MailDirectory::create(&plan, &directory, 0, 1).expect("tree");
            let size = |path: &PathBuf| fs::metadata(path).ok().map(|data| data.len());
            tree.paths.iter().map(size).collect::<Vec<_>>()
        };
        let first = sizes("a", 1);
        assert_eq!(first, sizes("b", 1));
        assert_ne!(first, sizes("c", 2));
        assert!((25..50).contains(&first.iter().flatten().count()), "about 80 % exist");
    }
}
