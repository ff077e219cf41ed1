//! Planted troubles, a file each.

pub(crate) mod cold;
mod cold_reads;
mod cpu;
mod journal;
pub(crate) mod larger;
mod lock;
mod loss;
mod mutex;
mod pool;
mod progress;
mod quota;
mod rate;
pub(crate) mod share;
mod span;
mod stop;
mod switched;
mod tick;
mod writer;

use std::fmt::Debug;
use std::path::PathBuf;

use luc_twin_truth::{Kind, Planted};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use crate::error::TwinError;
use crate::log::Recorder;
use crate::serve::Serve;
use crate::spec::Spec;

/// Stream of the random numbers for troubles.
const PLANT_STREAM: u64 = 6 << 40;

/// A trouble in a back end.
trait Plant: Debug + Send + Sync {
    /// Called before the back end's `ordinal`th search, from 1, by the thread that serves it.
    fn before_search(
        &self,
        ordinal: u64,
        request: u64,
        recorder: &Recorder,
    ) -> Result<(), TwinError> {
        let _ = (ordinal, request, recorder);
        Ok(())
    }

    /// Way in which the back end serves, if the trouble changes it.
    fn serve(&self) -> Option<Serve> {
        None
    }

    /// Returns the rows of the trouble: one for each time that it was there.
    fn planted(&self) -> Vec<Planted>;
}

/// The back end of the troubles.
#[derive(Debug, Clone)]
pub(crate) struct PlantSite {
    pub(crate) seed: u64,
    pub(crate) searches: u64,
    /// Way in which the back end serves without troubles.
    pub(crate) serve: Serve,
    pub(crate) weight: Option<u32>,
    pub(crate) cgroup: Option<PathBuf>,
}

/// All troubles of a back end.
#[derive(Debug)]
pub(crate) struct Garden {
    serve: Serve,
    plants: Vec<Box<dyn Plant>>,
}

impl Garden {
    /// Makes the troubles before the first search.
    pub(crate) fn make(specs: &[Spec], place: &PlantSite) -> Result<Self, TwinError> {
        let plants: Result<Vec<_>, TwinError> =
            specs.iter().map(|spec| make(spec, place)).collect();
        let plants = plants?;
        let serve = plants.iter().find_map(|plant| plant.serve());
        Ok(Self { serve: serve.unwrap_or(place.serve), plants })
    }

    /// Way in which the back end serves.
    pub(crate) fn serve(&self) -> Serve {
        self.serve
    }

    pub(crate) fn before_search(
        &self,
        ordinal: u64,
        request: u64,
        recorder: &Recorder,
    ) -> Result<(), TwinError> {
        let mut each = self.plants.iter();
        each.try_for_each(|plant| plant.before_search(ordinal, request, recorder))
    }

    pub(crate) fn planted(&self) -> Vec<Planted> {
        let each = self.plants.iter();
        each.flat_map(|plant| plant.planted()).collect()
    }
}

fn make(spec: &Spec, place: &PlantSite) -> Result<Box<dyn Plant>, TwinError> {
    let mut random = random(place.seed, spec.kind);
    let random = &mut random;
    let searches = place.searches;
    Ok(match spec.kind {
        Kind::Cpu => Box::new(cpu::Cpu::draw(spec.number()?, random, searches)),
        Kind::Disk => Box::new(cold_reads::ColdReads::draw(spec, random, searches)?),
        Kind::Journal => Box::new(journal::Journal::draw(spec, random, searches)?),
        Kind::Lock => Box::new(lock::Lock::draw(spec.number()?, random, searches)?),
        Kind::Pool => Box::new(pool::Pool::new(spec)?),
        Kind::Larger => Box::new(larger::Larger::new(spec, place.weight)?),
        Kind::Tick => Box::new(tick::Tick::draw(spec.number()?, random)?),
        Kind::Quota => {
            let cgroup = place.cgroup.as_deref();
            Box::new(quota::draw(spec, random, searches, cgroup)?)
        }
        Kind::Loss => Box::new(loss::draw(spec, random, searches)?),
        Kind::Stop => Box::new(stop::draw(spec.number()?, random, searches)?),
        Kind::Rate => Box::new(rate::draw(spec.number()?, random, searches)?),
        Kind::Writer => Box::new(writer::Writer::draw(spec, random, searches)?),
        Kind::Share => return Err(spec.wrong("clients share, not back ends")),
    })
}

/// Returns the random numbers of a kind of trouble. Each kind has its own stream, so another trouble changes none.
pub(crate) fn random(seed: u64, kind: Kind) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(PLANT_STREAM + kind as u64);
    random
}
