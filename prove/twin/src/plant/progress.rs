//! How far a run is: counted in searches, so that a plant meets requests however fast the machine is.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use crate::sync::locked;

/// Where a window begins and ends, as shares of all searches.
const BEGINS: [f64; 2] = [0.25, 0.4];
const ENDS: [f64; 2] = [0.6, 0.75];

/// The searches that a plant meets, from and to, each included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Window {
    /// A part in the middle of so many searches.
    pub(super) fn draw(random: &mut ChaCha8Rng, searches: u64) -> Self {
        let mut at = |[from, to]: [f64; 2]| {
            let share = random.random_range(from..to);
            (searches as f64 * share) as u64
        };
        let from = at(BEGINS).max(1);
        Self {
            from,
            to: at(ENDS).max(from),
        }
    }

    pub(super) fn has(&self, ordinal: u64) -> bool {
        (self.from..=self.to).contains(&ordinal)
    }
}

/// Tells threads of a plant how many searches have come.
#[derive(Debug)]
pub(super) struct Progress {
    /// Of these alone somebody is told, sorted.
    marks: Vec<u64>,
    reached: Mutex<u64>,
    changed: Condvar,
}

impl Progress {
    pub(super) fn new(mut marks: Vec<u64>) -> Arc<Self> {
        marks.sort_unstable();
        Arc::new(Self {
            marks,
            reached: Mutex::new(0),
            changed: Condvar::new(),
        })
    }

    /// The `ordinal`th search is there.
    pub(super) fn reach(&self, ordinal: u64) {
        if self.marks.binary_search(&ordinal).is_ok() {
            let mut reached = locked(&self.reached);
            *reached = ordinal.max(*reached);
            self.changed.notify_all();
        }
    }

    /// Whether a mark has been reached.
    pub(super) fn is_reached(&self, mark: u64) -> bool {
        *locked(&self.reached) >= mark
    }

    /// Waits for one of the marks.
    pub(super) fn wait_for(&self, mark: u64) {
        let mut reached = locked(&self.reached);
        while *reached < mark {
            reached = self
                .changed
                .wait(reached)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plant::random;
    use luc_twin_truth::Kind;

    #[test]
    fn windows_are_in_the_middle_and_differ() {
        let windows: Vec<Window> = (0..20)
            .map(|seed| Window::draw(&mut random(seed, Kind::Cpu), 1_000))
            .collect();
        for (at, window) in windows.iter().enumerate() {
            assert!((250..400).contains(&window.from) && (600..750).contains(&window.to));
            assert!(!windows[..at].contains(window));
        }
        let least = Window::draw(&mut random(0, Kind::Cpu), 1);
        assert!(least.from >= 1 && least.to >= least.from);
    }

    #[test]
    fn marks_are_told() {
        let progress = Progress::new(vec![7, 3]);
        progress.reach(2);
        assert!(!progress.is_reached(1));
        progress.reach(3);
        progress.wait_for(3);
        assert!(progress.is_reached(3) && !progress.is_reached(7));
    }
}
