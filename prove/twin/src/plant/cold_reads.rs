//! A partition that reads a cold file before each search.

use std::path::Path;

use luc_twin_truth::{Kind, Planted};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::Plant;
use super::cold::ColdFile;
use super::progress::Window;
use super::span::Span;
use crate::error::TwinError;
use crate::log::Recorder;
use crate::spec::Spec;

/// Range of the number of reads for each search.
const READS: [u64; 2] = [32, 96];

#[derive(Debug)]
pub(super) struct ColdReads {
    window: Window,
    file: ColdFile,
    reads: u64,
    span: Span,
}

impl ColdReads {
    pub(super) fn draw(
        spec: &Spec,
        random: &mut ChaCha8Rng,
        searches: u64,
    ) -> Result<Self, TwinError> {
        let window = Window::draw(random, searches);
        let reads = random.random_range(READS[0]..=READS[1]);
        Ok(Self {
            window,
            file: ColdFile::make(Path::new(spec.directory()?), random)?,
            reads,
            span: Span::new(Kind::Disk, reads),
        })
    }
}

impl Plant for ColdReads {
    fn before_search(
        &self,
        ordinal: u64,
        request: u64,
        recorder: &Recorder,
    ) -> Result<(), TwinError> {
        if !self.window.has(ordinal) {
            return Ok(());
        }
        let read = || self.file.read(self.reads);
        self.span.work(request, recorder, read)
    }

    fn planted(&self) -> Vec<Planted> {
        self.span.planted()
    }
}
