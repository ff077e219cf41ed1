//! A partition that is several times larger. Its weight is in every process' options; this file makes the row of the
//! truth.

use luc_twin_truth::{Kind, Planted};
use rand::RngExt as _;

use super::span::Span;
use super::{Plant, random};
use crate::error::TwinError;
use crate::spec::Spec;

const WEIGHTS: [u32; 2] = [5, 9];

#[derive(Debug)]
pub(super) struct Larger(Span);

impl Larger {
    pub(super) fn new(spec: &Spec, weight: Option<u32>) -> Result<Self, TwinError> {
        let weight = weight.ok_or_else(|| spec.wrong("there is no such partition"))?;
        Ok(Self(Span::open(Kind::Larger, weight.into())))
    }
}

impl Plant for Larger {
    fn planted(&self) -> Vec<Planted> {
        self.0.planted()
    }
}

/// Returns the weight of the planted partition, where the others have 1.
pub(crate) fn weight(spec: &Spec, seed: u64) -> Result<u32, TwinError> {
    let drawn = random(seed, Kind::Larger).random_range(WEIGHTS[0]..=WEIGHTS[1]);
    let weight = spec.number()?.map(u32::try_from).transpose();
    let weight = weight.map_err(|_| spec.wrong("that is too large"))?;
    Ok(weight.unwrap_or(drawn))
}
