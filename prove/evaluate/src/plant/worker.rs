//! A thread of a program with a known trouble, and one round of its work.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use luc_stats::seeded_random;
use rand::Rng as _;
use rustix::fs::{Advice, IFlags, fadvise, ioctl_getflags, ioctl_setflags};

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Plant {
    /// Each thread appends to a log of its own and calls fsync
    Log,
    /// Each thread overwrites random places of a file of its own, in place, and never calls fsync
    Overwrite,
    /// Each thread makes directories in one of its own, each a block of metadata, and never calls fsync
    Directories,
    /// All threads create and remove files in one directory whose changes are synchronous, as of a mail spool
    Spool,
    /// Each thread makes 100 MB dirty and has the kernel begin to write it, and never calls fsync
    Dump,
    /// Each thread writes without end over the same 100 MB, and never calls fsync
    Stream,
    /// Each thread cuts a file that is not in memory, so that a handle is open while the disk reads
    Cut,
    /// Each thread computes, and writes a line to a log now and then
    Compute,
}

/// Bytes of one write: a page of a small database's log.
const WRITE_BYTES: usize = 2_048;
/// Size of a file that is overwritten.
const FILE_BYTES: u64 = 1 << 20;
/// Number of files that a thread has in the spool at a time.
const SPOOL_FILES: u64 = 16;
/// Bytes of a dump's single writes, and of all of them.
const CHUNK_BYTES: u64 = 1 << 20;
const DUMP_BYTES: u64 = 100 << 20;
/// Size of a file that is cut down.
const CUT_FILE_BYTES: u64 = 16 << 20;
/// Bytes that a cut takes from a file. They are no multiple of a block, so that the kernel must clear the rest of the
/// last one.
const CUT_BYTES: u64 = 4_099;
/// Steps of a computation of some milliseconds, and computations for each line of the log.
const COMPUTE_STEPS: u64 = 2_000_000;
const ROUNDS_PER_LINE: u64 = 20;

pub(super) struct Worker {
    plant: Plant,
    home: PathBuf,
    file: Option<File>,
    number: u64,
    round: u64,
    random: rand_chacha::ChaCha8Rng,
}

impl Worker {
    /// Prepares a thread's files in `home`, which all threads share.
    pub(super) fn new(plant: Plant, home: &Path, number: u64, seed: u64) -> io::Result<Self> {
        let mut worker = Self {
            plant,
            home: home.to_owned(),
            file: None,
            number,
            round: 0,
            random: seeded_random::stream(seed, number),
        };
        let path = home.join(number.to_string());
        let open = || {
            let mut options = OpenOptions::new();
            options.create(true).truncate(true).write(true).open(&path)
        };
        match plant {
            Plant::Log | Plant::Dump | Plant::Stream | Plant::Compute => {
                worker.file = Some(open()?);
            }
            Plant::Overwrite => {
                let file = open()?;
                file.write_all_at(&vec![1; FILE_BYTES as usize], 0)?;
                file.sync_all()?;
                worker.file = Some(file);
            }
            Plant::Cut => {
                let file = open()?;
                fill(&file, CUT_FILE_BYTES)?;
                file.sync_all()?;
                worker.file = Some(file);
            }
            Plant::Directories => {
                worker.home = path;
                fs::create_dir(&worker.home)?;
            }
            Plant::Spool => synchronous(home)?,
        }
        Ok(worker)
    }

    pub(super) fn round(&mut self) -> io::Result<()> {
        let number = self.round;
        self.round += 1;
        match (self.plant, &self.file) {
            (Plant::Log, Some(file)) => {
                file.write_all_at(&[2; WRITE_BYTES], number * WRITE_BYTES as u64)?;
                file.sync_all()
            }
            (Plant::Overwrite, Some(file)) => {
                let places = FILE_BYTES / WRITE_BYTES as u64;
                let place = self.random.next_u64() % places;
                file.write_all_at(&[3; WRITE_BYTES], place * WRITE_BYTES as u64)
            }
            (Plant::Dump, Some(file)) => {
                file.set_len(0)?;
                fill(file, DUMP_BYTES)?;
                begin_to_write(file)
            }
            (Plant::Stream, Some(file)) => {
                let place = number * CHUNK_BYTES % DUMP_BYTES;
                file.write_all_at(&[4; CHUNK_BYTES as usize], place)
            }
            (Plant::Cut, Some(file)) => {
                let length = file.metadata()?.len().checked_sub(CUT_BYTES);
                let Some(length) = length else {
                    fill(file, CUT_FILE_BYTES)?;
                    return file.sync_all();
                };
                begin_to_write(file)?;
                file.set_len(length)
            }
            (Plant::Compute, Some(file)) => {
                let sum = (0..COMPUTE_STEPS)
                    .fold(number, |sum, step| (sum ^ step).wrapping_mul(0x9e37_79b9));
                if std::hint::black_box(sum) != 0 && number.is_multiple_of(ROUNDS_PER_LINE) {
                    file.write_all_at(&[5; 80], number / ROUNDS_PER_LINE * 80)?;
                }
                Ok(())
            }
            (Plant::Directories, _) => fs::create_dir(self.home.join(number.to_string())),
            _ => {
                let name = |number: u64| self.home.join(format!("{}-{number}", self.number));
                File::create(name(number))?;
                match number.checked_sub(SPOOL_FILES) {
                    Some(old) => fs::remove_file(name(old)),
                    None => Ok(()),
                }
            }
        }
    }
}

/// Writes `bytes`, a multiple of a chunk.
fn fill(file: &File, bytes: u64) -> io::Result<()> {
    let chunk = vec![6; CHUNK_BYTES as usize];
    (0..bytes / CHUNK_BYTES).try_for_each(|at| file.write_all_at(&chunk, at * CHUNK_BYTES))
}

/// Begins writeback of dirty pages, and drops clean ones: `generic_fadvise` in the kernel.
fn begin_to_write(file: &File) -> io::Result<()> {
    let all: Option<NonZeroU64> = None;
    Ok(fadvise(file, 0, all, Advice::DontNeed)?)
}

/// Makes changes of a directory synchronous, if its file system supports that.
fn synchronous(directory: &Path) -> io::Result<()> {
    let directory = File::open(directory)?;
    match ioctl_getflags(&directory)
        .and_then(|flags| ioctl_setflags(&directory, flags | IFlags::DIRSYNC))
    {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::NOTTY | rustix::io::Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
