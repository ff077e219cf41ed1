//! Drawing of the view's state into a terminal's cells.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Alignment, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Widget};

use super::columns::{ACTORS, FILE_SYSTEMS, TableColumn, fitting};
use super::help;
use super::table_state::{LineId, TableState};
use super::theme::Theme;
use super::top_state::{InputMode, TablePane, TextPrompt, TopState};

mod disk_sharing;
mod header;
mod selected_line;

/// Minimum height of a terminal that shows details of the selected line.
const MIN_HEIGHT_FOR_DETAIL: u16 = 18;
/// Minimum height of a terminal that shows more than one line of header.
const MIN_HEIGHT_FOR_HEADER: u16 = 12;

impl TopState {
    /// Draws the view into a frame of any size.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        self.render(area, frame.buffer_mut());
    }

    fn render(&mut self, area: Rect, buffer: &mut Buffer) {
        let areas = Areas::split(
            area,
            self.pane,
            self.ids(TablePane::FileSystems).len(),
            disk_sharing::height(self.interval.as_ref()),
        );
        header::render(self, areas.header, buffer);
        disk_sharing::render(self, areas.sharing, buffer);
        self.tables(&areas, buffer);
        selected_line::render(self, areas.detail, buffer);
        self.bottom(areas.bottom, buffer);
        match &self.mode {
            InputMode::Help(line) => {
                let lines = help::lines(&self.missing);
                self.mode = InputMode::Help(render_help("luc top", &lines, *line, area, buffer));
            }
            InputMode::Sort(column) => self.columns(*column, area, buffer),
            InputMode::View | InputMode::Prompt(..) => {}
        }
    }

    fn tables(&mut self, areas: &Areas, buffer: &mut Buffer) {
        for pane in [TablePane::FileSystems, TablePane::Actors] {
            let ids: Vec<LineId> = self.ids(pane).into_iter().map(|(id, _)| id).collect();
            let height = usize::from(areas.table(pane).height.saturating_sub(1));
            let list = &mut self.lists[pane as usize];
            list.settle(&ids);
            list.scroll(height, ids.len());
        }
        let active = |pane| self.pane == pane;
        let file_systems = DrawnTable {
            columns: FILE_SYSTEMS,
            rows: &self.file_systems(),
            list: &self.lists[0],
            active: active(TablePane::FileSystems),
            theme: self.theme,
        };
        file_systems.render(areas.file_systems, buffer);
        let actors = DrawnTable {
            columns: ACTORS,
            rows: &self.actors(),
            list: &self.lists[1],
            active: active(TablePane::Actors),
            theme: self.theme,
        };
        actors.render(areas.actors, buffer);
    }

    /// Draws the keys, a message or a prompt into the last line.
    fn bottom(&self, area: Rect, buffer: &mut Buffer) {
        let line = match &self.mode {
            InputMode::Prompt(prompt, text) => {
                let name = match prompt {
                    TextPrompt::Search => "Search",
                    TextPrompt::Filter => "Filter",
                    TextPrompt::Delay => "Seconds",
                };
                Line::from(vec![
                    Span::styled(format!("{name}: "), self.theme.key_name()),
                    Span::raw(format!(" {text}_")),
                ])
            }
            _ => match &self.message {
                Some(message) => Line::styled(message.clone(), self.theme.strong()),
                None => self.key_names(),
            },
        };
        line.render(area, buffer);
    }

    fn key_names(&self) -> Line<'static> {
        let threads = if self.threads { "Procs" } else { "Threads" };
        let pause = if self.paused { "Go on" } else { "Pause" };
        let keys = [
            ("F1", "Help"),
            ("F3", "Search"),
            ("F4", "Filter"),
            ("F6", "Sort"),
            ("Tab", "Table"),
            ("H", threads),
            ("Space", pause),
            ("+-", "Delay"),
            ("F10", "Quit"),
        ];
        key_line(&keys, self.theme)
    }

    /// Draws the choice of the column to sort by.
    fn columns(&self, chosen: usize, area: Rect, buffer: &mut Buffer) {
        let titles = self.titles();
        let area = centred(area, 24, titles.len() as u16 + 2);
        let height = usize::from(area.height.saturating_sub(2));
        let first = (chosen + 1).saturating_sub(height.max(1));
        let lines: Vec<Line<'_>> = titles
            .iter()
            .enumerate()
            .skip(first)
            .map(|(index, title)| {
                let style = if index == chosen { self.theme.selected(true) } else { Style::new() };
                Line::styled(format!("{title:<22}"), style)
            })
            .collect();
        Clear.render(area, buffer);
        Paragraph::new(lines).block(Block::bordered().title(" Sort by ")).render(area, buffer);
    }
}

/// Names keys and what they do, for the last line of a view.
pub(super) fn key_line(keys: &[(&'static str, &str)], theme: Theme) -> Line<'static> {
    let spans = keys.iter().flat_map(|&(key, what)| {
        [Span::raw(key), Span::styled(format!("{what} "), theme.key_name())]
    });
    Line::from(spans.collect::<Vec<_>>())
}

/// Draws the help of a program from a line on. Returns the first line that is shown: the last page stays full.
pub(super) fn render_help(
    program: &str,
    lines: &[String],
    line: u16,
    area: Rect,
    buffer: &mut Buffer,
) -> u16 {
    let area = centred(area, 100, lines.len() as u16 + 2);
    let last = (lines.len() as u16).saturating_sub(area.height.saturating_sub(2));
    let line = line.min(last);
    let keys =
        if last > 0 { "arrows scroll, any other key goes back" } else { "any key goes back" };
    let text: Vec<Line<'_>> = lines.iter().map(|line| Line::raw(line.as_str())).collect();
    Clear.render(area, buffer);
    Paragraph::new(text)
        .block(Block::bordered().title(format!(" {program}: {keys} ")))
        .scroll((line, 0))
        .render(area, buffer);
    line
}

/// Returns a rectangle in the middle of an area, smaller where there is no room.
fn centred(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    }
}

struct Areas {
    header: Rect,
    sharing: Rect,
    file_systems: Rect,
    actors: Rect,
    detail: Rect,
    bottom: Rect,
}

impl Areas {
    fn split(area: Rect, pane: TablePane, file_systems: usize, sharing: u16) -> Self {
        let mut y = area.y;
        let mut take = |height: u16| {
            let place = Rect { y, height, ..area };
            y += height;
            place
        };
        let bottom = u16::from(area.height >= 4);
        let header = match area.height {
            height if height >= MIN_HEIGHT_FOR_HEADER => 3,
            height => u16::from(height >= 5),
        };
        let detail = match area.height {
            height if height >= MIN_HEIGHT_FOR_DETAIL => (height / 3).clamp(6, 10),
            _ => 0,
        };
        let sharing = match area.height {
            height if height >= MIN_HEIGHT_FOR_DETAIL => sharing.min(height / 4),
            _ => 0,
        };
        let rest = area.height - bottom - header - sharing - detail;
        let wanted = u16::try_from(file_systems).unwrap_or(u16::MAX).saturating_add(1);
        // Where only one table has room for a line, it is the active one.
        let first = match (rest, pane) {
            (0..4, TablePane::FileSystems) => rest,
            (0..4, TablePane::Actors) => 0,
            _ => wanted.max(2).min((rest / 2).max(2)),
        };
        Self {
            header: take(header),
            sharing: take(sharing),
            file_systems: take(first),
            actors: take(rest - first),
            detail: take(detail),
            bottom: take(bottom),
        }
    }

    fn table(&self, pane: TablePane) -> Rect {
        match pane {
            TablePane::FileSystems => self.file_systems,
            TablePane::Actors => self.actors,
        }
    }
}

/// Table to draw: columns, rows and state.
pub(super) struct DrawnTable<'a, R: 'static> {
    pub(super) columns: &'static [TableColumn<R>],
    pub(super) rows: &'a [&'a R],
    pub(super) list: &'a TableState,
    pub(super) active: bool,
    pub(super) theme: Theme,
}

impl<R> DrawnTable<'_, R> {
    pub(super) fn render(&self, area: Rect, buffer: &mut Buffer) {
        if area.is_empty() {
            return;
        }
        let chosen = fitting(self.columns, area.width);
        let title = self.theme.title(self.active);
        let line = |y: u16| Rect { y, height: 1, ..area };
        buffer.set_style(line(area.y), title);
        self.cells(line(area.y), &chosen, buffer, |index| {
            let column = &self.columns[index];
            let style = if index == self.list.sort {
                title.add_modifier(
                    ratatui::style::Modifier::BOLD | ratatui::style::Modifier::UNDERLINED,
                )
            } else {
                title
            };
            Span::styled(column.title.to_owned(), style)
        });
        let shown = self.rows.iter().enumerate().skip(self.list.first);
        for ((place, row), y) in shown.zip(area.y + 1..area.bottom()) {
            self.cells(line(y), &chosen, buffer, |index| Span::raw(self.columns[index].text(row)));
            if place == self.list.place {
                buffer.set_style(line(y), self.theme.selected(self.active));
            }
        }
    }

    /// Draws one line, cell by cell.
    fn cells(
        &self,
        area: Rect,
        chosen: &[(usize, u16)],
        buffer: &mut Buffer,
        span: impl Fn(usize) -> Span<'static>,
    ) {
        let mut x = area.x;
        for &(index, width) in chosen {
            let cell = Rect { x, width, ..area }.intersection(area);
            let alignment = match self.columns[index].width {
                0 => Alignment::Left,
                _ => Alignment::Right,
            };
            Line::from(span(index)).alignment(alignment).render(cell, buffer);
            x = x.saturating_add(width).saturating_add(1);
        }
    }
}
