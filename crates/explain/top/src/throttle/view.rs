//! The view's state, its keys and its drawing.

use luc_throttle::watch::{DiskSeen, Seen, TaskSeen};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Widget};

use super::columns::{DISKS, TASKS};
use crate::columns::Column;
use crate::draw::{Table, centred};
use crate::list::List;
use crate::theme::Theme;
use crate::{Action, Key};

/// Time between two looks, ms: the least and the most.
const DELAYS_MS: std::ops::RangeInclusive<u64> = 250..=60_000;

const KEYS: &[(&str, &str)] = &[
    ("arrows PgUp PgDn Home End", "select a task"),
    ("F1 h ?", "this help"),
    ("Space Z", "pause, and go on"),
    ("+ -", "time between two refreshes: double, half"),
    ("Ctrl-L", "draw anew"),
    ("F10 q Ctrl-C", "quit"),
];

/// What is shown. It does no I/O.
#[derive(Debug)]
pub struct View {
    seen: Option<Seen>,
    tasks: List,
    disks: List,
    delay_ms: u64,
    is_paused: bool,
    /// The first line of the help that is shown, if it is.
    help: Option<u16>,
    theme: Theme,
}

impl View {
    /// A view that shows nothing yet.
    pub fn new(delay_ms: u64, colours: bool) -> Self {
        let list = |sort| List { sort, ..List::default() };
        Self {
            seen: None,
            tasks: list(3),
            disks: List {
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

    /// Time between two looks, ms.
    pub fn delay_ms(&self) -> u64 {
        self.delay_ms
    }

    /// Shows what was seen, unless it is paused.
    pub fn update(&mut self, seen: Seen) {
        if !self.is_paused {
            self.seen = Some(seen);
        }
    }

    /// Acts on a key.
    pub fn key(&mut self, key: Key) -> Action {
        match key {
            Key::Control('c') => return Action::Quit,
            Key::Control('z') => return Action::Suspend,
            Key::Control('l') => return Action::Clear,
            _ if self.help.is_some() => self.help_key(key),
            Key::Char('q') | Key::F(10) => return Action::Quit,
            Key::F(1) | Key::Char('h' | '?') => self.help = Some(0),
            Key::Char(' ' | 'Z') => self.is_paused ^= true,
            Key::Char('+') => self.set_delay(self.delay_ms.saturating_mul(2)),
            Key::Char('-') => self.set_delay(self.delay_ms / 2),
            Key::Up | Key::Char('k') => self.select(-1),
            Key::Down | Key::Char('j') => self.select(1),
            Key::PageUp => self.select(-(self.tasks.height as isize)),
            Key::PageDown => self.select(self.tasks.height as isize),
            Key::Home => self.select(isize::MIN),
            Key::End => self.select(isize::MAX),
            _ => {}
        }
        Action::Draw
    }

    fn help_key(&mut self, key: Key) {
        let line = self.help.unwrap_or(0);
        self.help = match key {
            Key::Up | Key::Char('k') => Some(line.saturating_sub(1)),
            Key::Down | Key::Char('j') => Some(line.saturating_add(1)),
            Key::PageUp => Some(line.saturating_sub(10)),
            Key::PageDown => Some(line.saturating_add(10)),
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
        let rows: Vec<&DiskSeen> = disks.iter().collect();
        Table { columns: DISKS, rows: &rows, list: &self.disks, active: false, theme: self.theme }
            .render(of_disks, buffer);
        let rows: Vec<&TaskSeen> = tasks.iter().collect();
        let height = usize::from(of_tasks.height.saturating_sub(1));
        self.tasks.place = self.tasks.place.min(rows.len().saturating_sub(1));
        self.tasks.scroll(height, rows.len());
        Table { columns: TASKS, rows: &rows, list: &self.tasks, active: true, theme: self.theme }
            .render(of_tasks, buffer);
        self.keys(of_keys, buffer);
        if let Some(line) = self.help {
            self.help = Some(help(line, area, buffer));
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

    fn keys(&self, area: Rect, buffer: &mut Buffer) {
        let pause = if self.is_paused { "Go on" } else { "Pause" };
        let keys = [("F1", "Help"), ("Space", pause), ("+-", "Delay"), ("F10", "Quit")];
        let spans = keys.into_iter().flat_map(|(key, what)| {
            [Span::raw(key), Span::styled(format!("{what} "), self.theme.key_name())]
        });
        Line::from(spans.collect::<Vec<_>>()).render(area, buffer);
    }
}

/// Whose doings these are.
pub(super) fn about(seen: &Seen) -> String {
    let mut said = match seen.daemon {
        Some(process) => format!("daemon {process}"),
        None => "no daemon runs, nobody is frozen".to_owned(),
    };
    if seen.unwatched > 0 {
        said.push_str(&format!("; {} cgroups are not shown", seen.unwatched));
    }
    said
}

/// Draws the help from a line on; returns the line from which there is something to show.
fn help(line: u16, area: Rect, buffer: &mut Buffer) -> u16 {
    let mut lines: Vec<String> =
        KEYS.iter().map(|(keys, what)| format!("{keys:<26} {what}")).collect();
    lines.push(String::new());
    columns("Disks", DISKS, &mut lines);
    columns("Tasks", TASKS, &mut lines);
    let area = centred(area, 100, lines.len() as u16 + 2);
    let last = (lines.len() as u16).saturating_sub(area.height.saturating_sub(2));
    let line = line.min(last);
    let title = if last > 0 {
        " luc throttle top: arrows scroll, any other key goes back "
    } else {
        " luc throttle top: any key goes back "
    };
    let text: Vec<Line<'_>> = lines.iter().map(|line| Line::raw(line.as_str())).collect();
    Clear.render(area, buffer);
    Paragraph::new(text)
        .block(Block::bordered().title(title))
        .scroll((line, 0))
        .render(area, buffer);
    line
}

fn columns<R>(title: &str, columns: &[Column<R>], lines: &mut Vec<String>) {
    lines.push(title.to_owned());
    for column in columns {
        lines.push(format!("  {:<8} {}", column.title, column.about));
    }
}
