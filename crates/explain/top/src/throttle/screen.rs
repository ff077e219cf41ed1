//! The view in a terminal.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use luc_throttle::activity_watch::ActivityWatch;
use ratatui::Frame;

use super::print_observations::POLL_INTERVAL;
use super::throttle_view::ThrottleView;
use crate::error::TopError;
use crate::screen::{self, has_colours, show_view};
use crate::{KeyAction, KeyPress};

/// Shows the view until a key ends it or `ended` is set. The terminal is as before when it returns.
///
/// # Errors
/// [`TopError`]: nothing can be seen any more, or the terminal is none.
pub fn show(watch: ActivityWatch, delay_ms: u64, ended: &AtomicBool) -> Result<(), TopError> {
    let mut shown = ThrottleTop {
        watch,
        view: ThrottleView::new(delay_ms, has_colours()),
        stepped: Instant::now(),
        looked: Instant::now(),
    };
    show_view(&mut shown, POLL_INTERVAL, ended)
}

/// The view of `luc throttle top` and its source.
struct ThrottleTop {
    watch: ActivityWatch,
    view: ThrottleView,
    stepped: Instant,
    looked: Instant,
}

impl screen::TerminalView for ThrottleTop {
    fn draw(&mut self, frame: &mut Frame<'_>) {
        self.view.draw(frame);
    }

    fn key(&mut self, key: KeyPress) -> KeyAction {
        self.view.key(key)
    }

    fn go_on(&mut self) -> Result<bool, TopError> {
        if self.stepped.elapsed() >= POLL_INTERVAL {
            self.stepped = Instant::now();
            self.watch.step()?;
        }
        let is_due = self.looked.elapsed() >= Duration::from_millis(self.view.delay_ms());
        if is_due {
            self.looked = Instant::now();
            self.view.update(self.watch.seen());
        }
        Ok(is_due)
    }
}
