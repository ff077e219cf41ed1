//! The view in a terminal.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use luc_throttle::watch::Watch;
use ratatui::crossterm::event::{self, Event};

use super::print::STEP;
use super::view::View;
use crate::Action;
use crate::error::{TopError, failed};
use crate::screen::{Screen, Signals, is_there, key};

/// Shows the view until a key ends it, or `ended`, and gives the terminal back as it was.
///
/// # Errors
/// [`TopError`]: nothing can be seen any more, or the terminal is none.
pub fn show(mut watch: Watch, delay_ms: u64, ended: &AtomicBool) -> Result<(), TopError> {
    let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut view = View::new(delay_ms, colours);
    let signals = Signals::new()?;
    let mut screen = Screen::take()?;
    let (mut stepped, mut looked) = (Instant::now(), Instant::now());
    let mut draw = true;
    while !ended.load(Ordering::Relaxed) {
        if draw {
            screen.draw(|frame| view.draw(frame))?;
            draw = false;
        }
        if !is_there(STEP)? {
            return Ok(());
        }
        if event::poll(Duration::ZERO).map_err(failed("the terminal cannot be read"))? {
            let action = match event::read().map_err(failed("the terminal cannot be read"))? {
                Event::Key(pressed) => key(pressed).map(|key| view.key(key)),
                Event::Resize(..) => Some(Action::Draw),
                _ => None,
            };
            match action {
                Some(Action::Quit) => return Ok(()),
                Some(Action::Suspend) => signals.stop.store(true, Ordering::Relaxed),
                Some(Action::Clear) => screen.clear()?,
                Some(Action::Draw) | None => {}
            }
            draw |= action.is_some();
        }
        if signals.stop.swap(false, Ordering::Relaxed) {
            screen.suspend()?;
            draw = true;
        }
        if signals.go_on.swap(false, Ordering::Relaxed) {
            screen.retake()?;
            draw = true;
        }
        if stepped.elapsed() >= STEP {
            stepped = Instant::now();
            watch.step()?;
        }
        if looked.elapsed() >= Duration::from_millis(view.delay_ms()) {
            looked = Instant::now();
            view.update(watch.seen());
            draw = true;
        }
    }
    Ok(())
}
