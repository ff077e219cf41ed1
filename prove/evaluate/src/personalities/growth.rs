//! Personalities whose files grow: Filebench's `write` goes on at the end of a file.
//!
//! In a minute a fast disk writes more than it has room for. Nobody reads these files. So the space of older data is
//! freed while the personality runs, and it does not notice.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::fs::FallocateFlags;

/// Personalities that only write, one call after the other.
const GROWING: &[&str] =
    &["fivestreamwrite", "fivestreamwritedirect", "singlestreamwrite", "singlestreamwritedirect"];
/// Bytes that a file keeps at its end: more than a writer adds between two looks at its size.
const KEPT_BYTES: u64 = 256 << 20;
/// Alignment of holes, bytes, so that they end at block boundaries.
const ALIGNMENT: u64 = 1 << 20;
/// Interval at which the files are looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Whether the files of the personality `name` grow for as long as it runs.
pub(super) fn is_unbounded(name: &str) -> bool {
    GROWING.contains(&name)
}

/// Frees the space of all but the end of the large files below `directory` until `ended`. If that fails, the
/// personality runs out of space and says so itself.
pub(super) fn confine(directory: &Path, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        let _ = release(directory);
        thread::sleep(POLL_INTERVAL);
    }
}

fn release(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            release(&entry.path())?;
        } else if metadata.is_file() && metadata.len() > KEPT_BYTES {
            let end = (metadata.len() - KEPT_BYTES) / ALIGNMENT * ALIGNMENT;
            let file = File::options().write(true).open(entry.path())?;
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            rustix::fs::fallocate(file, hole, 0, end)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use luc_workload::scratch::Scratch;

    #[test]
    fn the_end_of_a_large_file_and_all_of_a_small_one_keep_their_space() {
        let scratch = Scratch::create(&std::env::temp_dir()).expect("a directory");
        let below = scratch.path().join("below");
        fs::create_dir(&below).expect("made");
        let (large, small) = (below.join("large"), below.join("small"));
        for (path, bytes) in [(&large, KEPT_BYTES + 2 * ALIGNMENT), (&small, ALIGNMENT)] {
            let file = File::create(path).expect("made");
            rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes).expect("room");
        }
        release(scratch.path()).expect("given back");
        let allocated = |path| fs::metadata(path).expect("there").blocks() * 512;
        assert_eq!(fs::metadata(&large).expect("there").len(), KEPT_BYTES + 2 * ALIGNMENT);
        assert!(allocated(&large) <= KEPT_BYTES + ALIGNMENT);
        assert!(allocated(&large) >= KEPT_BYTES);
        assert!(allocated(&small) >= ALIGNMENT);
    }

    #[test]
    fn the_growing_ones_are_personalities() {
        for name in GROWING {
            assert!(super::super::STOCKS.iter().any(|stock| stock.name == *name), "{name}");
        }
    }
}
