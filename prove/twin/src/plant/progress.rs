//! Progress of a run, counted in searches, so that a plant meets requests on machines of any speed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use crate::sync::locked;

/// Ranges of a window's begin and end, as shares of all searches.
const BEGINS: [f64; 2] = [0.25, 0.4];
const ENDS: [f64; 2] = [0.6, 0.75];

/// The searches that a plant meets: first and last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Window {
    /// Draws a window in the middle of `searches` searches.
    pub(super) fn draw(random: &mut ChaCha8Rng, searches: u64) -> Self {
        let mut at = |[from, to]: [f64; 2]| {
            let share = random.random_range(from..to);
            (searches as f64 * share) as u64
        };
        let from = at(BEGINS).max(1);
        Self { from, to: at(ENDS).max(from) }
    }

    /// Number of searches in the window.
    pub(super) fn length(&self) -> u64 {
        self.to - self.from + 1
    }

    pub(super) fn has(&self, ordinal: u64) -> bool {
        (self.from..=self.to).contains(&ordinal)
    }
}

/// Tells one thread of a plant how many searches have come.
#[derive(Debug)]
pub(super) struct Progress {
    seen: AtomicU64,
    /// Ordinal of the search that the thread waits for.
    awaited: AtomicU64,
    turn: Mutex<()>,
    changed: Condvar,
}

impl Progress {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            seen: AtomicU64::new(0),
            awaited: AtomicU64::new(u64::MAX),
            turn: Mutex::new(()),
            changed: Condvar::new(),
        })
    }

    /// Notes that the `ordinal`th search has come.
    pub(super) fn reach(&self, ordinal: u64) {
        self.seen.fetch_max(ordinal, Ordering::SeqCst);
        // The thread says what it waits for before it looks at what has come: one of both sees the other.
        if ordinal >= self.awaited.load(Ordering::SeqCst) {
            let _turn = locked(&self.turn);
            self.changed.notify_all();
        }
    }

    /// Number of searches that have come.
    pub(super) fn seen(&self) -> u64 {
        self.seen.load(Ordering::SeqCst)
    }

    /// Waits until the `ordinal`th search has come.
    pub(super) fn wait_for(&self, ordinal: u64) {
        let mut turn = locked(&self.turn);
        self.awaited.store(ordinal, Ordering::SeqCst);
        while self.seen() < ordinal {
            turn = self.changed.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        self.awaited.store(u64::MAX, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::plant::random;
    use luc_twin_truth::Kind;

    #[test]
    fn windows_are_in_the_middle_and_differ() {
        let windows: Vec<Window> =
            (0..20).map(|seed| Window::draw(&mut random(seed, Kind::Cpu), 1_000)).collect();
        for (at, window) in windows.iter().enumerate() {
            assert!((250..400).contains(&window.from) && (600..750).contains(&window.to));
            assert!(!windows[..at].contains(window));
        }
        let least = Window::draw(&mut random(0, Kind::Cpu), 1);
        assert!(least.from >= 1 && least.to >= least.from);
    }

    #[test]
    fn a_thread_is_woken_when_its_search_has_come() {
        let progress = Progress::new();
        progress.wait_for(0);
        let same = Arc::clone(&progress);
        let waiter = thread::spawn(move || {
            same.wait_for(3);
            let woken = same.seen();
            same.wait_for(200);
            [woken, same.seen()]
        });
        // In no order, as from several threads.
        for ordinal in [2, 1, 4, 3] {
            progress.reach(ordinal);
        }
        for ordinal in 5..=200 {
            progress.reach(ordinal);
        }
        let [woken, end] = waiter.join().expect("joined");
        assert!(woken >= 3);
        assert_eq!(end, 200);
    }
}
