//! The keeper: a process that outlives the sweep and clears up after it, whatever ended it.
//!
//! It sleeps on a pipe from the sweep. Programs of the sweep run in its process group, so that it finds them all; it
//! holds the sweep's locks, so that the same command given again, and any other sweep on its devices, waits until the
//! house is clear.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde::{Deserialize, Serialize};

use super::device::{self, Held, Lent};
use super::error::SweepError;
use super::journal::Journal;
use super::plan::Plan;
use crate::frequency::{self, throttle};

/// So long a disk may stay busy after its users are killed.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a sweep makes and what must be gone when it ends.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct House {
    /// The emulated disk.
    pub(super) disk: String,
    /// The folder of the mount point and of what programs print.
    pub(super) work: PathBuf,
    /// The folders in directories of the user's.
    pub(super) scratch: Vec<PathBuf>,
    /// What the processors were, in a file that is there while they are something else.
    pub(super) processors: PathBuf,
    /// What block devices were, in a file that is there while they are something else.
    pub(super) devices: PathBuf,
    /// The cgroup that limits the processors' time.
    pub(super) cgroup: Option<PathBuf>,
    /// The root of sysfs.
    pub(super) sysfs: PathBuf,
}

/// The process, seen from the sweep.
#[derive(Debug)]
pub(super) struct Keeper {
    pub(super) house: House,
    pub(super) luc: PathBuf,
    /// The block devices.
    pub(super) held: Held,
    child: Child,
}

impl House {
    /// The same names for the same `out`, so that what is left of one sweep is found by the next.
    fn of(plan: &Plan, out: &Path, sysfs: &Path) -> Result<Self, SweepError> {
        let out = out.canonicalize().map_err(SweepError::file("find", out))?;
        // FNV-1a.
        let hash = out
            .as_os_str()
            .as_encoded_bytes()
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        let directories = plan
            .target
            .iter()
            .filter_map(|target| target.directory.as_ref());
        let cgroup = if plan.throttles() {
            let place = throttle::find(sysfs)?;
            Some(place.root.join(format!("luc-sweep-{hash:016x}")))
        } else {
            None
        };
        Ok(Self {
            processors: out.join("processors.json"),
            devices: device::file(&out),
            cgroup,
            sysfs: sysfs.to_owned(),
            disk: format!("sweep-{hash:016x}"),
            work: out.join("work"),
            scratch: directories
                .map(|directory| directory.join(format!("luc-sweep-{hash:016x}")))
                .collect(),
        })
    }

    /// Removes whatever there is of it, and puts the processors back; one does not wait for the other.
    fn clear(&self) -> Result<(), SweepError> {
        let processors = frequency::restore(&self.sysfs, &self.processors);
        let schedulers = Lent::restore_schedulers(&self.devices, &self.sysfs);
        self.remove()?;
        schedulers?;
        Ok(processors?)
    }

    fn remove(&self) -> Result<(), SweepError> {
        if let Some(cgroup) = &self.cgroup {
            throttle::remove(cgroup).map_err(SweepError::file("remove", cgroup))?;
        }
        let folders: Vec<PathBuf> = self.scratch.iter().chain([&self.work]).cloned().collect();
        self.remove_disk()?;
        Lent::wipe(&self.devices, &self.mount(), &self.sysfs)?;
        remove_folders(&folders)
    }

    fn remove_disk(&self) -> Result<(), SweepError> {
        match luc_disk::remove(&self.disk) {
            Ok(()) | Err(luc_disk::Error::NoSuchDisk(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// What a repeat that failed has left; devices that were formatted stay lent.
    fn remove_repeat(&self) -> Result<(), SweepError> {
        // Before the disk goes: its loop device stays, with its scheduler.
        Lent::restore_schedulers(&self.devices, &self.sysfs)?;
        self.remove_disk()?;
        // A device that is not mounted is as wanted; if it is busy, its folder says so.
        let _ = luc_disk::unmount(&self.mount());
        remove_folders(&self.scratch)
    }

    /// Where disks are mounted.
    pub(super) fn mount(&self) -> PathBuf {
        self.work.join("mnt")
    }

    /// The same, for as long as something is still busy.
    fn clear_patiently(&self) -> Result<(), SweepError> {
        self.patiently(|| self.clear())
    }

    fn patiently(&self, clear: impl Fn() -> Result<(), SweepError>) -> Result<(), SweepError> {
        let begun = Instant::now();
        loop {
            match clear() {
                Err(_) if begun.elapsed() < PATIENCE => sleep(Duration::from_millis(100)),
                outcome => return outcome,
            }
        }
    }
}

fn remove_folders(folders: &[PathBuf]) -> Result<(), SweepError> {
    for folder in folders {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(SweepError::file("remove", folder)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

impl Keeper {
    /// Clears what an earlier sweep left, and starts the process.
    pub(super) fn start(
        plan: &Plan,
        out: &Path,
        luc: &Path,
        sysfs: &Path,
        journal: &Journal,
        held: Held,
    ) -> Result<Self, SweepError> {
        let processors = lock_processors(plan, sysfs)?;
        let house = House::of(plan, out, sysfs)?;
        house.clear_patiently()?;
        // Also those that an earlier sweep had, now that it has given them back.
        device::check(plan, out, sysfs)?;
        let mut command = Command::new(luc);
        command
            .args(["sweep", "--keep-house"])
            .stdin(Stdio::piped())
            .stdout(journal.lock_copy()?)
            // It says nothing; it holds the locks of the results and of the processors.
            .stderr(processors.map_or_else(Stdio::null, Stdio::from))
            .current_dir("/")
            .process_group(0);
        let started = held.inherited(|| command.spawn());
        let mut child = started.map_err(SweepError::file("run", luc))?;
        let told = child
            .stdin
            .as_mut()
            .map(|pipe| writeln!(pipe, "{}", serde_json::json!(house)));
        let keeper = Self {
            house,
            luc: luc.to_owned(),
            held,
            child,
        };
        keeper.held.claim()?;
        told.unwrap_or(Ok(()))
            .map_err(SweepError::file("tell", luc))?;
        fs::create_dir_all(keeper.house.mount())
            .map_err(SweepError::file("make", &keeper.house.work))?;
        Ok(keeper)
    }

    /// Tells it of one more process group to end, but only when the sweep has ended.
    pub(super) fn also_end(&mut self, group: i32) -> Result<(), SweepError> {
        let told = self.child.stdin.as_mut();
        told.map_or(Ok(()), |pipe| writeln!(pipe, "{group}"))
            .map_err(SweepError::file("tell", &self.luc))
    }

    /// The process group for programs.
    pub(super) fn group(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Removes what a repeat that failed has left; the folder to work in stays.
    pub(super) fn clear_repeat(&self) -> Result<(), SweepError> {
        self.house.patiently(|| {
            self.house.remove_repeat()?;
            self.held.claim()
        })
    }

    /// Ends every program of the sweep.
    pub(super) fn end_programs(&self) {
        end_group(self.group());
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // It cannot wipe what this process has for itself.
        self.held.release_all();
        // The end of the pipe is its sign to clear up.
        drop(self.child.stdin.take());
        if self.child.wait().is_ok_and(|status| !status.success()) {
            if self.house.processors.exists() {
                eprintln!(
                    "luc: the processors are not yet as they were; {} says how: give the same command again",
                    self.house.processors.display()
                );
            }
            eprintln!(
                "luc: {} or disk '{}' is left; give the same command again, or `luc disk remove {}`",
                self.house.work.display(),
                self.house.disk,
                self.house.disk
            );
        }
    }
}

/// The keeper's own part: waits for the end of the pipe on standard input, then clears up.
///
/// # Errors
/// [`SweepError`]: something could not be removed.
pub fn keep_house() -> Result<(), SweepError> {
    let stdin = Path::new("standard input");
    let mut pipe = BufReader::new(std::io::stdin());
    let mut job = String::new();
    pipe.read_line(&mut job)
        .map_err(SweepError::file("read", stdin))?;
    // A sweep that was killed before it had said what to keep had made nothing.
    let Ok(house) = serde_json::from_str::<House>(&job) else {
        return Ok(());
    };
    // The rest is of further groups, until the sweep ends.
    let mut rest = String::new();
    pipe.read_to_string(&mut rest)
        .map_err(SweepError::file("read", stdin))?;
    end_group(std::process::id().cast_signed());
    for group in rest.lines().filter_map(|line| line.parse().ok()) {
        end_meter(group);
    }
    house.clear_patiently()
}

/// Clears what a sweep left that was killed, with its keeper, when it had made its last repeat.
pub(super) fn clear_left(plan: &Plan, out: &Path, sysfs: &Path) -> Result<(), SweepError> {
    let house = House::of(plan, out, sysfs)?;
    // A sweep with nothing to do does not wait for others.
    let is_lent = house.processors.exists();
    let _lock = is_lent.then(|| lock_processors(plan, sysfs)).transpose()?;
    house.clear_patiently()
}

/// The lock of the processors, if the plan needs it.
fn lock_processors(plan: &Plan, sysfs: &Path) -> Result<Option<File>, SweepError> {
    if plan.lends_processors() {
        return Ok(Some(frequency::lock(sysfs)?));
    }
    Ok(None)
}

/// Kills a whole group. In an orderly end the sweep has done so already.
fn end_meter(leader: i32) {
    let is_there = group_of(leader) == Some(leader);
    if let Some(group) = Pid::from_raw(leader).filter(|_| is_there) {
        // One that has ended in the meantime is as wanted.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Kills the processes of a group but its leader, until there are none.
fn end_group(group: i32) {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let members = members(group);
        if members.is_empty() {
            return;
        }
        for member in members {
            // One that has ended in the meantime is as wanted.
            let _ = kill_process(member, Signal::KILL);
        }
        sleep(Duration::from_millis(10));
    }
}

/// Living processes of a group, without its leader.
fn members(group: i32) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|&pid| pid != group && group_of(pid) == Some(group))
        .filter_map(Pid::from_raw)
        .collect()
}

/// The group of a process that is no zombie: `PID (NAME) STATE PPID PGRP ...`.
fn group_of(pid: i32) -> Option<i32> {
    let mut text = String::new();
    let file = File::open(format!("/proc/{pid}/stat")).ok()?;
    BufReader::new(file).read_line(&mut text).ok()?;
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    let group = fields.nth(1)?.parse().ok()?;
    (!["Z", "X"].contains(&state)).then_some(group)
}
