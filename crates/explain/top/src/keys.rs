//! Keys, as in htop.

use super::top_state::{InputMode, TextPrompt, TopState};

/// Key that was pressed in the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPress {
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
pub enum KeyAction {
    /// Draw the view again.
    Draw,
    /// Draw the view again on an empty terminal.
    Clear,
    /// Stop the program until it is continued.
    Suspend,
    Quit,
}

impl TopState {
    /// Acts on a key.
    pub fn key(&mut self, key: KeyPress) -> KeyAction {
        match key {
            KeyPress::Control('c') => return KeyAction::Quit,
            KeyPress::Control('z') => return KeyAction::Suspend,
            KeyPress::Control('l') => return KeyAction::Clear,
            _ => {}
        }
        self.message = None;
        match std::mem::take(&mut self.mode) {
            InputMode::View => return self.view_key(key),
            InputMode::Help(line) => self.help_key(key, line),
            InputMode::Sort(column) => self.sort_key(key, column),
            InputMode::Prompt(prompt, text) => self.prompt_key(key, prompt, text),
        }
        KeyAction::Draw
    }

    fn view_key(&mut self, key: KeyPress) -> KeyAction {
        match key {
            KeyPress::Char('q') | KeyPress::F(10) => return KeyAction::Quit,
            KeyPress::F(1) | KeyPress::Char('h' | '?') => self.mode = InputMode::Help(0),
            KeyPress::F(3) | KeyPress::Char('/') => self.ask(TextPrompt::Search),
            KeyPress::F(4) | KeyPress::Char('\\') => self.ask(TextPrompt::Filter),
            KeyPress::F(6) | KeyPress::Char('>' | '.') => {
                self.mode = InputMode::Sort(self.list().sort)
            }
            KeyPress::Char('I') => self.list_mut().inverted ^= true,
            KeyPress::Char('n') => self.find_next(),
            KeyPress::Char(' ' | 'Z') => self.paused ^= true,
            KeyPress::Char('H') => self.threads ^= true,
            KeyPress::Char('d' | 's') => self.ask(TextPrompt::Delay),
            KeyPress::Char('+') => self.set_delay(self.delay_ms.saturating_mul(2)),
            KeyPress::Char('-') => self.set_delay(self.delay_ms / 2),
            KeyPress::Tab => self.turn_pane(),
            KeyPress::Escape => self.forget_filter(),
            KeyPress::Up | KeyPress::Char('k') => self.step(-1),
            KeyPress::Down | KeyPress::Char('j') => self.step(1),
            KeyPress::PageUp => self.step(-self.page()),
            KeyPress::PageDown => self.step(self.page()),
            KeyPress::Home => self.step(isize::MIN),
            KeyPress::End => self.step(isize::MAX),
            _ => {}
        }
        KeyAction::Draw
    }

    fn ask(&mut self, prompt: TextPrompt) {
        let text = match prompt {
            TextPrompt::Filter => self.list().filter.clone(),
            TextPrompt::Search | TextPrompt::Delay => String::new(),
        };
        self.mode = InputMode::Prompt(prompt, text);
    }

    fn help_key(&mut self, key: KeyPress, line: u16) {
        self.mode = match key {
            KeyPress::Up | KeyPress::Char('k') => InputMode::Help(line.saturating_sub(1)),
            KeyPress::Down | KeyPress::Char('j') => InputMode::Help(line.saturating_add(1)),
            KeyPress::PageUp => InputMode::Help(line.saturating_sub(10)),
            KeyPress::PageDown => InputMode::Help(line.saturating_add(10)),
            KeyPress::Home => InputMode::Help(0),
            _ => InputMode::View,
        };
    }

    fn sort_key(&mut self, key: KeyPress, column: usize) {
        let last = self.titles().len().saturating_sub(1);
        self.mode = match key {
            KeyPress::Up | KeyPress::Char('k') => InputMode::Sort(column.saturating_sub(1)),
            KeyPress::Down | KeyPress::Char('j') => InputMode::Sort((column + 1).min(last)),
            KeyPress::Home | KeyPress::PageUp => InputMode::Sort(0),
            KeyPress::End | KeyPress::PageDown => InputMode::Sort(last),
            KeyPress::Enter | KeyPress::F(6) => {
                let list = self.list_mut();
                list.sort = column;
                list.inverted = false;
                InputMode::View
            }
            _ => InputMode::View,
        };
    }

    fn prompt_key(&mut self, key: KeyPress, prompt: TextPrompt, mut text: String) {
        match key {
            KeyPress::Char(character) if text.len() < 64 => text.push(character),
            KeyPress::Backspace => {
                text.pop();
            }
            KeyPress::Escape => {
                if prompt == TextPrompt::Filter {
                    self.list_mut().filter.clear();
                }
                return;
            }
            KeyPress::Enter => return self.take(prompt, text),
            KeyPress::F(3) if prompt == TextPrompt::Search => {
                self.search = text.clone();
                self.find_next();
            }
            KeyPress::Up => self.step(-1),
            KeyPress::Down => self.step(1),
            _ => {}
        }
        match prompt {
            TextPrompt::Search if matches!(key, KeyPress::Char(_) | KeyPress::Backspace) => {
                self.search.clone_from(&text);
                self.find(0);
            }
            TextPrompt::Filter => self.list_mut().filter.clone_from(&text),
            TextPrompt::Search | TextPrompt::Delay => {}
        }
        self.mode = InputMode::Prompt(prompt, text);
    }

    fn take(&mut self, prompt: TextPrompt, text: String) {
        match prompt {
            TextPrompt::Search => self.search = text,
            TextPrompt::Filter => self.list_mut().filter = text,
            TextPrompt::Delay => match text.trim().parse::<f64>() {
                Ok(seconds) if seconds.is_finite() && seconds > 0.0 => {
                    self.set_delay((seconds * 1e3) as u64);
                }
                _ => self.message = Some(format!("'{text}' is no number of seconds")),
            },
        }
    }
}
