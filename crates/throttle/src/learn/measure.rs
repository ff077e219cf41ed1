//! Measures what a disk costs to share: the probe alone and beside others, on cold files of its own.
//!
//! It is the paper's CMP stacking (section 3.1): 1 to 8 probes of equal demand, each in a cgroup and on a file of its
//! own, the files far apart. What each loses is a point of the degradation curves, and of these follow Vector Points.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use luc_control::throttle::forecast::fit::{self, Seen};
use luc_control::throttle::sample::Class;
use luc_control::throttle::vector_points::{Degradation, vector_points};
use luc_events::Dev;
use luc_host::interrupt::interrupted;
use luc_host::mountinfo;

use super::profile::{Curve, Identity, Learned};
use crate::advise::watch::Watch;
use crate::engine::EngineOptions;
use crate::run::{RunOptions, Task, run_watched};
use crate::{PolicyChoice, ThrottleError};

/// How many probes run together.
const STACKED: [u32; 4] = [1, 2, 4, 8];
/// Blocks and pauses of the probe: bytes, ns. The first is the fastest.
const DEMANDS: [(u64, u64); 3] = [(128 << 10, 0), (32 << 10, 1_000_000), (4 << 10, 1_000_000)];
/// Blocks that are read at random.
const RANDOM_BYTES: u64 = 64 << 10;
/// Cells: each demand with each number, reads at random alone, and each file alone.
const CELLS: u64 = (STACKED.len() * DEMANDS.len()) as u64 + 1 + MOST as u64;
/// The most at a time, each with a file of its own.
const MOST: u32 = 8;
/// Files are no larger than this, and together no more than this part of what is free.
const LARGEST_BYTES: u64 = 64 << 20;
const SMALLEST_BYTES: u64 = 8 << 20;
const FREE_PART: u64 = 4;
/// The shortest time of a cell, ns.
const SHORTEST_NS: u64 = 250_000_000;
/// The loss up to which a demand is borne, and demands that are as good as equal.
const ALLOWED_LOSS: f64 = 0.1;
const MERGE_WITHIN: f64 = 0.15;
const PREFIX: &str = ".luc-throttle-learn-";

/// What will be measured, and what that takes.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Name of the disk.
    pub disk: String,
    /// The folder in which files are made.
    pub folder: PathBuf,
    /// Files that are made, and removed afterwards.
    pub files: u64,
    /// Bytes of each.
    pub file_bytes: u64,
    /// Time of all measurements, ns, without that for making the files.
    pub measuring_ns: u64,
    identity: Identity,
}

impl Plan {
    /// Whether this machine lets disks be watched.
    ///
    /// # Errors
    ///
    /// [`ThrottleError::Probe`], [`ThrottleError::Disk`].
    pub fn check(&self) -> Result<(), ThrottleError> {
        Watch::open(std::slice::from_ref(&self.disk), Box::new(|_| {})).map(|_| ())
    }

    /// For a device with a mounted file system, or any path; `for_ns` is what measuring may take.
    ///
    /// # Errors
    ///
    /// [`ThrottleError::Learn`]: there is no disk, no file system or not enough space.
    pub fn new(target: &Path, for_ns: u64) -> Result<Self, ThrottleError> {
        let refused = |reason: String| ThrottleError::Learn {
            what: target.display().to_string(),
            reason,
        };
        if for_ns < CELLS * SHORTEST_NS {
            return Err(ThrottleError::Learn {
                what: "--for".to_owned(),
                reason: format!(
                    "{CELLS} measurements need {} s at least",
                    (CELLS * SHORTEST_NS).div_ceil(1_000_000_000)
                ),
            });
        }
        let folder = folder_of(target).map_err(refused)?;
        let about = fs::metadata(&folder).map_err(|error| refused(error.to_string()))?;
        let (disk, dev) = disk_of(about.dev()).map_err(refused)?;
        let identity = Identity::of(dev).map_err(|error| refused(error.to_string()))?;
        let space = rustix::fs::statvfs(&folder).map_err(|error| refused(error.to_string()))?;
        let files = u64::from(MOST);
        let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
        let file_bytes = (free_bytes / FREE_PART / files).min(LARGEST_BYTES) >> 20 << 20;
        if file_bytes < SMALLEST_BYTES {
            return Err(refused(format!(
                "{} MiB are free and {} are needed: give a path on the same disk with more space",
                free_bytes >> 20,
                (files * FREE_PART * SMALLEST_BYTES) >> 20
            )));
        }
        Ok(Self {
            disk,
            folder,
            files,
            file_bytes,
            measuring_ns: for_ns,
            identity,
        })
    }

    /// Bytes that are read at most.
    #[must_use]
    pub fn read_bytes(&self) -> u64 {
        let stacked: u32 = STACKED.iter().sum();
        (u64::from(stacked) * DEMANDS.len() as u64 + 1 + self.files) * self.file_bytes
    }

    /// Bytes that are written.
    #[must_use]
    pub fn written_bytes(&self) -> u64 {
        self.files * self.file_bytes
    }
}

/// The folder on the file system of a path, or on that of a device.
fn folder_of(target: &Path) -> Result<PathBuf, String> {
    use std::os::unix::fs::FileTypeExt as _;
    let target = fs::canonicalize(target)
        .map_err(|error| format!("{error}; give a disk such as /dev/sda, or a folder on it"))?;
    let about = fs::metadata(&target).map_err(|error| error.to_string())?;
    if about.is_dir() {
        return Ok(target);
    }
    if !about.file_type().is_block_device() {
        return target
            .parent()
            .map(Path::to_owned)
            .ok_or_else(|| "it is in no folder".to_owned());
    }
    let mounts = mountinfo::mounts().map_err(|error| error.to_string())?;
    let wanted = disk_of(about.rdev())?.1;
    let is_on = |mount: &&mountinfo::Mount| {
        let about = fs::metadata(&mount.mount_point);
        about.is_ok_and(|about| disk_of(about.dev()).is_ok_and(|(_, dev)| dev == wanted))
    };
    mounts
        .iter()
        .find(is_on)
        .map(|mount| mount.mount_point.clone())
        .ok_or_else(|| {
            "no file system of it is mounted: mount one, as files are needed to measure".to_owned()
        })
}

/// The disk of a device number, which may be a partition's: its name and number.
fn disk_of(number: u64) -> Result<(String, Dev), String> {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let no_disk = || {
        format!(
            "its file system ({major}:{minor}) is on no disk of its own: give a path on a disk's"
        )
    };
    let folder =
        fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).map_err(|_| no_disk())?;
    let disk = if folder.join("partition").exists() {
        folder.parent().ok_or_else(no_disk)?
    } else {
        &folder
    };
    let dev = fs::read_to_string(disk.join("dev")).map_err(|_| no_disk())?;
    let (major, minor) = dev.trim().split_once(':').ok_or_else(no_disk)?;
    let number = |text: &str| text.parse().map_err(|_| no_disk());
    let name = disk.file_name().ok_or_else(no_disk)?;
    Ok((
        name.to_string_lossy().into_owned(),
        Dev::new(number(major)?, number(minor)?),
    ))
}

/// A folder that goes away with this value, whatever is in it.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // Nobody is left who could be told.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Measures; `tick` is told the part that is done, 0 to 1. The caller has installed [`luc_host::interrupt`]. The files
/// are removed in any case.
///
/// # Errors
///
/// [`ThrottleError::Interrupted`], and what cannot be done here.
pub fn measure(
    luc: &Path,
    plan: &Plan,
    tick: &mut dyn FnMut(f64),
) -> Result<Learned, ThrottleError> {
    let folder = plan.folder.join(format!("{PREFIX}{}", std::process::id()));
    fs::create_dir(&folder).map_err(ThrottleError::process(format!(
        "cannot make {}",
        folder.display()
    )))?;
    let folder = Folder(folder);
    let files: Vec<PathBuf> = (0..plan.files)
        .map(|number| folder.0.join(number.to_string()))
        .collect();
    make(luc, plan, &files)?;
    let mut stand = Stand {
        luc,
        plan,
        files: &files,
        cells: 0,
        tick,
    };
    let random = stand.cell(1, RANDOM_BYTES, 0, true)?;
    let rates = stand.rates()?;
    let mut fastest: Vec<Vec<Seen>> = Vec::new();
    let mut curves = Vec::new();
    for (block_bytes, think_ns) in DEMANDS {
        let mut alone = None;
        for tasks in STACKED {
            let seen = stand.cell(tasks, block_bytes, think_ns, false)?;
            let each = rate(&seen) / f64::from(tasks);
            let demand_bytes_per_s = *alone.get_or_insert(each);
            curves.push(Curve {
                tasks,
                block_bytes,
                think_ns,
                demand_bytes_per_s,
                loss: (1.0 - each / demand_bytes_per_s).clamp(0.0, 1.0),
            });
            if think_ns == 0 {
                fastest.push(seen);
            }
        }
    }
    learned(plan, &random, &fastest, (curves, rates)).ok_or_else(|| ThrottleError::Learn {
        what: plan.disk.clone(),
        reason: "nothing was read from it: is the file system on another disk?".to_owned(),
    })
}

/// Makes the files, far apart where the file system can say where they are.
fn make(luc: &Path, plan: &Plan, files: &[PathBuf]) -> Result<(), ThrottleError> {
    for spread in [true, false] {
        let mut command = Command::new(luc);
        command.args(["bench", "ranking", "--create", &plan.file_bytes.to_string()]);
        command.args(spread.then_some("--spread")).args(files);
        let output = command
            .stdin(Stdio::null())
            .output()
            .map_err(ThrottleError::process("cannot make files"))?;
        if interrupted() {
            return Err(ThrottleError::Interrupted);
        }
        if output.status.success() {
            return Ok(());
        }
        if !spread {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(ThrottleError::Learn {
                what: plan.folder.display().to_string(),
                reason: said.lines().last().unwrap_or("no files").to_owned(),
            });
        }
    }
    Ok(())
}

/// Where cells are run.
struct Stand<'a> {
    luc: &'a Path,
    plan: &'a Plan,
    files: &'a [PathBuf],
    cells: u64,
    tick: &'a mut dyn FnMut(f64),
}

impl Stand<'_> {
    /// Runs so many probes together for a cell's time; what each did.
    fn cell(
        &mut self,
        tasks: u32,
        block_bytes: u64,
        think_ns: u64,
        is_random: bool,
    ) -> Result<Vec<Seen>, ThrottleError> {
        // The farthest apart: all of them for 8, the first and the last for 2.
        let last = self.files.len() - 1;
        let steps = (tasks as usize - 1).max(1);
        let files: Vec<&Path> = (0..tasks as usize)
            .map(|number| self.files[number * last / steps].as_path())
            .collect();
        Ok(self
            .run(&files, (block_bytes, think_ns), is_random)?
            .seen_on_first())
    }

    /// What a stream moves at each file's place: its sector, and bytes per second; ascending.
    fn rates(&mut self) -> Result<Vec<(f64, f64)>, ThrottleError> {
        let mut rates = Vec::new();
        for file in self.files {
            let watch = self.run(&[file], DEMANDS[0], false)?;
            let seen = watch.seen_on_first();
            let rate = seen.first().and_then(fit::sequential_rate);
            rates.extend(watch.sector_of_first().zip(rate));
        }
        rates.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(rates)
    }

    /// Runs a probe on each file for a cell's time.
    fn run(
        &mut self,
        files: &[&Path],
        (block_bytes, think_ns): (u64, u64),
        is_random: bool,
    ) -> Result<Watch<'static>, ThrottleError> {
        let commands: Vec<Task> = files
            .iter()
            .map(|file| {
                let mut words = format!(
                    "exec {} bench ranking {} --cold --block {block_bytes}",
                    quoted(self.luc),
                    quoted(file)
                );
                if think_ns > 0 {
                    words += &format!(" --think {think_ns}ns");
                }
                if is_random {
                    words += " --random 1";
                }
                Task {
                    command: format!("{words} 2>/dev/null").into(),
                    class: Class::Ignored,
                    size_bytes: None,
                }
            })
            .collect();
        let options = RunOptions {
            tell_threads_apart: false,
            engine: EngineOptions {
                policy: PolicyChoice::Off,
                disks: vec![self.plan.disk.clone()],
                max_frozen_ns: 0,
            },
            settings: Vec::new(),
            discard_output: true,
        };
        let mut watch = Watch::open(&options.engine.disks, Box::new(|_| {}))?;
        watch.only_for(self.plan.measuring_ns / CELLS);
        let outcome = run_watched(self.luc, &commands, &options, Some(&mut watch))?;
        if outcome.interrupted {
            return Err(ThrottleError::Interrupted);
        }
        self.cells += 1;
        (self.tick)(self.cells as f64 / CELLS as f64);
        Ok(watch)
    }
}

/// A path for the shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', "'\\''"))
}

/// What tasks moved together, bytes per second.
fn rate(seen: &[Seen]) -> f64 {
    let rate = |seen: &Seen| seen.bytes_read as f64 * 1e9 / seen.took_ns.max(1) as f64;
    seen.iter().map(rate).sum()
}

/// From what was seen to what is kept; `None` where nothing was.
fn learned(
    plan: &Plan,
    random: &[Seen],
    fastest: &[Vec<Seen>],
    (curves, rates): (Vec<Curve>, Vec<(f64, f64)>),
) -> Option<Learned> {
    let alone = fastest.first()?;
    let peak_bytes_per_s = rates.iter().map(|(_, rate)| *rate).reduce(f64::max)?;
    let mut learned = Learned::new(plan.identity.clone());
    learned.peak_bytes_per_s = peak_bytes_per_s;
    // The places of what runs together are those of the rates, on average.
    let mean_bytes_per_s = rates.iter().map(|(_, rate)| *rate).sum::<f64>() / rates.len() as f64;
    learned.rates = rates;
    learned.speed_ups = STACKED
        .into_iter()
        .zip(fastest)
        .skip(1)
        .map(|(tasks, seen)| (tasks as usize, rate(seen) / rate(alone)))
        .filter(|(_, worth)| worth.is_finite() && *worth > 0.0)
        .collect();
    let still = luc_control::throttle::forecast::DiskModel {
        bytes_per_s: mean_bytes_per_s,
        near_ns: 0,
        far_ns: 0,
        request_ns: 0,
        slots: 1,
    };
    // What is not seen is no cost.
    let together: Vec<Seen> = fastest.iter().skip(1).flatten().copied().collect();
    let far_ns = fit::disk(&together, Some(&still), false).far_ns;
    let near_ns = jump_ns(random, mean_bytes_per_s).unwrap_or(far_ns);
    learned.switch_ns = far_ns;
    learned.random_ns = near_ns;
    let points: Vec<Degradation> = curves
        .iter()
        .filter(|curve| curve.demand_bytes_per_s.is_finite())
        .map(|curve| Degradation {
            tasks: curve.tasks,
            demand_bytes_per_s: curve.demand_bytes_per_s,
            loss: curve.loss,
        })
        .collect();
    learned.vector_points = vector_points(&points, ALLOWED_LOSS, MERGE_WITHIN)
        .iter()
        .map(|point| (point.tasks, point.demand_bytes_per_s))
        .collect();
    learned.curves = curves;
    Some(learned)
}

/// What each read at random took longer than its bytes alone, ns.
fn jump_ns(random: &[Seen], bytes_per_s: f64) -> Option<u64> {
    let sum = |of: fn(&Seen) -> u64| random.iter().map(of).sum::<u64>();
    let jumps = sum(|seen| seen.reads.saturating_sub(seen.continued));
    let moving_ns = sum(|seen| seen.bytes_read) as f64 * 1e9 / bytes_per_s;
    (jumps > 0)
        .then(|| ((sum(|seen| seen.read_ns) as f64 - moving_ns) / jumps as f64).max(0.0) as u64)
}
