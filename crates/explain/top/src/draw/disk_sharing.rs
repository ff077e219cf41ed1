//! The disks for which tasks contend, below the header, and the throttle.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use super::DrawnTable;
use crate::disk_sharing::{SHARED, SharedDisk};
use crate::table_state::TableState;
use crate::top_interval::TopInterval;
use crate::top_state::TopState;

/// Maximum number of shown disks.
const MAX_DISKS: usize = 4;

/// Returns the number of lines: 0 if nobody contends and no throttle runs.
pub(super) fn height(interval: Option<&TopInterval>) -> u16 {
    let Some(interval) = interval else {
        return 0;
    };
    let disks = interval.shared_disks.len().min(MAX_DISKS) as u16;
    match (disks, &interval.machine.throttle) {
        (0, None) => 0,
        (0, Some(_)) => 1,
        // Titles, and a line about the throttle.
        (disks, _) => disks + 2,
    }
}

pub(super) fn render(top: &TopState, area: Rect, buffer: &mut Buffer) {
    let Some(interval) = top.interval.as_ref().filter(|_| area.height > 0) else {
        return;
    };
    let table = Rect { height: area.height - 1, ..area };
    let rows: Vec<&SharedDisk> = interval.shared_disks.iter().take(MAX_DISKS).collect();
    DrawnTable {
        columns: SHARED,
        rows: &rows,
        // None is selected, and they are not sorted by a column.
        list: &TableState { place: usize::MAX, sort: usize::MAX, ..TableState::default() },
        active: false,
        theme: top.theme,
    }
    .render(table, buffer);
    let said = match &interval.machine.throttle {
        Some(throttle) if throttle.frozen.is_empty() => Span::raw(throttle.to_string()),
        Some(throttle) => Span::styled(throttle.to_string(), top.theme.strong()),
        None => Span::raw("no daemon runs"),
    };
    let line = Line::from(vec![Span::raw("luc throttle top: "), said]);
    line.render(Rect { y: table.bottom(), height: 1, ..area }, buffer);
}
