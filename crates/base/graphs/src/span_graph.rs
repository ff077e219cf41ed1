//! Spans of time in lanes: a table, whose last column is drawn along one axis of time.

use std::fmt::{self, Write as _};

use luc_units::number_formats::FormattedTime;

use super::axis_scale::AxisScale;
use super::{MOST_SERIES, SpanGraph, legend};
use crate::html_escape::EscapedText;

/// Longer lists are folded up.
const MAX_OPEN: usize = 60;
/// Lanes further in are not shifted further.
const MAX_DEPTH: usize = 12;

pub(super) fn write(out: &mut String, spans: &SpanGraph) -> fmt::Result {
    // 1. Heading, columns and the axis of time.
    let whole = spans.length_ns.max(1) as f64;
    let percent = |ns: i64| (ns as f64 / whole * 100.0).clamp(0.0, 100.0);
    write!(out, "<h3>{}</h3>", EscapedText(&spans.title))?;
    legend(out, &spans.classes)?;
    let is_long = spans.lanes.len() > MAX_OPEN;
    if is_long {
        write!(out, "<details><summary>{} rows</summary>", spans.lanes.len())?;
    }
    write!(
        out,
        "<div class=\"scroll\"><table class=\"spans\"><thead><tr><th scope=\"col\">{}</th>",
        EscapedText(&spans.lane)
    )?;
    for column in &spans.columns {
        write!(out, "<th scope=\"col\" class=\"number\">{}</th>", EscapedText(column))?;
    }
    write!(
        out,
        "<th scope=\"col\" class=\"wide\" aria-hidden=\"true\"><div class=\"lane ticks\">"
    )?;
    for tick in AxisScale::over([0.0, whole].into_iter()).ticks() {
        let percent = tick / whole * 100.0;
        // A label near the end has no room to its right.
        let side = if percent > 92.0 { " class=\"last\"" } else { "" };
        write!(out, "<span{side} style=\"left:{percent:.2}%\">{}</span>", FormattedTime(tick))?;
    }
    writeln!(out, "</div></th></tr></thead><tbody>")?;
    // 2. Each lane: name, cells, spans, and the errors of their begins.
    for lane in &spans.lanes {
        let indent = lane.depth.min(MAX_DEPTH);
        write!(
            out,
            "<tr><th scope=\"row\" style=\"padding-left:{}em\">{}",
            indent,
            EscapedText(&lane.name)
        )?;
        if !lane.note.is_empty() {
            write!(out, "<small>{}</small>", EscapedText(&lane.note))?;
        }
        write!(out, "</th>")?;
        for cell in &lane.cells {
            write!(out, "<td class=\"number\">{}</td>", EscapedText(cell))?;
        }
        write!(out, "<td class=\"wide\" aria-hidden=\"true\"><div class=\"lane\">")?;
        for span in &lane.spans {
            let (from, to) = (percent(span.begin_ns), percent(span.end_ns));
            write!(
                out,
                "<i class=\"fill c{}{}\" style=\"left:{from:.3}%;width:{:.3}%\" title=\"{}\"></i>",
                span.class % MOST_SERIES,
                if span.is_inner { " within" } else { "" },
                (to - from).max(0.0),
                EscapedText(&span.title)
            )?;
        }
        for span in &lane.spans {
            let Some(error_ns) = span.error_ns.filter(|&error_ns| error_ns > 0) else {
                continue;
            };
            let error_ns = i64::try_from(error_ns).unwrap_or(i64::MAX);
            let from = percent(span.begin_ns.saturating_sub(error_ns));
            let to = percent(span.begin_ns.saturating_add(error_ns));
            write!(
                out,
                "<b style=\"left:{from:.3}%;width:{:.3}%\" title=\"{}\"></b>",
                to - from,
                EscapedText(&span.title)
            )?;
        }
        writeln!(out, "</div></td></tr>")?;
    }
    let end = if is_long { "</details>" } else { "" };
    writeln!(out, "</tbody></table></div>{end}")
}
