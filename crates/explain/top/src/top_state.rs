use super::columns::{ACTORS, FILE_SYSTEMS, TableColumn};
use super::table_rows::{ActorRow, FileSystemRow};
use super::table_state::{LineId, TableState};
use super::theme::Theme;
use super::top_interval::TopInterval;

/// Bounds of the time between two refreshes.
pub(super) const DELAYS_MS: std::ops::RangeInclusive<u64> = 250..=60_000;

/// Table of the view that has the focus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TablePane {
    #[default]
    FileSystems,
    Actors,
}

/// A question to be answered by text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextPrompt {
    Search,
    Filter,
    Delay,
}

/// The part of the view that receives keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum InputMode {
    #[default]
    View,
    /// The help; its first shown line.
    Help(u16),
    /// The choice of the column to sort by; its selected line.
    Sort(usize),
    Prompt(TextPrompt, String),
}

/// State of the view of `luc top`. It does no I/O.
#[derive(Debug)]
pub struct TopState {
    pub(super) interval: Option<TopInterval>,
    pub(super) pane: TablePane,
    pub(super) lists: [TableState; 2],
    /// Whether lines are about threads instead of processes.
    pub(super) threads: bool,
    pub(super) paused: bool,
    pub(super) delay_ms: u64,
    pub(super) mode: InputMode,
    pub(super) search: String,
    pub(super) message: Option<String>,
    /// Events that cannot be recorded here, for the help.
    pub(super) missing: Vec<String>,
    pub(super) theme: Theme,
}

impl TopState {
    /// Makes an empty view. `missing` are lines about events that cannot be recorded here.
    pub fn new(delay_ms: u64, colours: bool, missing: Vec<String>) -> Self {
        let lists = [sorted_by("FSYNC/s", FILE_SYSTEMS), sorted_by("LOST/s", ACTORS)];
        Self {
            interval: None,
            pane: TablePane::default(),
            lists,
            threads: false,
            paused: false,
            delay_ms: delay_ms.clamp(*DELAYS_MS.start(), *DELAYS_MS.end()),
            mode: InputMode::View,
            search: String::new(),
            message: missing.first().cloned(),
            missing,
            theme: Theme::new(colours),
        }
    }

    /// Shows another interval, unless the view is paused.
    pub fn update(&mut self, interval: TopInterval) {
        if !self.paused {
            self.interval = Some(interval);
        }
    }

    /// Returns the time between two refreshes, in milliseconds.
    pub fn delay_ms(&self) -> u64 {
        self.delay_ms
    }

    pub(super) fn set_delay(&mut self, delay_ms: u64) {
        self.delay_ms = delay_ms.clamp(*DELAYS_MS.start(), *DELAYS_MS.end());
        self.message = Some(format!("every {} s", self.delay_ms as f64 / 1e3));
    }

    pub(super) fn list(&self) -> &TableState {
        &self.lists[self.pane as usize]
    }

    pub(super) fn list_mut(&mut self) -> &mut TableState {
        &mut self.lists[self.pane as usize]
    }

    pub(super) fn turn_pane(&mut self) {
        self.pane = match self.pane {
            TablePane::FileSystems => TablePane::Actors,
            TablePane::Actors => TablePane::FileSystems,
        };
    }

    /// Returns the titles of the active table's columns.
    pub(super) fn titles(&self) -> Vec<&'static str> {
        match self.pane {
            TablePane::FileSystems => FILE_SYSTEMS.iter().map(|column| column.title).collect(),
            TablePane::Actors => ACTORS.iter().map(|column| column.title).collect(),
        }
    }

    pub(super) fn file_systems(&self) -> Vec<&FileSystemRow> {
        let rows = self.interval.as_ref().map_or(&[][..], |interval| &interval.file_systems);
        let order = self.lists[0].order(rows, FILE_SYSTEMS, FileSystemRow::name);
        order.into_iter().map(|index| &rows[index]).collect()
    }

    pub(super) fn actors(&self) -> Vec<&ActorRow> {
        let rows = self.interval.as_ref().map_or(&[][..], |interval| {
            if self.threads { &interval.threads } else { &interval.processes }
        });
        let order = self.lists[1].order(rows, ACTORS, actor_name);
        order.into_iter().map(|index| &rows[index]).collect()
    }

    /// Returns the identities and names of a table's lines, in order.
    pub(super) fn ids(&self, pane: TablePane) -> Vec<(LineId, String)> {
        match pane {
            TablePane::FileSystems => self
                .file_systems()
                .into_iter()
                .map(|row| (LineId::FileSystem(row.dev), row.name()))
                .collect(),
            TablePane::Actors => {
                self.actors().into_iter().map(|row| (actor_id(row), actor_name(row))).collect()
            }
        }
    }

    pub(super) fn step(&mut self, by: isize) {
        let ids: Vec<LineId> = self.ids(self.pane).into_iter().map(|(id, _)| id).collect();
        self.list_mut().step(by, &ids);
    }

    pub(super) fn page(&self) -> isize {
        isize::try_from(self.list().height.max(2) - 1).unwrap_or(1)
    }

    /// Selects the next line that contains the searched text.
    pub(super) fn find_next(&mut self) {
        self.find(1);
    }

    /// Selects the first line that contains the searched text, from `offset` lines after the selected one on. Begins
    /// again at the first line after the last.
    pub(super) fn find(&mut self, offset: usize) {
        let ids = self.ids(self.pane);
        let text = self.search.to_lowercase();
        if text.is_empty() || ids.is_empty() {
            return;
        }
        let from = self.list().place + offset;
        let found = (0..ids.len())
            .map(|step| (from + step) % ids.len())
            .find(|&index| ids[index].1.to_lowercase().contains(&text));
        match found {
            Some(index) => {
                let ids: Vec<LineId> = ids.into_iter().map(|(id, _)| id).collect();
                self.list_mut().select(index, &ids);
            }
            None => self.message = Some(format!("'{}' is in no line", self.search)),
        }
    }

    pub(super) fn forget_filter(&mut self) {
        self.list_mut().filter.clear();
    }
}

fn sorted_by<R>(title: &str, columns: &[TableColumn<R>]) -> TableState {
    let sort = columns.iter().position(|column| column.title == title).unwrap_or(0);
    TableState { sort, ..TableState::default() }
}

fn actor_id(row: &ActorRow) -> LineId {
    LineId::Actor(row.process, row.cgroup, row.thread)
}

fn actor_name(row: &ActorRow) -> String {
    format!("{} {}", row.id(), row.comm)
}
