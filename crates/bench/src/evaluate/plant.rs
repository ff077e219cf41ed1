//! Programs with one known trouble, for part `truth` to find.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rand::Rng as _;

use super::error::EvaluateError;
use super::lab::missing;
use crate::{interrupt, random};

/// Bytes of one write: a page of a small database's log.
const WRITE_BYTES: usize = 2_048;
/// Bytes of a file that is overwritten.
const FILE_BYTES: u64 = 1 << 20;
/// Files that a thread has at a time in the shared directory.
const FILES: u64 = 256;

/// What a program does over and over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Plant {
    /// Each thread appends to a log of its own and calls fsync.
    Log,
    /// Each thread overwrites random places of a file of its own, in place, and never calls fsync.
    Overwrite,
    /// Each thread makes directories in one of its own, each a block of metadata, and never calls fsync.
    Directories,
    /// All threads create and remove files in one directory, and never call fsync.
    Share,
}

/// How.
#[derive(Debug, Clone, clap::Args)]
pub struct Orders {
    /// What to do
    #[arg(value_enum)]
    pub plant: Plant,
    /// A directory on the file system
    pub directory: PathBuf,
    /// Threads
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Pause of a thread after each round, in microseconds
    #[arg(long, default_value_t = 0)]
    pub think_us: u64,
    /// For how long, in seconds
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
}

/// Does it. How many rounds all threads made.
///
/// # Errors
/// [`EvaluateError`]: a file operation failed.
pub fn run(orders: &Orders) -> Result<u64, EvaluateError> {
    let name = format!("{:?}-{}", orders.plant, std::process::id());
    let home = orders.directory.join(name);
    fs::create_dir(&home).map_err(EvaluateError::file("make", &home))?;
    let rounds = AtomicU64::new(0);
    let until = Instant::now() + Duration::from_secs_f64(orders.seconds.clamp(0.0, 3600.0));
    let outcomes: Vec<Result<(), EvaluateError>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..orders.threads)
            .map(|number| {
                let (home, rounds) = (&home, &rounds);
                scope.spawn(move || {
                    let mut worker = Worker::new(orders.plant, home, number as u64)
                        .map_err(EvaluateError::file("prepare", home))?;
                    while Instant::now() < until && !interrupt::interrupted() {
                        worker
                            .round()
                            .map_err(EvaluateError::file("work in", home))?;
                        rounds.fetch_add(1, Ordering::Relaxed);
                        if orders.think_us > 0 {
                            thread::sleep(Duration::from_micros(orders.think_us));
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        let ended = workers.into_iter().map(thread::ScopedJoinHandle::join);
        ended
            .map(|ended| ended.unwrap_or_else(|_| Err(missing("a thread"))))
            .collect()
    });
    let removed = fs::remove_dir_all(&home).map_err(EvaluateError::file("remove", &home));
    outcomes.into_iter().collect::<Result<(), _>>()?;
    removed?;
    Ok(rounds.into_inner())
}

/// One thread.
struct Worker {
    plant: Plant,
    home: PathBuf,
    file: Option<File>,
    number: u64,
    round: u64,
    random: rand_chacha::ChaCha8Rng,
}

impl Worker {
    fn new(plant: Plant, home: &Path, number: u64) -> std::io::Result<Self> {
        let mut worker = Self {
            plant,
            home: home.to_owned(),
            file: None,
            number,
            round: 0,
            random: random::stream(1, number),
        };
        match plant {
            Plant::Log | Plant::Overwrite => {
                let path = home.join(number.to_string());
                let file = OpenOptions::new()
                    .create(true)
                    .truncate(false)
                    .write(true)
                    .open(path)?;
                if plant == Plant::Overwrite {
                    file.write_all_at(&vec![1; FILE_BYTES as usize], 0)?;
                    file.sync_all()?;
                }
                worker.file = Some(file);
            }
            Plant::Directories => {
                worker.home = home.join(number.to_string());
                fs::create_dir(&worker.home)?;
            }
            Plant::Share => {}
        }
        Ok(worker)
    }

    fn round(&mut self) -> std::io::Result<()> {
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
            (Plant::Directories, _) => fs::create_dir(self.home.join(number.to_string())),
            _ => {
                let name = |number: u64| self.home.join(format!("{}-{number}", self.number));
                File::create(name(number))?;
                match number.checked_sub(FILES) {
                    Some(old) => fs::remove_file(name(old)),
                    None => Ok(()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plant_works_and_leaves_nothing() {
        let directory = std::env::temp_dir().join(format!("luc-plant-{}", std::process::id()));
        fs::create_dir(&directory).expect("a directory");
        for plant in [
            Plant::Log,
            Plant::Overwrite,
            Plant::Directories,
            Plant::Share,
        ] {
            let orders = Orders {
                plant,
                directory: directory.clone(),
                threads: 2,
                think_us: 0,
                seconds: 0.05,
            };
            assert!(run(&orders).expect("works") > 0, "{plant:?}");
            assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
        }
        fs::remove_dir(&directory).expect("empty");
    }
}
