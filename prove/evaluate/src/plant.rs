//! Programs with one known trouble each, for part `truth` to find.

pub mod scene;
mod worker;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use luc_host::interrupt_flag;

use crate::error::EvaluateError;
use crate::harness::missing;
pub use worker::Plant;
use worker::Worker;

/// Options of `luc-evaluate plant`.
#[derive(Debug, Clone, clap::Args)]
pub struct PlantArguments {
    /// Work to do
    #[arg(value_enum)]
    pub plant: Plant,
    /// Directory on the file system; what is made in it stays
    pub directory: PathBuf,
    /// Threads
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Pause of a thread after each round, in microseconds
    #[arg(long, default_value_t = 0)]
    pub think_us: u64,
    /// Duration after preparation, in seconds
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Name of the threads
    #[arg(long)]
    pub name: Option<String>,
    /// Cgroup (version 2; a directory) to work in
    #[arg(long)]
    pub cgroup: Option<PathBuf>,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Runs the plant, and returns the number of rounds of all threads.
///
/// # Errors
/// [`EvaluateError`]: a file operation failed.
pub fn run(arguments: &PlantArguments) -> Result<u64, EvaluateError> {
    if let Some(cgroup) = &arguments.cgroup {
        let processes = cgroup.join("cgroup.procs");
        fs::write(&processes, std::process::id().to_string())
            .map_err(EvaluateError::file("enter", &processes))?;
    }
    if let Some(name) =
        arguments.name.as_ref().and_then(|name| std::ffi::CString::new(name.as_str()).ok())
    {
        // Threads take the name over from the thread that starts them.
        let named = rustix::thread::set_name(&name);
        named.map_err(|error| EvaluateError::file("name", "a thread")(error.into()))?;
    }
    let name = format!("{:?}-{}", arguments.plant, std::process::id());
    let home = arguments.directory.join(name);
    fs::create_dir(&home).map_err(EvaluateError::file("make", &home))?;
    let rounds = AtomicU64::new(0);
    let length = Duration::from_secs_f64(arguments.seconds.clamp(0.0, 3600.0));
    let outcomes: Vec<Result<(), EvaluateError>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..arguments.threads)
            .map(|number| {
                let (home, rounds) = (&home, &rounds);
                scope.spawn(move || {
                    let mut worker =
                        Worker::new(arguments.plant, home, number as u64, arguments.seed)
                            .map_err(EvaluateError::file("prepare", home))?;
                    let until = Instant::now() + length;
                    while !interrupt_flag::interrupted() {
                        worker.round().map_err(EvaluateError::file("work in", home))?;
                        rounds.fetch_add(1, Ordering::Relaxed);
                        if Instant::now() >= until {
                            break;
                        }
                        if arguments.think_us > 0 {
                            thread::sleep(Duration::from_micros(arguments.think_us));
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        let ended = workers.into_iter().map(thread::ScopedJoinHandle::join);
        ended.map(|ended| ended.unwrap_or_else(|_| Err(missing("a thread")))).collect()
    });
    outcomes.into_iter().collect::<Result<(), _>>()?;
    Ok(rounds.into_inner())
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn every_plant_works() {
        let directory = tempfile::tempdir().expect("a directory");
        for plant in Plant::value_variants() {
            let arguments = PlantArguments {
                plant: *plant,
                directory: directory.path().to_owned(),
                threads: 2,
                think_us: 0,
                seconds: 0.05,
                name: None,
                cgroup: None,
                seed: 1,
            };
            assert!(run(&arguments).expect("works") > 0, "{plant:?}");
        }
    }
}
