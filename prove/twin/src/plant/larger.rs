//! A partition that is several times larger: its weight is in every process' options, and here is who knows it.

use luc_twin_truth::{Kind, Planted};
use rand::RngExt as _;

use super::{Plant, random};
use crate::clock::now_ns;
use crate::error::TwinError;
use crate::spec::Spec;

/// How many times, from and to.
const DRAWN: [u32; 2] = [5, 9];

#[derive(Debug)]
pub(super) struct Larger {
    from_ns: u64,
    weight: u32,
}

impl Larger {
    pub(super) fn new(spec: &Spec, weight: Option<u32>) -> Result<Self, TwinError> {
        Ok(Self {
            from_ns: now_ns(),
            weight: weight.ok_or_else(|| spec.wrong("there is no such partition"))?,
        })
    }
}

impl Plant for Larger {
    fn planted(&self) -> Vec<Planted> {
        vec![Planted {
            kind: Kind::Larger,
            from_ns: self.from_ns,
            to_ns: now_ns(),
            thread: 0,
            holder: 0,
            strength: self.weight.into(),
            times: 1,
        }]
    }
}

/// The weight of the planted partition, where the others have 1.
pub(crate) fn weight(spec: &Spec, seed: u64) -> Result<u32, TwinError> {
    let drawn = random(seed, Kind::Larger).random_range(DRAWN[0]..=DRAWN[1]);
    let weight = spec.number()?.map(u32::try_from).transpose();
    let weight = weight.map_err(|_| spec.wrong("that is too large"))?;
    Ok(weight.unwrap_or(drawn))
}
