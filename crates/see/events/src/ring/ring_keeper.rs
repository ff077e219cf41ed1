//! The recorder's side of a ring: it begins and closes segments, and removes the oldest.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, OFlags, flock};

use super::{SegmentName, names};
use crate::store::{StoreError, TraceReader, is_free, make};
use crate::tables::TraceDescription;

/// File that a recorder locks.
const LOCK_FILE: &str = ".lock";
/// Prefix of the name of an incomplete segment.
const OPEN_PREFIX: &str = ".";
/// Prefix of the name of a segment that is being removed.
const REMOVED_PREFIX: &str = ".gone-";

/// Limits of a ring's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingLimits {
    /// Maximum age of a segment's end, nanoseconds.
    pub keep_ns: u64,
    /// Maximum size of all segments, bytes. The oldest are removed first.
    pub keep_bytes: u64,
}

/// A segment that is being written.
#[derive(Clone, Debug)]
pub struct OpenSegment {
    name: SegmentName,
    /// Hidden directory of the segment, which does not exist yet.
    pub path: PathBuf,
}

/// A segment that is complete.
#[derive(Debug)]
struct Closed {
    path: PathBuf,
    bytes: u64,
    end_ns: u64,
}

/// Keeps a ring within its limits. Only one can exist for a directory at a time.
#[derive(Debug)]
pub struct RingKeeper {
    directory: PathBuf,
    limits: RingLimits,
    /// Unlocked when it is closed, however the process ends.
    _lock: File,
    next: SegmentName,
    closed: VecDeque<Closed>,
}

impl RingKeeper {
    /// Makes `directory` a ring, or continues the ring in it. `now_ns` is of CLOCK_MONOTONIC. Also returns the names of
    /// removed segments: those that a killed recorder had not completed, or that a power cut has damaged.
    ///
    /// # Errors
    /// [`StoreError::Recording`] while another recorder is at work there; [`StoreError::Exists`] if the directory is a
    /// trace; when it cannot be made, read or changed.
    pub fn open(
        directory: &Path,
        limits: RingLimits,
        now_ns: u64,
    ) -> Result<(Self, Vec<SegmentName>), StoreError> {
        make(directory).map_err(StoreError::io(directory, "create it"))?;
        is_free(directory)?;
        let path = directory.join(LOCK_FILE);
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            // A link would create a file elsewhere.
            .custom_flags(OFlags::NOFOLLOW.bits() as i32)
            .open(&path)
            .map_err(StoreError::io(&path, "open it"))?;
        if let Err(reason) = flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            if reason == rustix::io::Errno::WOULDBLOCK {
                return Err(StoreError::Recording { path: directory.to_path_buf() });
            }
            return Err(StoreError::io(&path, "lock it")(reason.into()));
        }
        let mut torn = clear(directory)?;
        let mut keeper = Self {
            directory: directory.to_path_buf(),
            limits,
            _lock: lock,
            next: SegmentName { run: 1, number: 1 },
            closed: VecDeque::new(),
        };
        for name in names(directory)? {
            let path = directory.join(name.to_string());
            keeper.next.run = name.run.saturating_add(1);
            // One that cannot be read would keep readers from all others.
            let Ok(reader) = TraceReader::open(&path) else {
                keeper.remove(&path)?;
                torn.push(name);
                continue;
            };
            let bytes = size_of(&path).map_err(StoreError::io(&path, "measure it"))?;
            keeper.closed.push_back(Closed {
                path,
                bytes,
                end_ns: ended_ns(reader.trace(), now_ns),
            });
        }
        torn.sort_unstable();
        keeper.remove_old(0, now_ns)?;
        Ok((keeper, torn))
    }

    /// Begins the next segment.
    pub fn begin(&mut self) -> OpenSegment {
        let name = self.next;
        self.next.number = self.next.number.saturating_add(1);
        OpenSegment { name, path: self.directory.join(format!("{OPEN_PREFIX}{name}")) }
    }

    /// Gives a complete segment its name. It ended at `end_ns`.
    ///
    /// # Errors
    /// When it cannot be renamed.
    pub fn close(&mut self, open: &OpenSegment, end_ns: u64) -> Result<(), StoreError> {
        let bytes = size_of(&open.path).map_err(StoreError::io(&open.path, "measure it"))?;
        let path = self.directory.join(open.name.to_string());
        fs::rename(&open.path, &path).map_err(StoreError::io(&path, "rename it into place"))?;
        self.closed.push_back(Closed { path, bytes, end_ns });
        Ok(())
    }

    /// Removes the oldest segments while the ring is beyond its limits, including `open_bytes` that are being written.
    ///
    /// # Errors
    /// When one cannot be removed.
    pub fn remove_old(&mut self, open_bytes: u64, now_ns: u64) -> Result<(), StoreError> {
        while let Some(oldest) = self.closed.front() {
            let all: u64 = self.closed.iter().map(|closed| closed.bytes).sum();
            let is_old = now_ns.saturating_sub(oldest.end_ns) > self.limits.keep_ns;
            if !is_old && all.saturating_add(open_bytes) <= self.limits.keep_bytes {
                break;
            }
            self.remove(&oldest.path)?;
            self.closed.pop_front();
        }
        Ok(())
    }

    /// Removes a segment. Its name goes first, so that nobody sees a part of it.
    fn remove(&self, path: &Path) -> Result<(), StoreError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let gone = self.directory.join(format!("{REMOVED_PREFIX}{name}"));
        match fs::rename(path, &gone) {
            Ok(()) => {}
            // Somebody else has removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(StoreError::io(path, "remove it")(error)),
        }
        fs::remove_dir_all(&gone).map_err(StoreError::io(&gone, "remove it"))
    }
}

/// Removes what a killed recorder left under hidden names. Returns the incomplete segments.
fn clear(directory: &Path) -> Result<Vec<SegmentName>, StoreError> {
    let mut torn = Vec::new();
    for entry in fs::read_dir(directory).map_err(StoreError::io(directory, "list it"))? {
        let entry = entry.map_err(StoreError::io(directory, "list it"))?;
        let file_name = entry.file_name();
        let Some(name) = file_name.to_str() else {
            continue;
        };
        let segment = |before| name.strip_prefix(before)?.parse::<SegmentName>().ok();
        let open = segment(OPEN_PREFIX);
        if open.or_else(|| segment(REMOVED_PREFIX)).is_some() {
            let path = entry.path();
            fs::remove_dir_all(&path).map_err(StoreError::io(&path, "remove it"))?;
            torn.extend(open);
        }
    }
    Ok(torn)
}

/// Returns the end of an earlier recorder's segment on the present CLOCK_MONOTONIC: the machine may have been booted
/// since.
fn ended_ns(trace: &TraceDescription, now_ns: u64) -> u64 {
    let ended_ns = trace.realtime_offset_ns.saturating_add(trace.end_ns);
    let real_ns = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(0));
    now_ns.saturating_sub(real_ns.saturating_sub(ended_ns))
}

/// Sums the sizes of a segment's files.
fn size_of(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        match entry?.metadata() {
            Ok(metadata) => bytes += metadata.len(),
            // Renamed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

impl OpenSegment {
    /// Sums the sizes of its files so far.
    ///
    /// # Errors
    /// When it cannot be listed.
    pub fn bytes(&self) -> Result<u64, StoreError> {
        size_of(&self.path).map_err(StoreError::io(&self.path, "measure it"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::TraceWriter;

    const LIMITS: RingLimits = RingLimits { keep_ns: 100, keep_bytes: u64::MAX };

    /// Writes and closes a segment that ends at `end_ns`.
    fn segment(keeper: &mut RingKeeper, end_ns: u64) {
        let open = keeper.begin();
        let trace = TraceDescription { end_ns, ..TraceDescription::default() };
        TraceWriter::create(&open.path, TraceDescription::default())
            .and_then(|writer| writer.finish(trace))
            .expect("written");
        keeper.close(&open, end_ns).expect("closed");
    }

    fn numbers(directory: &Path) -> Vec<(u32, u32)> {
        let names = names(directory).expect("listed");
        names.iter().map(|name| (name.run, name.number)).collect()
    }

    #[test]
    fn what_is_too_old_goes() {
        let folder = tempfile::tempdir().expect("made");
        let (mut keeper, torn) = RingKeeper::open(folder.path(), LIMITS, 0).expect("opened");
        assert!(torn.is_empty());
        for end_ns in [10, 20, 120] {
            segment(&mut keeper, end_ns);
        }
        keeper.remove_old(0, 110).expect("removed");
        assert_eq!(numbers(folder.path()), [(1, 1), (1, 2), (1, 3)]);
        keeper.remove_old(0, 121).expect("removed");
        assert_eq!(numbers(folder.path()), [(1, 3)]);
    }

    #[test]
    fn what_is_too_large_goes_the_oldest_first() {
        let folder = tempfile::tempdir().expect("made");
        let (mut keeper, _) = RingKeeper::open(folder.path(), LIMITS, 0).expect("opened");
        for end_ns in [1, 2, 3] {
            segment(&mut keeper, end_ns);
        }
        let one = size_of(&folder.path().join("segment-0001-000001")).expect("measured");
        keeper.limits.keep_bytes = 3 * one;
        keeper.remove_old(0, 4).expect("removed");
        assert_eq!(numbers(folder.path()).len(), 3);
        keeper.remove_old(one + 1, 4).expect("removed");
        assert_eq!(numbers(folder.path()), [(1, 3)]);
        keeper.remove_old(u64::MAX, 4).expect("removed");
        assert!(numbers(folder.path()).is_empty());
    }

    #[test]
    fn a_second_recorder_is_refused_and_a_later_one_clears_up() {
        let folder = tempfile::tempdir().expect("made");
        let (mut keeper, _) = RingKeeper::open(folder.path(), LIMITS, 0).expect("opened");
        let second = RingKeeper::open(folder.path(), LIMITS, 0);
        assert!(matches!(second, Err(StoreError::Recording { .. })), "{second:?}");
        segment(&mut keeper, 1);
        let open = keeper.begin();
        let torn = TraceWriter::create(&open.path, TraceDescription::default()).expect("begun");
        drop((keeper, torn));
        // A directory of somebody else's stays, and one that is damaged goes.
        for name in [".gone-segment-0001-000009", ".segment-notes", "segment-0001-000003", "kept"] {
            fs::create_dir(folder.path().join(name)).expect("made");
        }
        // It ended at the beginning of 1970: as long ago as the clock can say.
        let forever = RingLimits { keep_ns: u64::MAX, ..LIMITS };
        let (mut keeper, torn) = RingKeeper::open(folder.path(), forever, 5).expect("opened");
        assert_eq!(torn, [2, 3].map(|number| SegmentName { run: 1, number }));
        segment(&mut keeper, 1);
        assert_eq!(numbers(folder.path()), [(1, 1), (2, 1)]);
        let mut entries: Vec<_> =
            fs::read_dir(folder.path()).expect("listed").flatten().map(|e| e.file_name()).collect();
        entries.sort();
        assert_eq!(
            entries,
            [".lock", ".segment-notes", "kept", "segment-0001-000001", "segment-0002-000001"]
        );
    }
}
