//! A trouble that a thread of its own begins and ends by the number of searches.

use std::sync::Arc;

use luc_network::NetworkError;
use luc_twin_truth::Planted;

use super::Plant;
use super::progress::{Progress, Window};
use super::span::Span;
use crate::error::TwinError;
use crate::fatal::spawn;
use crate::log::Recorder;
use crate::neighbour::{Neighbour, NeighbourOptions};

#[derive(Debug)]
pub(super) struct Switched {
    progress: Arc<Progress>,
    pub(super) span: Arc<Span>,
}

impl Switched {
    /// Has another process be in the way in this window.
    pub(super) fn neighbour(
        name: &str,
        span: Span,
        window: Window,
        options: NeighbourOptions,
    ) -> Result<Self, TwinError> {
        Self::spawn(name, span, move |progress, span| {
            progress.wait_for(window.from);
            let neighbour = Neighbour::start(&options)?;
            span.set_holder(neighbour.process());
            span.begin();
            progress.wait_for(window.to);
            neighbour.end()?;
            span.end();
            Ok(())
        })
    }

    /// Calls tc when this window begins, and again when as many searches as the window's have come since.
    pub(super) fn network(
        name: &str,
        span: Span,
        window: Window,
        begin: impl Fn() -> Result<(), NetworkError> + Send + 'static,
        end: fn() -> Result<(), NetworkError>,
    ) -> Result<Self, TwinError> {
        // What this kernel cannot do is said before the run.
        begin()?;
        end()?;
        Self::spawn(name, span, move |progress, span| {
            progress.wait_for(window.from);
            span.begin();
            begin()?;
            // tc takes a while: the searches that came meanwhile have not met it.
            progress.wait_for(progress.seen() + window.length());
            end()?;
            span.end();
            Ok(())
        })
    }

    /// Starts a thread of this name for `switch`, which waits for searches and begins and ends the trouble.
    pub(super) fn spawn(
        name: &str,
        span: Span,
        switch: impl FnOnce(&Progress, &Span) -> Result<(), TwinError> + Send + 'static,
    ) -> Result<Self, TwinError> {
        let plant = Self { progress: Progress::new(), span: Arc::new(span) };
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
