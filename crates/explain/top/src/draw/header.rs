//! The lines above the tables.

use luc_units::number_formats::{FormattedShare, FormattedTime, three_digits};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use crate::top_interval::TopInterval;
use crate::top_state::TopState;

pub(super) fn render(top: &TopState, area: Rect, buffer: &mut Buffer) {
    let lines = match &top.interval {
        Some(interval) => lines(top, interval, area.width),
        None => {
            vec![Line::styled("luc top: the first figures need two seconds", top.theme.strong())]
        }
    };
    for (line, y) in lines.into_iter().zip(area.y..area.bottom()) {
        line.render(Rect { y, height: 1, ..area }, buffer);
    }
}

fn lines(top: &TopState, interval: &TopInterval, width: u16) -> Vec<Line<'static>> {
    let (host, machine) = (&interval.host, &interval.machine);
    let mut first = vec![
        Span::styled(format!("luc top  {}", host.name), top.theme.strong()),
        Span::raw(format!(
            "  Linux {}, {} processors  up {}  every {} s",
            host.kernel,
            host.processors,
            clock(machine.up_s),
            top.delay_ms as f64 / 1e3
        )),
    ];
    if top.paused {
        first.push(Span::styled("  PAUSED", top.theme.bad()));
    }
    let filters = top.lists.iter().filter(|list| !list.filter.is_empty());
    for list in filters {
        first.push(Span::styled(format!("  filter: {}", list.filter), top.theme.strong()));
    }
    let sum = |of: fn(&crate::table_rows::FileSystemRow) -> f64| {
        interval.file_systems.iter().map(of).sum::<f64>()
    };
    let lost_ns: f64 = interval.processes.iter().map(|row| row.lost_ns_per_s).sum();
    let second = vec![
        Span::raw("fsyncs "),
        Span::styled(format!("{}/s", three_digits(sum(|row| row.syncs_per_s))), top.theme.strong()),
        Span::raw("  commits "),
        Span::styled(
            format!("{}/s", three_digits(sum(|row| row.commits_per_s.unwrap_or(0.0)))),
            top.theme.strong(),
        ),
        Span::raw("  lost in calls "),
        Span::styled(format!("{}/s", FormattedTime(lost_ns)), top.theme.strong()),
    ];
    let mut third = Vec::new();
    if let Some(pressure) = machine.pressure {
        third.push(Span::raw("I/O pressure: some "));
        third.push(Span::styled(FormattedShare(pressure.some).to_string(), top.theme.strong()));
        third.push(Span::raw(", full "));
        third.push(Span::styled(FormattedShare(pressure.full).to_string(), top.theme.strong()));
        third.push(Span::raw("  "));
    }
    let lost = format!("lost events {}", machine.lost);
    third.push(if machine.lost > 0 {
        Span::styled(lost, top.theme.bad())
    } else {
        Span::raw(lost)
    });
    let (first, second, third) = (Line::from(first), Line::from(second), Line::from(third));
    if second.width() + 2 + third.width() > usize::from(width) {
        return vec![first, second, third];
    }
    let gap = Line::raw("  ");
    let both: Line<'_> = [second, gap, third].into_iter().flatten().collect();
    vec![first, both]
}

/// Formats a time: `1:02:03`, or `2:03` within the first hour.
fn clock(seconds: f64) -> String {
    let all = seconds.max(0.0) as u64;
    let (hours, minutes, seconds) = (all / 3600, all / 60 % 60, all % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}
