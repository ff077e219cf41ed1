//! The terminal: keys, resizes, signals, and giving it back as it was.

use std::io::{Stdout, Write as _, stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::Rect;
use ratatui::{Frame, Terminal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGCONT, SIGTSTP};
use signal_hook::low_level::emulate_default_handler;

use crate::error::{TopError, failed};
use crate::live_analysis::{LiveAnalysis, POLL_INTERVAL};
use crate::{KeyAction, KeyPress, TopState};

/// Shows the view in the terminal until a key ends it or `ended` is set. The terminal is as before when it returns.
///
/// # Errors
/// [`TopError`]: the recorder ended, or the terminal is none.
pub fn show(mut live: LiveAnalysis, delay_ms: u64, ended: &AtomicBool) -> Result<(), TopError> {
    let top = TopState::new(delay_ms, has_colours(), live.missing.clone());
    let mut shown = LucTop { live: &mut live, top, looked: None };
    let outcome = show_view(&mut shown, POLL_INTERVAL, ended);
    live.stop()?;
    outcome
}

/// The view of `luc top` and its source.
struct LucTop<'a> {
    live: &'a mut LiveAnalysis,
    top: TopState,
    looked: Option<Instant>,
}

impl TerminalView for LucTop<'_> {
    fn draw(&mut self, frame: &mut Frame<'_>) {
        self.top.draw(frame);
    }

    fn key(&mut self, key: KeyPress) -> KeyAction {
        self.top.key(key)
    }

    fn go_on(&mut self) -> Result<bool, TopError> {
        self.live.take_in()?;
        let delay = Duration::from_millis(self.top.delay_ms());
        match self.looked {
            None if self.live.is_warm() => {
                self.live.look()?;
                self.looked = Some(Instant::now());
                Ok(false)
            }
            Some(last) if last.elapsed() >= delay => {
                self.looked = Some(Instant::now());
                self.top.update(self.live.look()?);
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

/// Reads from NO_COLOR whether the user wants colours.
pub(crate) fn has_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// A view that fills a terminal.
pub(crate) trait TerminalView {
    fn draw(&mut self, frame: &mut Frame<'_>);

    /// Acts on a key. Returns what the terminal has to do.
    fn key(&mut self, key: KeyPress) -> KeyAction;

    /// Takes in what is new. Returns whether there is something new to draw.
    fn go_on(&mut self) -> Result<bool, TopError>;
}

/// Shows a view until a key ends it or `ended` is set. The view goes on every `step` and at each key. The terminal is
/// as before when this returns.
pub(crate) fn show_view(
    view: &mut impl TerminalView,
    step: Duration,
    ended: &AtomicBool,
) -> Result<(), TopError> {
    let signals = Signals::new()?;
    let mut screen = Screen::take()?;
    let mut draw = true;
    while !ended.load(Ordering::Relaxed) {
        if draw {
            screen.draw(|frame| view.draw(frame))?;
            draw = false;
        }
        if !wait_for_input(step)? {
            return Ok(());
        }
        if event::poll(Duration::ZERO).map_err(failed("the terminal cannot be read"))? {
            let action = match event::read().map_err(failed("the terminal cannot be read"))? {
                Event::Key(pressed) => known_key(pressed).map(|key| view.key(key)),
                Event::Resize(..) => Some(KeyAction::Draw),
                _ => None,
            };
            match action {
                Some(KeyAction::Quit) => return Ok(()),
                Some(KeyAction::Suspend) => signals.stop.store(true, Ordering::Relaxed),
                Some(KeyAction::Clear) => screen.clear()?,
                Some(KeyAction::Draw) | None => {}
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
        draw |= view.go_on()?;
    }
    Ok(())
}

/// Waits for input from the terminal, at most for `step`, which is below a second. Returns `false` if the terminal is
/// gone: crossterm would read its end for ever.
fn wait_for_input(step: Duration) -> Result<bool, TopError> {
    let stdin = stdin();
    let step = Timespec { tv_sec: 0, tv_nsec: step.subsec_nanos().into() };
    let mut terminal = [PollFd::new(&stdin, PollFlags::IN)];
    match poll(&mut terminal, Some(&step)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(failed("the terminal cannot be read")(error.into())),
    }
    let gone = PollFlags::HUP | PollFlags::ERR;
    Ok(!terminal[0].revents().intersects(gone))
}

/// Flags that signals set.
struct Signals {
    stop: Arc<AtomicBool>,
    go_on: Arc<AtomicBool>,
}

impl Signals {
    fn new() -> Result<Self, TopError> {
        let signals = Self { stop: Arc::default(), go_on: Arc::default() };
        for (signal, flag) in [(SIGTSTP, &signals.stop), (SIGCONT, &signals.go_on)] {
            signal_hook::flag::register(signal, Arc::clone(flag))
                .map_err(failed("signals cannot be handled"))?;
        }
        Ok(signals)
    }
}

/// The terminal while it is ours. Dropping it restores the terminal.
struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    fn take() -> Result<Self, TopError> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
        enter()?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout()))
            .inspect_err(|_| give_back())
            .map_err(failed("the terminal cannot be used"))?;
        Ok(Self { terminal })
    }

    fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> Result<(), TopError> {
        self.terminal.draw(draw).map_err(failed("the terminal cannot be written"))?;
        Ok(())
    }

    /// Empties the terminal at its present size. `Terminal::clear` would ask the terminal for the cursor's place and
    /// wait for the answer.
    fn clear(&mut self) -> Result<(), TopError> {
        let size = self.terminal.size();
        size.and_then(|size| self.terminal.resize(Rect::new(0, 0, size.width, size.height)))
            .map_err(failed("the terminal cannot be written"))
    }

    /// Gives the terminal back and stops this process until it is continued.
    fn suspend(&mut self) -> Result<(), TopError> {
        give_back();
        emulate_default_handler(SIGTSTP).map_err(failed("the program cannot be stopped"))?;
        self.retake()
    }

    /// Takes the terminal again, whatever happened to it.
    fn retake(&mut self) -> Result<(), TopError> {
        enter()?;
        self.clear()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn enter() -> Result<(), TopError> {
    enable_raw_mode().map_err(failed("the terminal cannot be set up"))?;
    execute!(stdout(), EnterAlternateScreen, Hide)
        .inspect_err(|_| give_back())
        .map_err(failed("the terminal cannot be set up"))
}

/// Restores the terminal. An error means that it is gone, so that nothing is left to do.
fn give_back() {
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
    let _ = stdout().flush();
}

/// Translates a key, if the view knows it.
fn known_key(pressed: KeyEvent) -> Option<KeyPress> {
    if pressed.kind == KeyEventKind::Release {
        return None;
    }
    let control = pressed.modifiers.contains(KeyModifiers::CONTROL);
    Some(match pressed.code {
        KeyCode::Char(character) if control => KeyPress::Control(character),
        KeyCode::Char(character) => KeyPress::Char(character),
        KeyCode::F(number) => KeyPress::F(number),
        KeyCode::Up => KeyPress::Up,
        KeyCode::Down => KeyPress::Down,
        KeyCode::PageUp => KeyPress::PageUp,
        KeyCode::PageDown => KeyPress::PageDown,
        KeyCode::Home => KeyPress::Home,
        KeyCode::End => KeyPress::End,
        KeyCode::Tab | KeyCode::BackTab => KeyPress::Tab,
        KeyCode::Enter => KeyPress::Enter,
        KeyCode::Esc => KeyPress::Escape,
        KeyCode::Backspace => KeyPress::Backspace,
        _ => return None,
    })
}
