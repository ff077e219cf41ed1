//! A back end whose pool is too small.

use luc_twin_truth::{Kind, Planted};

use super::Plant;
use crate::clock::now_ns;
use crate::error::TwinError;
use crate::serve::{Answerer, Serve};
use crate::spec::Spec;

/// Workers where no number is given.
const WORKERS: u32 = 1;

#[derive(Debug)]
pub(super) struct Pool {
    from_ns: u64,
    workers: u32,
}

impl Pool {
    pub(super) fn new(spec: &Spec) -> Result<Self, TwinError> {
        let workers = spec.number()?.map(u32::try_from).transpose();
        let workers = workers.map_err(|_| spec.wrong("that is no small pool"))?;
        Ok(Self { from_ns: now_ns(), workers: workers.unwrap_or(WORKERS) })
    }
}

impl Plant for Pool {
    fn serve(&self) -> Option<Serve> {
        Some(Serve::Pool { workers: self.workers, answerer: Answerer::Connection })
    }

    fn planted(&self) -> Vec<Planted> {
        vec![Planted {
            kind: Kind::Pool,
            from_ns: self.from_ns,
            to_ns: now_ns(),
            thread: 0,
            holder: 0,
            strength: self.workers.into(),
            times: 1,
        }]
    }
}
