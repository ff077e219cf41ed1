//! A record of frozen cgroups that outlives this process: the guardian reads it, and so does the next `luc`.
//!
//! It is a file in `/run/luc/throttle/records`. All of `/run` is in memory, so that no write to it waits for a disk.
//! Before a cgroup is frozen, the time by which it has to be thawed is written; after the thaw, 0. So a reader may thaw
//! too much, but never too little.
//!
//! The file is locked (flock) while the throttle or its guardian lives, since both have the same open file. A record
//! that can be locked has no owner any more.
//!
//! Layout, numbers little-endian: 8 bytes `MAGIC`, heartbeat (u64, ns), number of entries (u64), padding to
//! `DEADLINES`. A deadline (u64, ns; 0: not frozen) for each of [`MAX_ENTRIES`] entries follows. Then each path has
//! `PATH_BYTES`, and ends with a zero byte.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::ThrottleError;
use crate::cgroup::thaw_at;

pub const DIRECTORY: &str = "/run/luc/throttle/records";
/// Largest number of tasks of one record.
pub const MAX_ENTRIES: usize = 1024;

const MAGIC: &[u8; 8] = b"luc-thr1";
const HEARTBEAT: u64 = 8;
const COUNT: u64 = 16;
const DEADLINES: u64 = 64;
const PATHS: u64 = 16384;
const PATH_BYTES: u64 = 4096;

/// The file in which a throttle notes its frozen cgroups.
#[derive(Debug)]
pub struct FrozenRecord {
    file: File,
    path: PathBuf,
    /// Entries of cgroups that are gone.
    free: Vec<RecordEntry>,
}

/// Position of a cgroup in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordEntry(usize);

impl FrozenRecord {
    /// Creates and locks an empty record, named after this process.
    pub fn create() -> Result<Self, ThrottleError> {
        let folder = Path::new(DIRECTORY);
        DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(folder)
            .map_err(ThrottleError::record(folder))?;
        Self::create_at(&folder.join(std::process::id().to_string()))
    }

    fn create_at(path: &Path) -> Result<Self, ThrottleError> {
        // `restore_left` has removed the record of an earlier process with the same number.
        let make = || -> io::Result<File> {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .custom_flags(libc::O_NOFOLLOW)
                .open(path)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            file.write_all_at(MAGIC, 0)?;
            file.set_len(PATHS)?;
            Ok(file)
        };
        Ok(Self {
            file: make().map_err(ThrottleError::record(path))?,
            path: path.to_owned(),
            free: Vec::new(),
        })
    }

    /// Takes a record that another process made, as an open file.
    pub(crate) fn inherited(file: File) -> Self {
        let path =
            fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file)));
        Self { file, path: path.unwrap_or_default(), free: Vec::new() }
    }

    /// The open file, for a child.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Adds a cgroup that may be frozen.
    pub fn add(&mut self, cgroup: &Path) -> Result<RecordEntry, ThrottleError> {
        let failed = || ThrottleError::record(&self.path);
        let count = self.count().map_err(failed())?;
        let bytes = cgroup.as_os_str().as_bytes();
        let entry = self.free.last().copied().unwrap_or(RecordEntry(count));
        if entry.0 >= MAX_ENTRIES || bytes.len() as u64 >= PATH_BYTES {
            return Err(ThrottleError::TooMany(MAX_ENTRIES));
        }
        let mut text = vec![0; PATH_BYTES as usize];
        text[..bytes.len()].copy_from_slice(bytes);
        let write = || {
            self.write(DEADLINES + 8 * entry.0 as u64, 0)?;
            self.file.write_all_at(&text, PATHS + entry.0 as u64 * PATH_BYTES)?;
            self.write(COUNT, count.max(entry.0 + 1) as u64)
        };
        write().map_err(failed())?;
        self.free.pop();
        Ok(entry)
    }

    /// Frees the entry of a cgroup that is gone and thawed.
    pub fn forget(&mut self, entry: RecordEntry) {
        self.free.push(entry);
    }

    /// Whether the guardian has thawed a frozen cgroup, by [`FrozenRecord::deadlines_ns`].
    #[must_use]
    pub fn is_thawed(deadlines_ns: &[u64], entry: RecordEntry) -> bool {
        deadlines_ns.get(entry.0) == Some(&0)
    }

    /// Notes that a cgroup is about to be frozen, and its deadline for the thaw.
    ///
    /// # Errors
    ///
    /// [`ThrottleError::Record`]: it must not be frozen then.
    pub fn note_freeze(&self, entry: RecordEntry, deadline_ns: u64) -> Result<(), ThrottleError> {
        self.write(DEADLINES + 8 * entry.0 as u64, deadline_ns)
            .map_err(ThrottleError::record(&self.path))
    }

    /// Notes that a cgroup has been thawed.
    pub fn note_thaw(&self, entry: RecordEntry) -> Result<(), ThrottleError> {
        self.note_freeze(entry, 0)
    }

    /// Writes a heartbeat: the throttle is alive.
    pub fn beat(&self, now_ns: u64) -> Result<(), ThrottleError> {
        self.write(HEARTBEAT, now_ns).map_err(ThrottleError::record(&self.path))
    }

    pub(crate) fn heartbeat_ns(&self) -> io::Result<u64> {
        self.read(HEARTBEAT)
    }

    /// Deadlines of all entries, in order of the entries; 0: not frozen.
    ///
    /// # Errors
    ///
    /// Those of the system, or the file is not a record.
    pub fn deadlines_ns(&self) -> io::Result<Vec<u64>> {
        let mut bytes = vec![0; 8 * self.count()?];
        self.file.read_exact_at(&mut bytes, DEADLINES)?;
        Ok(bytes
            .chunks_exact(8)
            .map(|number| u64::from_le_bytes(number.try_into().unwrap_or_default()))
            .collect())
    }

    pub(crate) fn cgroup(&self, entry: usize) -> io::Result<PathBuf> {
        let mut bytes = vec![0; PATH_BYTES as usize];
        self.file.read_exact_at(&mut bytes, PATHS + entry as u64 * PATH_BYTES)?;
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(0);
        Ok(PathBuf::from(OsStr::from_bytes(&bytes[..length])))
    }

    pub(crate) fn cgroups(&self) -> io::Result<Vec<PathBuf>> {
        (0..self.count()?).map(|entry| self.cgroup(entry)).collect()
    }

    /// Thaws the cgroups whose deadline `is_due`. Returns their number.
    pub(crate) fn thaw(&self, is_due: impl Fn(u64) -> bool) -> io::Result<usize> {
        let mut thawed = 0;
        for (index, deadline_ns) in self.deadlines_ns()?.into_iter().enumerate() {
            if deadline_ns == 0 || !is_due(deadline_ns) {
                continue;
            }
            let cgroup = self.cgroup(index)?;
            thawed += usize::from(thaw_at(&cgroup)?);
            self.write(DEADLINES + 8 * index as u64, 0)?;
        }
        Ok(thawed)
    }

    /// Removes the file. Nothing may be frozen any more.
    pub(crate) fn remove(&self) {
        // The next luc clears what is left behind.
        let _ = fs::remove_file(&self.path);
    }

    fn count(&self) -> io::Result<usize> {
        let mut magic = [0; 8];
        self.file.read_exact_at(&mut magic, 0)?;
        let count = self.read(COUNT)?;
        if magic != *MAGIC || count > MAX_ENTRIES as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no record"));
        }
        Ok(count as usize)
    }

    fn read(&self, at: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn write(&self, at: u64, value: u64) -> io::Result<()> {
        self.file.write_all_at(&value.to_le_bytes(), at)
    }
}

/// Thaws for throttles that were killed together with their guardians.
#[derive(Debug, Default)]
pub struct RestoredCgroups {
    /// Number of cgroups that were thawed.
    pub cgroups: usize,
    /// Failures to read or thaw, a line each.
    pub failed: Vec<String>,
}

/// Thaws what dead throttles have left frozen, and removes their records. Without records this costs one look at a
/// folder.
#[must_use]
pub fn restore_left() -> RestoredCgroups {
    restore_at(Path::new(DIRECTORY))
}

fn restore_at(folder: &Path) -> RestoredCgroups {
    let mut restored = RestoredCgroups::default();
    let Ok(records) = fs::read_dir(folder) else {
        return restored;
    };
    for path in records.flatten().map(|entry| entry.path()) {
        match restore_one(&path) {
            Ok(thawed) => restored.cgroups += thawed,
            Err(error) => restored.failed.push(format!("{}: {error}", path.display())),
        }
    }
    restored
}

fn restore_one(path: &Path) -> io::Result<usize> {
    let file =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
    luc_host::root_owned::check(&file)?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        // Its throttle or its guardian is alive.
        return Ok(0);
    }
    let record = FrozenRecord { file, path: path.to_owned(), free: Vec::new() };
    // The throttle was killed before it filled the record.
    let thawed = match record.thaw(|_| true) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
        other => other?,
    };
    record.remove();
    Ok(thawed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a folder with the file that a cgroup has.
    fn cgroup(folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        fs::create_dir(&path).expect("a folder");
        fs::write(path.join("cgroup.freeze"), "1").expect("a file");
        path
    }

    fn frozen(path: &Path) -> bool {
        fs::read_to_string(path.join("cgroup.freeze")).expect("read") == "1"
    }

    #[test]
    fn what_is_frozen_when_all_have_died_is_thawed_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let (records, groups) = (folder.path().join("records"), folder.path().join("groups"));
        fs::create_dir(&records).expect("a folder");
        fs::create_dir(&groups).expect("a folder");
        let (ours, theirs) = (cgroup(&groups, "ours"), cgroup(&groups, "theirs"));
        let mut record = FrozenRecord::create_at(&records.join("1")).expect("made");
        let [first, _second] = [&ours, &theirs].map(|path| record.add(path).expect("added"));
        record.note_freeze(first, 17).expect("noted");

        // Its owner lives.
        assert_eq!(restore_at(&records).cgroups, 0);
        assert!(frozen(&ours));
        drop(record);
        let restored = restore_at(&records);
        assert_eq!((restored.cgroups, restored.failed), (1, vec![]));
        assert!(!frozen(&ours) && frozen(&theirs));
        assert_eq!(fs::read_dir(&records).expect("read").count(), 0);
    }

    #[test]
    fn only_what_is_due_is_thawed() {
        let folder = tempfile::tempdir().expect("a folder");
        let groups = ["a", "b"].map(|name| cgroup(folder.path(), name));
        let mut record = FrozenRecord::create_at(&folder.path().join("record")).expect("made");
        for (group, deadline_ns) in groups.iter().zip([10, 20]) {
            let entry = record.add(group).expect("added");
            record.note_freeze(entry, deadline_ns).expect("noted");
        }
        assert_eq!(record.thaw(|deadline_ns| deadline_ns < 15).expect("thawed"), 1);
        assert_eq!(record.deadlines_ns().expect("read"), [0, 20]);
        assert!(!frozen(&groups[0]) && frozen(&groups[1]));
    }

    #[test]
    fn places_are_used_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut record = FrozenRecord::create_at(&folder.path().join("record")).expect("made");
        for round in 0..3 * MAX_ENTRIES {
            let entry = record.add(Path::new(&format!("/{round}"))).expect("room");
            assert_eq!(record.cgroup(entry.0).expect("read"), PathBuf::from(format!("/{round}")));
            record.forget(entry);
        }
        for _ in 0..MAX_ENTRIES {
            record.add(Path::new("/a")).expect("room");
        }
        let said = record.add(Path::new("/b")).expect_err("full").to_string();
        assert!(said.contains("1024"), "{said}");
    }

    proptest::proptest! {
        #[test]
        fn no_file_makes_it_panic(bytes: Vec<u8>, is_record: bool) {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("1");
            let mut content = if is_record { MAGIC.to_vec() } else { Vec::new() };
            content.extend(bytes);
            fs::write(&path, content).expect("written");
            let _ = restore_at(folder.path());
        }
    }
}
