//! A file on a disk that is not in the page cache.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Mutex;

use rand::{Rng as _, RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rustix::fs::{Advice, fadvise, fstatfs};

use crate::error::TwinError;
use crate::sync::locked;

const FILE_BYTES: u64 = 32 << 20;
const CHUNK_BYTES: usize = 1 << 20;
const READ_BYTES: usize = 64 << 10;
const TMPFS: i64 = 0x0102_1994;

/// A file without a name, and the places of its next reads.
#[derive(Debug)]
pub(super) struct ColdFile {
    file: File,
    places: Mutex<ChaCha8Rng>,
}

impl ColdFile {
    pub(super) fn make(directory: &Path, random: &mut ChaCha8Rng) -> Result<Self, TwinError> {
        let mut file = unnamed(directory)?;
        let failed = || TwinError::file(directory);
        let mut chunk = vec![0; CHUNK_BYTES];
        for _ in 0..FILE_BYTES / CHUNK_BYTES as u64 {
            random.fill_bytes(&mut chunk);
            file.write_all(&chunk).map_err(failed())?;
        }
        // Only pages that are on the disk can be dropped.
        file.sync_all().map_err(failed())?;
        fadvise(&file, 0, None, Advice::Random).map_err(TwinError::file(directory))?;
        Ok(Self { file, places: Mutex::new(ChaCha8Rng::from_rng(random)) })
    }

    /// Drops the file's pages and reads it at `reads` random places.
    pub(super) fn read(&self, reads: u64) -> Result<(), TwinError> {
        let what = "reading a cold file";
        fadvise(&self.file, 0, None, Advice::DontNeed).map_err(TwinError::system(what))?;
        let mut bytes = vec![0; READ_BYTES];
        for _ in 0..reads {
            let place = locked(&self.places).random_range(0..FILE_BYTES / READ_BYTES as u64);
            self.file
                .read_exact_at(&mut bytes, place * READ_BYTES as u64)
                .map_err(TwinError::system(what))?;
        }
        Ok(())
    }
}

/// Makes a file without a name in a directory of a disk. It is gone when the process is.
pub(crate) fn unnamed(directory: &Path) -> Result<File, TwinError> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_TMPFILE)
        .mode(0o600)
        .open(directory)
        .map_err(TwinError::file(directory))?;
    let about = fstatfs(&file).map_err(TwinError::file(directory))?;
    #[allow(clippy::unnecessary_cast)] // The type differs between architectures.
    if about.f_type as i64 == TMPFS {
        return Err(TwinError::Option {
            what: directory.display().to_string(),
            why: "it is in memory (tmpfs); give a directory on a disk".into(),
        });
    }
    Ok(file)
}
