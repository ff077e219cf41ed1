//! The view in a terminal.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use luc_throttle::watch::Watch;
use ratatui::Frame;

use super::print::POLL_INTERVAL;
use super::view::View;
use crate::error::TopError;
use crate::screen::{self, has_colours, show_view};
use crate::{Action, Key};

/// Shows the view until a key ends it or `ended` is set. The terminal is as before when it returns.
///
/// # Errors
/// [`TopError`]: nothing can be seen any more, or the terminal is none.
pub fn show(watch: Watch, delay_ms: u64, ended: &AtomicBool) -> Result<(), TopError> {
    let mut shown = ThrottleTop {
        watch,
        view: View::new(delay_ms, has_colours()),
        stepped: Instant::now(),
        looked: Instant::now(),
    };
    show_view(&mut shown, POLL_INTERVAL, ended)
}

/// The view of `luc throttle top` and its source.
struct ThrottleTop {
    watch: Watch,
    view: View,
    stepped: Instant,
    looked: Instant,
}

impl screen::View for ThrottleTop {
    fn draw(&mut self, frame: &mut Frame<'_>) {
        self.view.draw(frame);
    }

    fn key(&mut self, key: Key) -> Action {
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
