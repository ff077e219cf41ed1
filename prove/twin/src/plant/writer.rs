//! A process on the same host whose data the kernel writes to the disk that the back end reads.

use std::path::PathBuf;

use luc_twin_truth::{Kind, Planted};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::Plant;
use super::cold::ColdFile;
use super::progress::Window;
use super::span::Span;
use super::switched::Switched;
use crate::error::TwinError;
use crate::log::Recorder;
use crate::neighbour::NeighbourOptions;
use crate::spec::Spec;

/// Range of the size of a write, MiB.
const WRITE_MIB: [u64; 2] = [4, 16];
/// Range of the number of reads for each search: few, so that only the writer makes them slow.
const READS: [u64; 2] = [2, 4];

#[derive(Debug)]
pub(super) struct Writer {
    switched: Switched,
    file: ColdFile,
    reads: u64,
    meets: Window,
}

impl Writer {
    pub(super) fn draw(
        spec: &Spec,
        random: &mut ChaCha8Rng,
        searches: u64,
    ) -> Result<Self, TwinError> {
        let meets = Window::draw(random, searches);
        let bytes = random.random_range(WRITE_MIB[0]..=WRITE_MIB[1]) << 20;
        let reads = random.random_range(READS[0]..=READS[1]);
        let directory = PathBuf::from(spec.directory()?);
        let file = ColdFile::make(&directory, random)?;
        let span = Span::new(Kind::Writer, bytes);
        let options = NeighbourOptions::Write { directory, bytes };
        Ok(Self {
            switched: Switched::neighbour("writer", span, meets, options)?,
            file,
            reads,
            meets,
        })
    }
}

impl Plant for Writer {
    fn before_search(
        &self,
        ordinal: u64,
        request: u64,
        recorder: &Recorder,
    ) -> Result<(), TwinError> {
        self.switched.before_search(ordinal, request, recorder)?;
        let read = || self.file.read(self.reads);
        if self.meets.has(ordinal) {
            self.switched.span.work(request, recorder, read)
        } else {
            read()
        }
    }

    fn planted(&self) -> Vec<Planted> {
        self.switched.planted()
    }
}
