//! Block devices of the user's: whether one may be formatted, what of it was changed, and how it is given back.
//!
//! A device is only ever formatted that the plan names twice, that nothing uses, and that is empty unless the plan
//! says that its content may go. File systems that a sweep makes have a UUID of its own, which is on record before
//! (`identity`): only they are taken off again. `held` keeps others off it meanwhile. What is changed (`lent`) is in `devices.json` in the
//! sweep's folder before it is, so that the cleanup process, or the next luc command, gives it back.

mod about;
mod held;
mod identity;
mod lent;
mod used;

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use luc_host::programs::tool;
use luc_host::{block, sysfs};
use luc_units::OnPath as _;
use luc_units::format_size;

use super::error::SweepError;
use super::plan::{Plan, Target, least_bytes};

pub use about::{DeviceAbout, shown_size};
pub(super) use held::Held;
use identity::Signature;
pub(super) use identity::{identified, own_identity};
pub(super) use lent::Lent;

/// A sector of sysfs, bytes.
const SECTOR_BYTES: u64 = 512;

/// A block device that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// As the plan has it.
    pub(super) path: PathBuf,
    major: u32,
    minor: u32,
    /// Its folder in sysfs.
    about: PathBuf,
}

/// A refusal of `path`.
fn refuse(path: &Path, reason: impl Into<String>) -> SweepError {
    SweepError::Device { path: path.to_owned(), reason: reason.into() }
}

impl Block {
    /// The device at `path`, below the root of sysfs.
    pub(super) fn open(path: &Path, sysfs: &Path) -> Result<Self, SweepError> {
        let node = fs::metadata(path).map_err(|_| {
            refuse(path, "there is no such device: see `lsblk --paths`, correct device and erase")
        })?;
        if !node.file_type().is_block_device() {
            return Err(refuse(
                path,
                "this is no block device: see `lsblk --paths`, correct device and erase",
            ));
        }
        Self::numbered(path, node.rdev(), sysfs)
    }

    /// The device below a mount point, as the kernel names it.
    pub(super) fn below(mount: &Path, sysfs: &Path) -> Result<Self, SweepError> {
        let about = luc_disk::mount_of(mount).unwrap_or_default();
        let source = about.split(' ').nth(1).unwrap_or_default();
        Self::open(Path::new(source), sysfs)
    }

    fn numbered(path: &Path, number: u64, sysfs: &Path) -> Result<Self, SweepError> {
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let about = sysfs.join(format!("dev/block/{major}:{minor}"));
        Ok(Self {
            path: path.to_owned(),
            major,
            minor,
            about: about.canonicalize().map_err(SweepError::io("find", &about))?,
        })
    }

    /// Whether it is the same device, by whatever name.
    fn is_same(&self, other: &Self) -> bool {
        (self.major, self.minor) == (other.major, other.minor)
    }

    /// Its number, as stat(2) has it.
    fn number(&self) -> u64 {
        rustix::fs::makedev(self.major, self.minor)
    }

    /// The folder of the whole disk in sysfs: a partition's is the one above.
    fn disk(&self) -> PathBuf {
        block::whole_disk(&self.about).to_owned()
    }

    fn size_bytes(&self) -> u64 {
        sysfs::read_number(&self.about.join("size")).unwrap_or(0) * SECTOR_BYTES
    }

    /// The file that chooses the I/O scheduler.
    fn scheduler_file(&self) -> PathBuf {
        self.disk().join("queue/scheduler")
    }

    /// The scheduler in force, and all that are loaded.
    fn schedulers(&self) -> Option<(String, Vec<String>)> {
        parse_schedulers(&sysfs::read(&self.scheduler_file()).ok()?)
    }

    /// Which disk it is, among all that this kernel has seen since it started; `None` before Linux 5.15.
    fn sequence(&self) -> Option<u64> {
        sysfs::read_number(&self.disk().join("diskseq")).ok()
    }

    /// Whether it may be formatted: refused with one line if not.
    fn check(&self, target: &Target) -> Result<(), SweepError> {
        let no = |reason: String| Err(refuse(&self.path, reason));
        if sysfs::read_number(&self.about.join("ro")).unwrap_or(0) != 0 {
            return no("the device is read-only: name another".to_owned());
        }
        let size_bytes = self.size_bytes();
        let fs = target.fs.as_deref().unwrap_or_default();
        if let Some(least) = least_bytes(fs).filter(|&least| size_bytes < least) {
            return no(format!(
                "{fs} needs {} or more, and the device has {}: name a larger one",
                format_size(least),
                shown_size(size_bytes)
            ));
        }
        let partitions = self.partitions();
        if !partitions.is_empty() {
            return no(format!(
                "there is a partition table on it, with {}: name a partition, or remove the table yourself",
                partitions.join(", ")
            ));
        }
        if let Some(user) = used::by(self) {
            return no(format!("it {user}: free it, or name another"));
        }
        let found = self.signatures()?;
        let mut found: Vec<String> = found.into_iter().map(|found| found.kind).collect();
        found.sort();
        found.dedup();
        if let Some(table) = found.iter().find(|name| TABLES.contains(&name.as_str())) {
            return no(format!(
                "there is a partition table on it ({table}): name another, or remove the table yourself (wipefs --all)"
            ));
        }
        if !found.is_empty() && !target.overwrite {
            return Err(SweepError::NotEmpty { path: self.path.clone(), found: found.join(", ") });
        }
        Ok(())
    }

    fn partitions(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.about).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter(|entry| block::is_partition(&entry.path()))
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// What wipefs finds on it: file systems, members of RAIDs and volume groups, partition tables.
    fn signatures(&self) -> Result<Vec<Signature>, SweepError> {
        let mut command = wipefs();
        command.args(["--noheadings", "--output", "TYPE,UUID"]);
        let output = command.arg(&self.path).output();
        let output = output.map_err(|_| {
            refuse(
                &self.path,
                "wipefs is missing, which tells whether it is empty: install util-linux",
            )
        })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().next().unwrap_or("wipefs failed");
            return Err(refuse(&self.path, format!("it cannot be read: {said}")));
        }
        Ok(identity::parse(&String::from_utf8_lossy(&output.stdout)))
    }

    /// Whether all that is on it is what the sweep with this UUID made, or nothing.
    fn is_own(&self, uuid: &str) -> Result<bool, SweepError> {
        let found = self.signatures()?;
        Ok(found.iter().all(|found| found.is_of(uuid)))
    }

    /// Leaves it without any signature. Nobody else may have it meanwhile.
    fn wipe(&self) -> Result<(), SweepError> {
        let mut command = wipefs();
        let output = command.args(["--all", "--quiet"]).arg(&self.path).output();
        match output {
            Ok(output) if output.status.success() => Ok(()),
            _ => Err(refuse(
                &self.path,
                "what is on it cannot be wiped: give the same command again, or `wipefs --all` it",
            )),
        }
    }

    /// Takes off what the sweep with this UUID made; anything else is somebody's, and stays.
    fn wipe_own(&self, uuid: &str) -> Result<(), SweepError> {
        // Nobody mounts it or makes a file system on it between the look and the wiping.
        let _claim = held::claim(self)?;
        if !self.is_own(uuid)? {
            return Ok(());
        }
        let mut command = wipefs();
        // Without its own exclusive use, which this process has.
        command.args(["--all", "--force", "--quiet"]);
        match command.arg(&self.path).output() {
            Ok(output) if output.status.success() => Ok(()),
            _ => Err(refuse(
                &self.path,
                "what the sweep made on it cannot be wiped: give the same command again, or `wipefs --all` it",
            )),
        }
    }

    /// Makes it ready for a file system with the UUID that this gives, which is on record in `file` then. What is on it is
    /// the sweep's own, or may go by the plan; else it is refused.
    pub(super) fn prepare(&self, file: &Path, target: &Target) -> Result<String, SweepError> {
        let known = Lent::all(file)?;
        let known = known.iter().find(|lent| lent.is(self));
        let is_own = match known.and_then(Lent::uuid) {
            Some(uuid) => self.is_own(uuid)?,
            None => self.signatures()?.is_empty(),
        };
        if !is_own {
            self.check(target)?;
        }
        let uuid = Lent::format(file, self)?;
        if !is_own {
            self.wipe()?;
        }
        Ok(uuid)
    }
}

/// What wipefs calls partition tables.
const TABLES: [&str; 10] =
    ["gpt", "dos", "PMBR", "mac", "bsd", "sgi", "sun", "minix", "ultrix", "unixware"];

fn wipefs() -> Command {
    let mut command = tool("wipefs");
    command
        // It would wait for the lock that the sweep has itself.
        .env_remove("LOCK_BLOCK_DEVICE")
        .stdin(Stdio::null());
    command
}

/// `none [mq-deadline] kyber`: the one in brackets, and all.
fn parse_schedulers(text: &str) -> Option<(String, Vec<String>)> {
    let name = |word: &str| word.trim_matches(['[', ']']).to_owned();
    let now = text.split_whitespace().find(|word| word.starts_with('['))?;
    Some((name(now), text.split_whitespace().map(name).collect()))
}

/// Locks all devices of `plan`, if they may be formatted.
pub(super) fn hold(plan: &Plan, out: &Path, sysfs: &Path) -> Result<Held, SweepError> {
    let has_devices = plan.target.iter().any(|target| target.device.is_some());
    if has_devices && !rustix::process::geteuid().is_root() {
        return Err(luc_disk::Error::NotRoot.into());
    }
    let held = Held::lock(plan, sysfs)?;
    check(plan, out, sysfs)?;
    Ok(held)
}

/// Whether all devices of `plan` may be formatted, and have its schedulers. One that has nothing but what the sweep in
/// `out` made itself is looked at again when it has been cleared.
pub(super) fn check(plan: &Plan, out: &Path, sysfs: &Path) -> Result<(), SweepError> {
    let ours = Lent::all(&file(out))?;
    for target in &plan.target {
        let Some(path) = &target.device else {
            continue;
        };
        let block = Block::open(path, sysfs)?;
        check_schedulers(plan, Some(&block), sysfs)?;
        let ours = ours.iter().find(|lent| lent.is(&block));
        let is_own = match ours.and_then(Lent::uuid) {
            Some(uuid) => block.is_own(uuid)?,
            None => false,
        };
        if !is_own {
            block.check(target)?;
        }
    }
    if plan.target.iter().any(Target::is_emulated) {
        check_schedulers(plan, None, sysfs)?;
    }
    Ok(())
}

/// Whether a disk has all schedulers of the plan, or could load them; `None` for a disk that is not made yet.
fn check_schedulers(plan: &Plan, block: Option<&Block>, sysfs: &Path) -> Result<(), SweepError> {
    let loaded: Vec<String> = match block {
        Some(block) => block.schedulers().map(|(_, all)| all).unwrap_or_default(),
        None => {
            let disks = fs::read_dir(sysfs.join("block")).into_iter().flatten().flatten();
            let texts =
                disks.filter_map(|disk| sysfs::read(&disk.path().join("queue/scheduler")).ok());
            let all = texts.filter_map(|text| parse_schedulers(&text));
            all.flat_map(|(_, all)| all).collect()
        }
    };
    for scheduler in &plan.scheduler {
        let name = scheduler.name();
        if name != "none" && !loaded.iter().any(|known| known == name) && !has_module(name) {
            return Err(SweepError::Plan(format!(
                "scheduler \"{name}\": this kernel has none of that name (there are {}); leave it out",
                loaded.join(", ")
            )));
        }
    }
    Ok(())
}

/// Whether the running kernel has a module of that scheduler.
fn has_module(name: &str) -> bool {
    let release = rustix::system::uname();
    let folder = format!("/lib/modules/{}", release.release().to_string_lossy());
    let alias = format!("alias {name}-iosched ");
    fs::read_to_string(format!("{folder}/modules.alias"))
        .is_ok_and(|text| text.lines().any(|line| line.starts_with(&alias)))
}

/// Where it is written what a sweep has.
pub(super) fn file(out: &Path) -> PathBuf {
    out.join("devices.json")
}

/// What `text` says that a sweep has, written again; `None` if that is no text of a sweep's.
pub(super) fn saved(text: &str) -> Option<String> {
    let all = Lent::parse(text).ok()?;
    Some(serde_json::json!(all).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_of_a_disk() {
        let (now, all) = parse_schedulers("none [mq-deadline] kyber bfq \n").expect("understood");
        assert_eq!(now, "mq-deadline");
        assert_eq!(all, ["none", "mq-deadline", "kyber", "bfq"]);
        assert_eq!(parse_schedulers("none"), None);
    }

    #[test]
    fn what_is_no_device_is_refused() {
        for path in ["/no/such", "/dev/null", "/proc"] {
            let error = Block::open(Path::new(path), Path::new("/sys")).expect_err("refused");
            let said = error.to_string();
            assert!(said.contains(path) && said.lines().count() == 1, "{said}");
        }
    }

    #[test]
    fn partitions_and_their_disk() {
        let sysfs = tempfile::tempdir().expect("a folder");
        let disk = sysfs.path().join("devices/sda");
        fs::create_dir_all(disk.join("sda1")).expect("made");
        fs::create_dir_all(disk.join("queue")).expect("made");
        fs::write(disk.join("sda1/partition"), "1\n").expect("written");
        fs::write(disk.join("queue/scheduler"), "[none] kyber\n").expect("written");
        fs::create_dir_all(sysfs.path().join("dev/block")).expect("made");
        for (number, target) in [("8:0", "sda"), ("8:1", "sda/sda1")] {
            let link = sysfs.path().join("dev/block").join(number);
            std::os::unix::fs::symlink(sysfs.path().join("devices").join(target), link)
                .expect("linked");
        }
        let open = |minor| {
            let number = rustix::fs::makedev(8, minor);
            Block::numbered(Path::new("/dev/x"), number, sysfs.path()).expect("there")
        };
        assert_eq!(open(0).partitions(), ["sda1"]);
        assert!(open(1).partitions().is_empty());
        assert_eq!(open(1).schedulers(), open(0).schedulers());
        assert_eq!(open(1).schedulers().map(|found| found.0).as_deref(), Some("none"));
    }
}
