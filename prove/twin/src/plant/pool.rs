//! A back end whose pool is too small.

use luc_twin_truth::{Kind, Planted};

use super::Plant;
use super::span::Span;
use crate::error::TwinError;
use crate::serve::{Answerer, Serve};
use crate::spec::Spec;

const DEFAULT_WORKERS: u32 = 1;

#[derive(Debug)]
pub(super) struct Pool {
    workers: u32,
    span: Span,
}

impl Pool {
    pub(super) fn new(spec: &Spec) -> Result<Self, TwinError> {
        let workers = spec.number()?.map(u32::try_from).transpose();
        let workers = workers.map_err(|_| spec.wrong("that is no small pool"))?;
        let workers = workers.unwrap_or(DEFAULT_WORKERS);
        Ok(Self { workers, span: Span::open(Kind::Pool, workers.into()) })
    }
}

impl Plant for Pool {
    fn serve(&self) -> Option<Serve> {
        Some(Serve::Pool { workers: self.workers, answerer: Answerer::Connection })
    }

    fn planted(&self) -> Vec<Planted> {
        self.span.planted()
    }
}
