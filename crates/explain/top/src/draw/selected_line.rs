//! Details of the selected line.

use luc_units::number_formats::{FormattedShare, FormattedTime};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Widget, Wrap};

use crate::part_groups::{PartGroup, PartGroupTimes};
use crate::table_rows::{ActorRow, CulpritProcess, FileSystemRow, ShownFinding};
use crate::theme::Theme;
use crate::top_state::{TablePane, TopState};

/// Width of a bar's label.
const LABEL_WIDTH: u16 = 7;
/// Maximum number of others that a line names.
const MAX_OTHERS: usize = 3;

pub(super) fn render(top: &TopState, area: Rect, buffer: &mut Buffer) {
    if area.height < 2 {
        return;
    }
    let theme = top.theme;
    let place = top.list().place;
    let (title, lines) = match top.pane {
        TablePane::FileSystems => top
            .file_systems()
            .get(place)
            .map(|row| (file_system_title(row), file_system(row, area.width, theme))),
        TablePane::Actors => {
            top.actors().get(place).map(|row| (actor_title(row), actor(row, area.width, theme)))
        }
    }
    .unwrap_or_else(|| (String::new(), vec![Line::raw("nothing is selected")]));
    let line = Rect { height: 1, ..area };
    buffer.set_style(line, theme.title(false));
    Line::styled(title, theme.title(false)).render(line, buffer);
    let rest = Rect { y: area.y + 1, height: area.height - 1, ..area };
    Paragraph::new(lines).wrap(Wrap { trim: false }).render(rest, buffer);
}

fn file_system_title(row: &FileSystemRow) -> String {
    format!("{} {} {}", row.name(), row.kind, row.dev)
}

fn actor_title(row: &ActorRow) -> String {
    let what = match row.thread {
        Some(thread) => format!("{} thread {thread} of process {}", row.comm, row.process),
        None => format!("{} process {}", row.comm, row.process),
    };
    format!("{what}, cgroup {}", row.cgroup.0)
}

fn file_system(row: &FileSystemRow, width: u16, theme: Theme) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    add_bar("fsync", &row.sync_time, PartGroup::name, width, theme, &mut lines);
    add_bar("others", &row.call_time, PartGroup::name, width, theme, &mut lines);
    if lines.is_empty() {
        lines.push(Line::raw("no calls in this interval"));
    }
    add_finding(row.found.as_ref(), theme, &mut lines);
    for (victim, culprit, ns_per_s) in row.blame.iter().take(MAX_OTHERS) {
        lines.push(Line::raw(format!(
            "{victim} waits {}/s for the work of {culprit}",
            FormattedTime(*ns_per_s)
        )));
    }
    lines
}

fn actor(row: &ActorRow, width: u16, theme: Theme) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let name = match row.thread {
        Some(_) => thread_group_name,
        None => PartGroup::name,
    };
    add_bar("calls", &row.time, name, width, theme, &mut lines);
    for (what, others) in
        [("waits for the work of", &row.waits_for), ("makes wait", &row.makes_wait)]
    {
        if !others.is_empty() {
            lines.push(Line::raw(format!("{what} {}", name_others(others))));
        }
    }
    if lines.is_empty() {
        lines.push(Line::raw("no calls in this interval"));
    }
    add_finding(row.found.as_ref(), theme, &mut lines);
    lines
}

fn name_others(others: &[(CulpritProcess, f64)]) -> String {
    let mut names: Vec<String> = others
        .iter()
        .take(MAX_OTHERS)
        .map(|(other, ns_per_s)| format!("{other} {}/s", FormattedTime(*ns_per_s)))
        .collect();
    if others.len() > MAX_OTHERS {
        names.push("...".to_owned());
    }
    names.join(", ")
}

/// Names a group of a thread's time, where the awaited commit's owner is unknown.
fn thread_group_name(group: PartGroup) -> &'static str {
    match group {
        PartGroup::Commit => "commits",
        other => other.name(),
    }
}

/// Draws a bar split by groups, and its legend.
fn add_bar(
    label: &str,
    time: &PartGroupTimes,
    name: fn(PartGroup) -> &'static str,
    width: u16,
    theme: Theme,
    lines: &mut Vec<Line<'static>>,
) {
    if time.sum() == 0 {
        return;
    }
    let length = f64::from(width.saturating_sub(LABEL_WIDTH + 1));
    let mut spans = vec![Span::raw(format!("{label:<width$}", width = usize::from(LABEL_WIDTH)))];
    let mut legend = vec![Span::raw(" ".repeat(usize::from(LABEL_WIDTH) - 1))];
    let (mut done, mut drawn) = (0.0, 0);
    for group in PartGroup::ALL {
        let share = time.share(group);
        done += share;
        let end = (done * length).round() as usize;
        let (letter, style) = theme.group(group);
        spans.push(Span::styled(letter.to_string().repeat(end.saturating_sub(drawn)), style));
        drawn = drawn.max(end);
        if share >= 0.005 {
            legend.push(Span::raw(" "));
            legend.push(Span::styled(letter.to_string(), style));
            legend.push(Span::raw(format!(" {} {:.0} %", name(group), share * 100.0)));
        }
    }
    lines.push(Line::from(spans));
    lines.push(Line::from(legend));
}

fn add_finding(found: Option<&ShownFinding>, theme: Theme, lines: &mut Vec<Line<'static>>) {
    let Some(found) = found else {
        return;
    };
    lines.push(Line::from(vec![
        Span::styled(found.sentence.clone(), theme.strong()),
        Span::raw(format!(" ({} of the time in calls)", FormattedShare(found.share))),
    ]));
    if let Some(remedy) = &found.remedy {
        let gain = match found.predicted_gain {
            Some(gain) => format!("predicted {:+.0} %", gain * 100.0),
            None => format!("no prediction: {}", found.basis),
        };
        lines.push(Line::styled(format!("-> {remedy} ({gain})"), theme.good()));
    }
}
