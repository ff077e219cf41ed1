//! A lane runs programs in one way, on an emulated disk of its own: without LUC, by its library, or by notifications.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use luc_host::kernel_clocks::now_ns;
use serde::Serialize;
use tempfile::TempDir;

use crate::layout::{self, Header, Outcome};
use crate::program::Program;
use crate::promises::Disk;

/// Maximum time of a batch. Its programs end each other after 20 s.
const BATCH_TIMEOUT: Duration = Duration::from_secs(300);
/// Time that a file system may be busy after its last program.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(10);
/// Number of companions, which make `auto` hold callers.
const COMPANIONS: u32 = 8;
/// Name of the disk, in a folder of its own.
const DISK: &str = "d";
/// Duration of a flush of the disk.
const FLUSH: &str = "500us";

/// Way in which LUC reaches the programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Way {
    Plain,
    Library,
    Notify,
    /// Notifications of a running process, by `luc attach` and a `lucd` of our own.
    Attach,
}

/// Settings that all lanes of a batch share.
#[derive(Debug, Clone)]
pub(crate) struct Batch {
    pub(crate) stamp: u32,
    pub(crate) width: u32,
    pub(crate) warm: u32,
    pub(crate) lie: u32,
    pub(crate) without_syncfs: bool,
    pub(crate) policy: &'static str,
    /// Block size of the file system.
    pub(crate) block: u32,
    /// Time at which the power goes while programs run; `None`: after the last one has ended.
    pub(crate) cut_after: Option<Duration>,
    /// Seed of the choice of unflushed sectors that survive a cut.
    pub(crate) cut_seed: Option<u64>,
}

/// Results of a batch in one lane.
#[derive(Debug)]
pub(crate) struct BatchOutcome {
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) disks: Vec<Disk>,
    /// Calls that returned before this time are durable.
    pub(crate) end_ns: u64,
    /// Number of calls that were held.
    pub(crate) held: u64,
    /// Whether the disk could be mounted only after e2fsck.
    pub(crate) is_repaired: bool,
}

pub(crate) struct Lane {
    pub(crate) way: Way,
    luc: PathBuf,
    subject: PathBuf,
    place: TempDir,
    /// A folder in memory.
    memory: TempDir,
    device: String,
}

impl Lane {
    pub(crate) fn new(way: Way, luc: &Path, subject: &Path) -> Result<Self> {
        let place = TempDir::with_prefix("luc-differential-")?;
        let memory = TempDir::with_prefix_in("luc-differential-", "/dev/shm")?;
        fs::create_dir(place.path().join("mnt"))?;
        let mut lane = Self {
            way,
            luc: luc.to_owned(),
            subject: subject.to_owned(),
            place,
            memory,
            device: String::new(),
        };
        let words = "disk create d --size 256M --write 20us --read 20us --json --flush";
        let made = lane.luc(&words.split(' ').chain([FLUSH]).collect::<Vec<_>>())?;
        let made: serde_json::Value = serde_json::from_slice(&made.stdout)?;
        let device = made["device"].as_str().context("a disk has a device")?;
        device.clone_into(&mut lane.device);
        Ok(lane)
    }

    fn mount_point(&self) -> PathBuf {
        self.place.path().join("mnt")
    }

    fn command(&self, program: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::null());
        command.env("LUC_RUN_DIR", self.place.path());
        command
    }

    fn luc(&self, words: &[&str]) -> Result<Output> {
        output(&mut self.command(&self.luc, words))
    }

    /// Runs a batch on a fresh file system, cuts the power, and reads the disk.
    pub(crate) fn run(&self, batch: &Batch, programs: &[&Program]) -> Result<BatchOutcome> {
        let mount_point = self.mount_point();
        let block = batch.block.to_string();
        // The journal is zeroed: an older one's transactions would be found in it.
        let mkfs =
            ["-q", "-F", "-i", "16384", "-J", "size=4", "-E", "nodiscard,lazy_itable_init=1"];
        output(Command::new("mkfs.ext4").args(mkfs).args(["-b", &block, &self.device]))?;
        output(Command::new("mount").arg(&self.device).arg(&mount_point))?;
        let ran = self.run_mounted(batch, programs);
        if ran.is_err() {
            let _ = Command::new("umount").arg(&mount_point).output();
        }
        ran
    }

    fn run_mounted(&self, batch: &Batch, programs: &[&Program]) -> Result<BatchOutcome> {
        let mount_point = self.mount_point();
        let shared = self.memory.path().join("batch");
        // Which is lucd's only policy, and takes programs that come and go for no reason to wait.
        let is_auto = batch.policy == "auto" || self.way == Way::Attach;
        let header = Header {
            width: batch.width,
            goes: self.way != Way::Attach,
            stamp: batch.stamp,
            warm: batch.warm,
            lie: batch.lie,
            without_syncfs: batch.without_syncfs,
            companions: if is_auto { COMPANIONS } else { 0 },
            folder: mount_point.display().to_string(),
            other: self.memory.path().display().to_string(),
        };
        fs::write(&shared, layout::encode(&header, programs))?;
        let report = self.place.path().join("report.json");
        let mut running = self.start(batch.policy, &shared, &report)?;
        if self.way == Way::Attach {
            self.attach(&mut running, &shared)?;
        }
        let mut end_ns = u64::MAX;
        if let Some(after) = batch.cut_after {
            std::thread::sleep(after);
            end_ns = now_ns();
            self.cut(batch)?;
        }
        let held = self.count_held(&shared, &report, &mut running)?;
        let ended = await_end(&mut running)?;
        if batch.cut_after.is_none() {
            self.cut(batch)?;
        }
        if !ended.success() {
            bail!("the programs of a batch ended with {ended}");
        }
        let outcomes = layout::decode(&fs::read(&shared)?, programs).context("a damaged batch")?;
        self.unmount()?;
        self.luc(&["disk", "restore", DISK])?;
        let is_repaired = self.mount_after_cut()?;
        let disks = (0..programs.len()).map(|number| Disk {
            files: files(&mount_point.join(format!("p{number:05}"))),
            stamp: batch.stamp,
            number: number as u32,
        });
        let disks = disks.collect();
        self.unmount()?;
        for entry in fs::read_dir(self.memory.path())?.flatten() {
            fs::remove_file(entry.path())?;
        }
        Ok(BatchOutcome { outcomes, disks, end_ns, held, is_repaired })
    }

    fn start(&self, policy: &str, shared: &Path, report: &Path) -> Result<Child> {
        let reach = match self.way {
            Way::Plain | Way::Attach => None,
            Way::Library => Some("library"),
            Way::Notify => Some("notify"),
        };
        let mut command = match reach {
            None => self.command(&self.subject, &[]),
            Some(reach) => {
                let words = ["run", "--quiet", "--no-why", "--level", "gate"];
                let mut command = self.command(&self.luc, &words);
                command.args(["--reach", reach, "--policy", policy]);
                command.arg("--json").arg(report).arg("--").arg(&self.subject);
                command
            }
        };
        let errors = File::create(self.place.path().join("errors"))?;
        command.arg(shared).stdout(Stdio::null()).stderr(errors);
        command.spawn().context("a batch cannot be started")
    }

    fn attach(&self, running: &mut Child, shared: &Path) -> Result<()> {
        let process = running.id().to_string();
        let attached = self.luc(&["attach", &process, "--permanently"]);
        if attached.is_err() {
            running.kill()?;
            running.wait()?;
        }
        attached?;
        tell(shared, 1)
    }

    /// Returns the number of calls that were held. Waits for the end of a run by `luc run`, and of all programs
    /// otherwise.
    fn count_held(&self, shared: &Path, report: &Path, running: &mut Child) -> Result<u64> {
        let about = match self.way {
            Way::Plain => return Ok(0),
            Way::Library | Way::Notify => {
                await_end(running)?;
                fs::read(report).context("luc run left no report")?
            }
            Way::Attach => {
                let begun = Instant::now();
                let file = File::open(shared)?;
                let mut is_over = [0; 4];
                while is_over == [0; 4] {
                    if let Some(status) = running.try_wait()? {
                        bail!("the attached process ended with {status}");
                    }
                    if begun.elapsed() > BATCH_TIMEOUT {
                        running.kill()?;
                    }
                    std::thread::sleep(Duration::from_millis(2));
                    file.read_exact_at(&mut is_over, layout::OVER_AT)?;
                }
                let name = format!("pid-{}", running.id());
                let status = self.luc(&["status", "--json", &name]);
                tell(shared, 2)?;
                status?.stdout
            }
        };
        let about: serde_json::Value = serde_json::from_slice(&about)?;
        // A list of units, of a unit's.
        let about = about.get(0).unwrap_or(&about);
        let systems = about["file_systems"].as_array();
        let systems = systems.into_iter().flatten();
        Ok(systems.filter_map(|system| system["gate"]["gated"].as_u64()).sum())
    }

    /// Mounts the disk after a cut, and returns whether it had to be repaired before.
    ///
    /// A cut may leave one sector of an older superblock and one of a newer, whose checksum is then wrong.
    fn mount_after_cut(&self) -> Result<bool> {
        let mount = || output(Command::new("mount").arg(&self.device).arg(self.mount_point()));
        if mount().is_ok() {
            return Ok(false);
        }
        let checked = Command::new("e2fsck").args(["-fy", &self.device]).output()?;
        mount().with_context(|| String::from_utf8_lossy(&checked.stdout).into_owned())?;
        Ok(true)
    }

    fn unmount(&self) -> Result<()> {
        let begun = Instant::now();
        loop {
            match output(Command::new("umount").arg(self.mount_point())) {
                // A reader of the process in /proc keeps its files for a moment.
                Err(_) if begun.elapsed() < RELEASE_TIMEOUT => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                result => return result.map(drop),
            }
        }
    }

    fn cut(&self, batch: &Batch) -> Result<()> {
        let seed = batch.cut_seed.map(|seed| seed.to_string());
        let mut words = vec!["disk", "cut", DISK];
        if let Some(seed) = &seed {
            words.extend(["--seed", seed]);
        }
        self.luc(&words)?;
        Ok(())
    }

    /// Returns the standard error of the programs and of `luc` in the last batch.
    pub(crate) fn errors(&self) -> String {
        fs::read_to_string(self.place.path().join("errors")).unwrap_or_default()
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        if self.device.is_empty() {
            return;
        }
        // A daemon that has just been told to end may hold the device for a moment.
        for _ in 0..50 {
            if self.luc(&["disk", "remove", DISK]).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let place = self.place.path().display();
        eprintln!("the disk in {place} is left: LUC_RUN_DIR={place} luc disk remove {DISK}");
    }
}

fn output(command: &mut Command) -> Result<Output> {
    let output = command
        .output()
        .with_context(|| format!("{} cannot be run", command.get_program().display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?}: {}: {}", output.status, said.trim());
    }
    Ok(output)
}

fn await_end(running: &mut Child) -> Result<std::process::ExitStatus> {
    let begun = Instant::now();
    loop {
        if let Some(status) = running.try_wait()? {
            return Ok(status);
        }
        if begun.elapsed() > BATCH_TIMEOUT {
            running.kill()?;
            running.wait()?;
            bail!("a batch was not over after {} s", BATCH_TIMEOUT.as_secs());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn files(folder: &Path) -> HashMap<i32, Vec<u8>> {
    let names = (0..crate::generate::FILES).map(|file| (file, folder.join(format!("f{file}"))));
    names.filter_map(|(file, path)| Some((file, fs::read(path).ok()?))).collect()
}

/// Tells a batch to begin (1) or to end (2).
fn tell(shared: &Path, go: u32) -> Result<()> {
    let file = File::options().write(true).open(shared)?;
    Ok(file.write_all_at(&go.to_ne_bytes(), layout::GO_AT)?)
}
