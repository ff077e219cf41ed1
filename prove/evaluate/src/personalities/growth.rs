//! Personalities whose files grow: Filebench's `write` goes on at the end of a file. In a minute a fast disk takes more
//! of that than it has room for. Nobody reads these files, so the space of what was written a while ago is given back
//! while the personality runs; it notices nothing.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::fs::FallocateFlags;

/// Those that only write, one call behind the other.
const GROWING: &[&str] =
    &["fivestreamwrite", "fivestreamwritedirect", "singlestreamwrite", "singlestreamwritedirect"];
/// What a file keeps of its end, bytes: more than a writer adds during one look at its size.
const KEPT_BYTES: u64 = 256 << 20;
/// Holes end at multiples of this, bytes: no block is partly in one.
const ALIGNMENT: u64 = 1 << 20;
/// How often the files are looked at.
const PERIOD: Duration = Duration::from_millis(200);

/// Whether the files of the personality `name` grow for as long as it runs.
pub(super) fn is_unbounded(name: &str) -> bool {
    GROWING.contains(&name)
}

/// Gives back the space of all but the end of the large files below `directory` until `ended`. What cannot be given
/// back stays: the personality then runs out of space and says so itself.
pub(super) fn confine(directory: &Path, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        let _ = release(directory);
        thread::sleep(PERIOD);
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
