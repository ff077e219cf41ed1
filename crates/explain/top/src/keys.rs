//! Keys, as in htop.

use super::model::{Mode, Prompt, Top};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Char(char),
    /// A character together with the control key.
    Control(char),
    F(u8),
    Up,
    Down,
    PageUp,
    PageDown,
    /// To the first line.
    Home,
    /// To the last line.
    End,
    /// To the other table.
    Tab,
    Enter,
    Escape,
    Backspace,
}

/// Work that a key leaves to the event loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Draw the view again.
    Draw,
    /// Draw the view again on an empty terminal.
    Clear,
    /// Stop the program until it is continued.
    Suspend,
    Quit,
}

impl Top {
    /// Acts on a key.
    pub fn key(&mut self, key: Key) -> Action {
        match key {
            Key::Control('c') => return Action::Quit,
            Key::Control('z') => return Action::Suspend,
            Key::Control('l') => return Action::Clear,
            _ => {}
        }
        self.message = None;
        match std::mem::take(&mut self.mode) {
            Mode::View => return self.view_key(key),
            Mode::Help(line) => self.help_key(key, line),
            Mode::Sort(column) => self.sort_key(key, column),
            Mode::Prompt(prompt, text) => self.prompt_key(key, prompt, text),
        }
        Action::Draw
    }

    fn view_key(&mut self, key: Key) -> Action {
        match key {
            Key::Char('q') | Key::F(10) => return Action::Quit,
            Key::F(1) | Key::Char('h' | '?') => self.mode = Mode::Help(0),
            Key::F(3) | Key::Char('/') => self.ask(Prompt::Search),
            Key::F(4) | Key::Char('\\') => self.ask(Prompt::Filter),
            Key::F(6) | Key::Char('>' | '.') => self.mode = Mode::Sort(self.list().sort),
            Key::Char('I') => self.list_mut().inverted ^= true,
            Key::Char('n') => self.find_next(),
            Key::Char(' ' | 'Z') => self.paused ^= true,
            Key::Char('H') => self.threads ^= true,
            Key::Char('d' | 's') => self.ask(Prompt::Delay),
            Key::Char('+') => self.set_delay(self.delay_ms.saturating_mul(2)),
            Key::Char('-') => self.set_delay(self.delay_ms / 2),
            Key::Tab => self.turn_pane(),
            Key::Escape => self.forget_filter(),
            Key::Up | Key::Char('k') => self.step(-1),
            Key::Down | Key::Char('j') => self.step(1),
            Key::PageUp => self.step(-self.page()),
            Key::PageDown => self.step(self.page()),
            Key::Home => self.step(isize::MIN),
            Key::End => self.step(isize::MAX),
            _ => {}
        }
        Action::Draw
    }

    fn ask(&mut self, prompt: Prompt) {
        let text = match prompt {
            Prompt::Filter => self.list().filter.clone(),
            Prompt::Search | Prompt::Delay => String::new(),
        };
        self.mode = Mode::Prompt(prompt, text);
    }

    fn help_key(&mut self, key: Key, line: u16) {
        self.mode = match key {
            Key::Up | Key::Char('k') => Mode::Help(line.saturating_sub(1)),
            Key::Down | Key::Char('j') => Mode::Help(line.saturating_add(1)),
            Key::PageUp => Mode::Help(line.saturating_sub(10)),
            Key::PageDown => Mode::Help(line.saturating_add(10)),
            Key::Home => Mode::Help(0),
            _ => Mode::View,
        };
    }

    fn sort_key(&mut self, key: Key, column: usize) {
        let last = self.titles().len().saturating_sub(1);
        self.mode = match key {
            Key::Up | Key::Char('k') => Mode::Sort(column.saturating_sub(1)),
            Key::Down | Key::Char('j') => Mode::Sort((column + 1).min(last)),
            Key::Home | Key::PageUp => Mode::Sort(0),
            Key::End | Key::PageDown => Mode::Sort(last),
            Key::Enter | Key::F(6) => {
                let list = self.list_mut();
                list.sort = column;
                list.inverted = false;
                Mode::View
            }
            _ => Mode::View,
        };
    }

    fn prompt_key(&mut self, key: Key, prompt: Prompt, mut text: String) {
        match key {
            Key::Char(character) if text.len() < 64 => text.push(character),
            Key::Backspace => {
                text.pop();
            }
            Key::Escape => {
                if prompt == Prompt::Filter {
                    self.list_mut().filter.clear();
                }
                return;
            }
            Key::Enter => return self.take(prompt, text),
            Key::F(3) if prompt == Prompt::Search => {
                self.search = text.clone();
                self.find_next();
            }
            Key::Up => self.step(-1),
            Key::Down => self.step(1),
            _ => {}
        }
        match prompt {
            Prompt::Search if matches!(key, Key::Char(_) | Key::Backspace) => {
                self.search.clone_from(&text);
                self.find(0);
            }
            Prompt::Filter => self.list_mut().filter.clone_from(&text),
            Prompt::Search | Prompt::Delay => {}
        }
        self.mode = Mode::Prompt(prompt, text);
    }

    fn take(&mut self, prompt: Prompt, text: String) {
        match prompt {
            Prompt::Search => self.search = text,
            Prompt::Filter => self.list_mut().filter = text,
            Prompt::Delay => match text.trim().parse::<f64>() {
                Ok(seconds) if seconds.is_finite() && seconds > 0.0 => {
                    self.set_delay((seconds * 1e3) as u64);
                }
                _ => self.message = Some(format!("'{text}' is no number of seconds")),
            },
        }
    }
}
