//! A trouble that a thread of its own begins and ends, by how many searches have come.

use std::sync::Arc;

use luc_twin_truth::Planted;

use super::Plant;
use super::progress::Progress;
use super::span::Span;
use crate::error::TwinError;
use crate::fatal::spawn;
use crate::log::Recorder;

#[derive(Debug)]
pub(super) struct Switched {
    progress: Arc<Progress>,
    span: Arc<Span>,
}

impl Switched {
    /// Has a thread of this name do `switch`, which waits for searches and says when the trouble is there.
    pub(super) fn spawn(
        name: &str,
        span: Span,
        switch: impl FnOnce(&Progress, &Span) -> Result<(), TwinError> + Send + 'static,
    ) -> Result<Self, TwinError> {
        let plant = Self {
            progress: Progress::new(),
            span: Arc::new(span),
        };
        let (progress, span) = (Arc::clone(&plant.progress), Arc::clone(&plant.span));
        spawn(name, move || switch(&progress, &span))?;
        Ok(plant)
    }
}

impl Plant for Switched {
    fn before_search(&self, ordinal: u64, _: u64, _: &Recorder) -> Result<(), TwinError> {
        self.progress.reach(ordinal);
        Ok(())
    }

    fn planted(&self) -> Vec<Planted> {
        self.span.planted()
    }
}
