//! A back end whose packets get lost on their way in: questions, and what acknowledges its answers.

use std::sync::Arc;

use luc_twin_truth::{Kind, Planted};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::Plant;
use super::progress::{Progress, Window};
use super::span::Span;
use crate::error::TwinError;
use crate::fatal::spawn;
use crate::log::Recorder;
use crate::network::{lose, lose_nothing};
use crate::spec::Spec;

/// Percent, from and to.
const DRAWN: [u64; 2] = [4, 12];
const MAX_PERCENT: u64 = 50;

#[derive(Debug)]
pub(super) struct Loss {
    progress: Arc<Progress>,
    span: Arc<Span>,
}

impl Loss {
    pub(super) fn draw(
        spec: &Spec,
        random: &mut ChaCha8Rng,
        searches: u64,
    ) -> Result<Self, TwinError> {
        let window = Window::draw(random, searches);
        let drawn = random.random_range(DRAWN[0]..=DRAWN[1]);
        let percent = spec.number()?.unwrap_or(drawn);
        if percent > MAX_PERCENT {
            return Err(spec.wrong("more than 50 % loss ends connections"));
        }
        // What this kernel cannot do is said before the run.
        lose(percent)?;
        lose_nothing()?;
        let loss = Self {
            progress: Progress::new(),
            span: Arc::new(Span::new(Kind::Loss, percent)),
        };
        let (progress, span) = (Arc::clone(&loss.progress), Arc::clone(&loss.span));
        let switch = move || {
            progress.wait_for(window.from);
            span.begin();
            lose(percent)?;
            // tc takes a while: the searches that came meanwhile have not met it.
            progress.wait_for(progress.seen() + window.length());
            lose_nothing()?;
            span.end();
            Ok(())
        };
        spawn("loss", switch)?;
        Ok(loss)
    }
}

impl Plant for Loss {
    fn before_search(&self, ordinal: u64, _: u64, _: &Recorder) -> Result<(), TwinError> {
        self.progress.reach(ordinal);
        Ok(())
    }

    fn planted(&self) -> Vec<Planted> {
        self.span.planted()
    }
}
