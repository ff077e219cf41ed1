//! A process on the same host whose data the kernel writes to the disk that the back end reads.

use std::path::PathBuf;
use std::sync::Arc;

use luc_twin_truth::{Kind, Planted};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::Plant;
use super::cold::ColdFile;
use super::progress::{Progress, Window};
use super::span::Span;
use crate::error::TwinError;
use crate::fatal::spawn;
use crate::log::Recorder;
use crate::neighbour::{Neighbour, NeighbourOptions};
use crate::spec::Spec;

/// MiB that are written at a time, from and to.
const DRAWN_MB: [u64; 2] = [4, 16];
/// Reads for each search, from and to: few, so that they take long only beside the writer.
const READS: [u64; 2] = [2, 4];

#[derive(Debug)]
pub(super) struct Writer {
    progress: Arc<Progress>,
    file: ColdFile,
    reads: u64,
    span: Arc<Span>,
    meets: Window,
}

impl Writer {
    pub(super) fn draw(
        spec: &Spec,
        random: &mut ChaCha8Rng,
        searches: u64,
    ) -> Result<Self, TwinError> {
        let window = Window::draw(random, searches);
        let bytes = random.random_range(DRAWN_MB[0]..=DRAWN_MB[1]) << 20;
        let reads = random.random_range(READS[0]..=READS[1]);
        let directory = PathBuf::from(spec.directory()?);
        let writer = Self {
            progress: Progress::new(),
            file: ColdFile::make(&directory, random)?,
            reads,
            span: Arc::new(Span::new(Kind::Writer, bytes)),
            meets: window,
        };
        let (progress, span) = (Arc::clone(&writer.progress), Arc::clone(&writer.span));
        spawn("writer", move || {
            progress.wait_for(window.from);
            let neighbour = Neighbour::start(&NeighbourOptions::Write { directory, bytes })?;
            span.set_holder(neighbour.process());
            span.begin();
            progress.wait_for(window.to);
            neighbour.end()?;
            span.end();
            Ok(())
        })?;
        Ok(writer)
    }
}

impl Plant for Writer {
    fn before_search(
        &self,
        ordinal: u64,
        request: u64,
        recorder: &Recorder,
    ) -> Result<(), TwinError> {
        self.progress.reach(ordinal);
        let read = || self.file.read(self.reads);
        if self.meets.has(ordinal) {
            self.span.work(request, recorder, read)
        } else {
            read()
        }
    }

    fn planted(&self) -> Vec<Planted> {
        self.span.planted()
    }
}
