//! A thread that only ticks: it wakes, does nothing and sleeps again. It serves no request and causes nothing.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use luc_twin_truth::{Kind, Planted};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::Plant;
use super::span::Span;
use crate::clock::now_ns;
use crate::error::TwinError;
use crate::fatal::spawn;
use crate::log::thread_id;

/// Range of the time between two wake-ups, ms.
const PERIOD_MS: [u64; 2] = [2, 20];

#[derive(Debug)]
pub(super) struct Tick(Arc<Span>);

impl Tick {
    pub(super) fn draw(how_ms: Option<u64>, random: &mut ChaCha8Rng) -> Result<Self, TwinError> {
        let drawn_ms = random.random_range(PERIOD_MS[0]..=PERIOD_MS[1]);
        let period = Duration::from_millis(how_ms.unwrap_or(drawn_ms));
        let period_ns = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        let span = Arc::new(Span::new(Kind::Tick, period_ns));
        let same = Arc::clone(&span);
        let tick = move || {
            same.set_thread(thread_id());
            loop {
                let from_ns = now_ns();
                thread::sleep(period);
                same.note([from_ns, now_ns()]);
            }
        };
        spawn("ticker", tick)?;
        Ok(Self(span))
    }
}

impl Plant for Tick {
    fn planted(&self) -> Vec<Planted> {
        self.0.planted()
    }
}
