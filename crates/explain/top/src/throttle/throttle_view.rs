//! The view's state, keys and drawing.

use luc_throttle::activity_watch::{DiskActivity, DisplayedTask, SystemActivity};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Widget;

use super::columns::{DISKS, TASKS};
use crate::draw::{DrawnTable, key_line, render_help};
use crate::help::{columns, keys};
use crate::table_state::TableState;
use crate::theme::Theme;
use crate::top_state::DELAYS_MS;
use crate::{KeyAction, KeyPress};

const KEYS: &[(&str, &str)] = &[
    ("arrows PgUp PgDn Home End", "select a task"),
    ("F1 h ?", "this help"),
    ("Space Z", "pause, and go on"),
    ("+ -", "time between two refreshes: double, half"),
    ("Ctrl-L", "draw anew"),
    ("F10 q Ctrl-C", "quit"),
];

/// State of the view. It does no I/O.
#[derive(Debug)]
pub struct ThrottleView {
    seen: Option<SystemActivity>,
    tasks: TableState,
    disks: TableState,
    delay_ms: u64,
    is_paused: bool,
    /// First shown line of the help, if that is shown.
    help: Option<u16>,
    theme: Theme,
}

impl ThrottleView {
    /// Makes an empty view.
    pub fn new(delay_ms: u64, colours: bool) -> Self {
        let list = |sort| TableState { sort, ..TableState::default() };
        Self {
            seen: None,
            tasks: list(3),
            disks: TableState {
                // None is selected.
                place: usize::MAX,
                ..list(0)
            },
            delay_ms,
            is_paused: false,
            help: None,
            theme: Theme::new(colours),
        }
    }

    /// Returns the time between two refreshes, ms.
    pub fn delay_ms(&self) -> u64 {
        self.delay_ms
    }

    /// Shows a new observation, unless the view is paused.
    pub fn update(&mut self, seen: SystemActivity) {
        if !self.is_paused {
            self.seen = Some(seen);
        }
    }

    /// Acts on a key.
    pub fn key(&mut self, key: KeyPress) -> KeyAction {
        match key {
            KeyPress::Control('c') => return KeyAction::Quit,
            KeyPress::Control('z') => return KeyAction::Suspend,
            KeyPress::Control('l') => return KeyAction::Clear,
            _ if self.help.is_some() => self.help_key(key),
            KeyPress::Char('q') | KeyPress::F(10) => return KeyAction::Quit,
            KeyPress::F(1) | KeyPress::Char('h' | '?') => self.help = Some(0),
            KeyPress::Char(' ' | 'Z') => self.is_paused ^= true,
            KeyPress::Char('+') => self.set_delay(self.delay_ms.saturating_mul(2)),
            KeyPress::Char('-') => self.set_delay(self.delay_ms / 2),
            KeyPress::Up | KeyPress::Char('k') => self.select(-1),
            KeyPress::Down | KeyPress::Char('j') => self.select(1),
            KeyPress::PageUp => self.select(-(self.tasks.height as isize)),
            KeyPress::PageDown => self.select(self.tasks.height as isize),
            KeyPress::Home => self.select(isize::MIN),
            KeyPress::End => self.select(isize::MAX),
            _ => {}
        }
        KeyAction::Draw
    }

    fn help_key(&mut self, key: KeyPress) {
        let line = self.help.unwrap_or(0);
        self.help = match key {
            KeyPress::Up | KeyPress::Char('k') => Some(line.saturating_sub(1)),
            KeyPress::Down | KeyPress::Char('j') => Some(line.saturating_add(1)),
            KeyPress::PageUp => Some(line.saturating_sub(10)),
            KeyPress::PageDown => Some(line.saturating_add(10)),
            _ => None,
        };
    }

    fn set_delay(&mut self, delay_ms: u64) {
        self.delay_ms = delay_ms.clamp(*DELAYS_MS.start(), *DELAYS_MS.end());
    }

    fn select(&mut self, by: isize) {
        let last = self.seen.as_ref().map_or(0, |seen| seen.tasks.len());
        let place = self.tasks.place.saturating_add_signed(by);
        self.tasks.place = place.min(last.saturating_sub(1));
    }

    /// Draws the view into a frame of any size.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        self.render(frame.area(), frame.buffer_mut());
    }

    pub(super) fn render(&mut self, area: Rect, buffer: &mut Buffer) {
        let (disks, tasks) = match &self.seen {
            Some(seen) => (&seen.disks[..], &seen.tasks[..]),
            None => (&[][..], &[][..]),
        };
        let mut y = area.y;
        let mut left = area.height;
        let mut take = |wanted: u16| {
            let height = wanted.min(left);
            left -= height;
            let place = Rect { y, height, ..area };
            y += height;
            place
        };
        let head = take(1);
        let bottom = u16::from(area.height >= 4);
        let room = area.height.saturating_sub(1 + bottom);
        let wanted = u16::try_from(disks.len()).unwrap_or(u16::MAX).saturating_add(1);
        let of_disks = take(wanted.max(2).min((room / 2).max(1)));
        let of_tasks = take(room.saturating_sub(of_disks.height));
        let of_keys = take(bottom);
        Line::styled(self.headline(), self.theme.strong()).render(head, buffer);
        let rows: Vec<&DiskActivity> = disks.iter().collect();
        DrawnTable {
            columns: DISKS,
            rows: &rows,
            list: &self.disks,
            active: false,
            theme: self.theme,
        }
        .render(of_disks, buffer);
        let rows: Vec<&DisplayedTask> = tasks.iter().collect();
        let height = usize::from(of_tasks.height.saturating_sub(1));
        self.tasks.place = self.tasks.place.min(rows.len().saturating_sub(1));
        self.tasks.scroll(height, rows.len());
        DrawnTable {
            columns: TASKS,
            rows: &rows,
            list: &self.tasks,
            active: true,
            theme: self.theme,
        }
        .render(of_tasks, buffer);
        self.key_names().render(of_keys, buffer);
        if let Some(line) = self.help {
            self.help = Some(render_help("luc throttle top", &help(), line, area, buffer));
        }
    }

    fn headline(&self) -> String {
        let Some(seen) = &self.seen else {
            return "luc throttle top: looking".to_owned();
        };
        let paused = if self.is_paused { "; paused" } else { "" };
        format!(
            "luc throttle top: {}; every {:.2} s{paused}",
            about(seen),
            self.delay_ms as f64 / 1e3
        )
    }

    fn key_names(&self) -> Line<'static> {
        let pause = if self.is_paused { "Go on" } else { "Pause" };
        let keys = [("F1", "Help"), ("Space", pause), ("+-", "Delay"), ("F10", "Quit")];
        key_line(&keys, self.theme)
    }
}

/// Names the daemon, and counts what is not shown.
pub(super) fn about(seen: &SystemActivity) -> String {
    let mut said = match seen.daemon {
        Some(process) => format!("daemon {process}"),
        None => "no daemon runs, nobody is frozen".to_owned(),
    };
    if seen.unwatched > 0 {
        said.push_str(&format!("; {} cgroups are not shown", seen.unwatched));
    }
    said
}

/// Returns the lines of the help.
fn help() -> Vec<String> {
    let mut lines = keys(KEYS);
    for (title, about) in [("Disks", columns(8, DISKS)), ("Tasks", columns(8, TASKS))] {
        lines.push(title.to_owned());
        lines.extend(about);
    }
    lines
}
