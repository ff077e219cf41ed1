//! A partition that reads a cold file before each search.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Mutex;

use luc_twin_truth::{Kind, Planted};
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rustix::fs::{Advice, fadvise, fstatfs};

use super::Plant;
use super::progress::Window;
use super::span::Span;
use crate::error::TwinError;
use crate::log::Recorder;
use crate::spec::Spec;
use crate::sync::locked;

const FILE_BYTES: u64 = 32 << 20;
const CHUNK_BYTES: usize = 1 << 20;
/// What one read reads.
const READ_BYTES: usize = 64 << 10;
/// Reads for each search, from and to.
const DRAWN: [u64; 2] = [32, 96];
/// `TMPFS_MAGIC` of linux/magic.h.
const TMPFS: i64 = 0x0102_1994;

#[derive(Debug)]
pub(super) struct Disk {
    window: Window,
    file: File,
    reads: u64,
    places: Mutex<ChaCha8Rng>,
    span: Span,
}

impl Disk {
    pub(super) fn draw(
        spec: &Spec,
        random: &mut ChaCha8Rng,
        searches: u64,
    ) -> Result<Self, TwinError> {
        let window = Window::draw(random, searches);
        let reads = random.random_range(DRAWN[0]..=DRAWN[1]);
        let directory = Path::new(spec.directory()?);
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
        Ok(Self {
            window,
            file,
            reads,
            places: Mutex::new(ChaCha8Rng::from_rng(random)),
            span: Span::new(Kind::Disk, reads),
        })
    }

    fn read(&self) -> Result<(), TwinError> {
        let what = "reading a cold file";
        fadvise(&self.file, 0, None, Advice::DontNeed).map_err(TwinError::system(what))?;
        let mut bytes = vec![0; READ_BYTES];
        for _ in 0..self.reads {
            let place = locked(&self.places).random_range(0..FILE_BYTES / READ_BYTES as u64);
            self.file
                .read_exact_at(&mut bytes, place * READ_BYTES as u64)
                .map_err(TwinError::system(what))?;
        }
        Ok(())
    }
}

impl Plant for Disk {
    fn before_search(
        &self,
        ordinal: u64,
        request: u64,
        recorder: &Recorder,
    ) -> Result<(), TwinError> {
        if !self.window.has(ordinal) {
            return Ok(());
        }
        self.span.work(request, recorder, || self.read())
    }

    fn planted(&self) -> Vec<Planted> {
        self.span.planted()
    }
}

/// A file without a name in a directory of a disk: it is gone when the process is.
pub(super) fn unnamed(directory: &Path) -> Result<File, TwinError> {
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
