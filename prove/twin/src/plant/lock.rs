//! A thread that holds the index's lock since before the requests came, and again later.
//!
//! The lock is glibc's, so its futex word has its owner's thread id.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use luc_twin_truth::{Kind, Planted};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::Plant;
use super::mutex::Mutex;
use super::progress::{Progress, Window};
use super::span::Span;
use crate::error::TwinError;
use crate::fatal::spawn;
use crate::log::{Recorder, thread_id};

/// Range of the time that the lock is held while a search waits, ms.
const HOLD_MS: [u64; 2] = [60, 200];

#[derive(Debug)]
pub(super) struct Lock {
    progress: Arc<Progress>,
    lock: Arc<Mutex>,
    spans: [Arc<Span>; 2],
}

impl Lock {
    /// Takes the lock before it returns.
    pub(super) fn draw(
        how_ms: Option<u64>,
        random: &mut ChaCha8Rng,
        searches: u64,
    ) -> Result<Self, TwinError> {
        // The holder holds it when these searches come.
        let holds = [1, Window::draw(random, searches).from + 1];
        let drawn_ms = random.random_range(HOLD_MS[0]..=HOLD_MS[1]);
        let held = Duration::from_millis(how_ms.unwrap_or(drawn_ms));
        let strength_ns = u64::try_from(held.as_nanos()).unwrap_or(u64::MAX);
        let plant = Self {
            progress: Progress::new(),
            lock: Arc::new(Mutex::new()),
            spans: [0; 2].map(|_| Arc::new(Span::new(Kind::Lock, strength_ns))),
        };
        let holder = Holder {
            holds,
            held,
            progress: Arc::clone(&plant.progress),
            lock: Arc::clone(&plant.lock),
            spans: plant.spans.clone(),
        };
        let (is_held, first_hold) = mpsc::channel();
        spawn("holder", move || holder.run(&is_held))?;
        // An error means that the holder has failed, which ends the process.
        let _ = first_hold.recv();
        Ok(plant)
    }
}

impl Plant for Lock {
    fn before_search(
        &self,
        ordinal: u64,
        request: u64,
        recorder: &Recorder,
    ) -> Result<(), TwinError> {
        self.progress.reach(ordinal);
        self.lock.pass(request, recorder)
    }

    fn planted(&self) -> Vec<Planted> {
        let each = self.spans.iter();
        each.flat_map(|span| span.planted()).collect()
    }
}

struct Holder {
    holds: [u64; 2],
    held: Duration,
    progress: Arc<Progress>,
    lock: Arc<Mutex>,
    spans: [Arc<Span>; 2],
}

impl Holder {
    fn run(self, is_held: &mpsc::Sender<()>) -> Result<(), TwinError> {
        for (hold, span) in self.holds.into_iter().zip(&self.spans) {
            span.set_holder(thread_id());
            self.progress.wait_for(hold - 1);
            let held = self.lock.lock()?;
            span.begin();
            // Nobody listens for the second time.
            let _ = is_held.send(());
            self.progress.wait_for(hold);
            thread::sleep(self.held);
            span.end();
            drop(held);
        }
        Ok(())
    }
}
