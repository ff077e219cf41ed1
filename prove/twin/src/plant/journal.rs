//! An indexer in the back end, which holds the index's lock while it writes and calls fsync.
//!
//! A search needs the lock for a moment. So it waits for the indexer, and the indexer for the journal.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use luc_twin_truth::{Kind, Planted};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::Plant;
use super::cold::unnamed;
use super::mutex::Mutex;
use super::progress::{Progress, Window};
use super::span::Span;
use crate::error::TwinError;
use crate::fatal::spawn;
use crate::log::{Recorder, thread_id};
use crate::spec::Spec;

/// Range of the size of the writes before each fsync, KiB.
const WRITE_KIB: [usize; 2] = [512, 2_048];
/// Size at which the indexer begins its file anew.
const FILE_BYTES: u64 = 64 << 20;
/// Range of the pause between two holds in which searches pass, us.
const PAUSE_US: [u64; 2] = [200, 1_000];

#[derive(Debug)]
pub(super) struct Journal {
    progress: Arc<Progress>,
    lock: Arc<Mutex>,
    span: Arc<Span>,
}

impl Journal {
    pub(super) fn draw(
        spec: &Spec,
        random: &mut ChaCha8Rng,
        searches: u64,
    ) -> Result<Self, TwinError> {
        let window = Window::draw(random, searches);
        let bytes = random.random_range(WRITE_KIB[0]..=WRITE_KIB[1]) << 10;
        let pause = Duration::from_micros(random.random_range(PAUSE_US[0]..=PAUSE_US[1]));
        let journal = Self {
            progress: Progress::new(),
            lock: Arc::new(Mutex::new()),
            span: Arc::new(Span::new(Kind::Journal, bytes as u64)),
        };
        let indexer = Indexer {
            window,
            progress: Arc::clone(&journal.progress),
            lock: Arc::clone(&journal.lock),
            span: Arc::clone(&journal.span),
            file: unnamed(Path::new(spec.directory()?))?,
            bytes,
            pause,
        };
        spawn("indexer", move || indexer.run())?;
        Ok(journal)
    }
}

impl Plant for Journal {
    fn before_search(
        &self,
        ordinal: u64,
        request: u64,
        recorder: &Recorder,
    ) -> Result<(), TwinError> {
        self.progress.reach(ordinal);
        self.lock.pass(request, recorder)
    }

    fn planted(&self) -> Vec<Planted> {
        self.span.planted()
    }
}

struct Indexer {
    window: Window,
    progress: Arc<Progress>,
    lock: Arc<Mutex>,
    span: Arc<Span>,
    file: File,
    bytes: usize,
    pause: Duration,
}

impl Indexer {
    fn run(self) -> Result<(), TwinError> {
        self.span.set_holder(thread_id());
        let failed = || TwinError::system("writing the index");
        let bytes = vec![0x5a; self.bytes];
        let mut at = 0;
        self.progress.wait_for(self.window.from);
        while self.progress.seen() <= self.window.to {
            let held = self.lock.lock()?;
            self.span.begin();
            if at >= FILE_BYTES {
                self.file.set_len(0).map_err(failed())?;
                at = 0;
            }
            self.file.write_all_at(&bytes, at).map_err(failed())?;
            at += self.bytes as u64;
            self.file.sync_all().map_err(failed())?;
            self.span.end();
            drop(held);
            thread::sleep(self.pause);
        }
        Ok(())
    }
}
