//! The section of a file system: parts of fsync time, distributions, timelines, other calls, commits.

use std::fmt::{self, Write as _};

use luc_explain::{CallKindReport, CallTimeParts, FileSystemReport, TraceReport};
use luc_graphs::html_escape;
use luc_units::number_formats::{FormattedShare, FormattedSize, FormattedTime, three_digits};

use super::charts::{self, LogTimeAxis};
use super::findings::who;
use super::table_markup::HtmlColumn::{Bars, Number, Text};
use super::table_markup::{self, HtmlRow};
use super::timeline::{BRIEF_NS, HtmlTimelines};
use super::wait_tables::more;
use super::{name_meanings, timeline_bins};

/// Maximum number of file systems with detailed timelines, which make a page large.
pub(super) const MAX_DETAILED: usize = 4;
/// Maximum number of rows of a list.
const MAX_ROWS: usize = 12;

/// Writes the section of a file system. `number` makes its ids.
pub(super) fn section(
    out: &mut String,
    report: &TraceReport,
    found: &FileSystemReport,
    timeline: &HtmlTimelines,
    number: usize,
) -> fmt::Result {
    let place = super::findings::place(report, found.dev);
    writeln!(
        out,
        "<section id=\"fs{number}\" class=\"file-system\"><h2>{place}</h2><p class=\"facts\">"
    )?;
    let kind = if found.kind.is_empty() { "file system" } else { &found.kind };
    write!(out, "<span class=\"tag\">{}</span>", html_escape::EscapedText(kind))?;
    if found.journal_bytes > 0 {
        let size = FormattedSize(found.journal_bytes as f64);
        write!(out, "<span>journal {size}</span>")?;
    }
    if found.fast_commit {
        write!(out, "<span>fast_commit</span>")?;
    }
    if !found.options.is_empty() {
        write!(out, "<span class=\"quiet\">{}</span>", html_escape::EscapedText(&found.options))?;
    }
    writeln!(out, "</p>")?;
    syncs(out, found)?;
    distributions(out, report, found)?;
    if let Some(lane) = timeline.lane(found.dev) {
        if lane.bins.bins.len() > 1 {
            charts::overview(out, &lane.bins)?;
        }
        if number < MAX_DETAILED && lane.has_details() {
            detail(out, number, lane.brief())?;
        }
    }
    calls(out, found)?;
    actors(out, found)?;
    writeln!(out, "</section>")
}

fn syncs(out: &mut String, found: &FileSystemReport) -> fmt::Result {
    let syncs = &found.syncs;
    if syncs.latency.count == 0 {
        return Ok(());
    }
    let kinds: Vec<String> =
        syncs.kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let callers = match syncs.callers {
        0 => String::new(),
        callers => format!(" by {callers} threads"),
    };
    writeln!(
        out,
        "<h3>Where fsync time went</h3><p class=\"quiet\">{}{callers}, {}/s; {} of time in all</p>",
        kinds.join(", "),
        three_digits(syncs.per_s),
        FormattedTime::from(syncs.latency.total_ns)
    )?;
    if syncs.parts.sum() == 0 {
        return writeln!(out, "<p class=\"empty\">Not split: the trace has sums only.</p>");
    }
    charts::stacked(out, &syncs.parts)?;
    parts(out, &syncs.parts)
}

/// Writes the parts as a table, with their colours.
fn parts(out: &mut String, parts: &CallTimeParts) -> fmt::Result {
    let whole = parts.sum();
    let columns = [Text("Part"), Text("What it is"), Number("Time"), Number("Share")];
    table_markup::begin(out, "parts", &columns)?;
    for (part, ns) in charts::largest(parts) {
        let share = FormattedShare::of(ns, whole);
        if share.0 >= 0.0005 {
            let (name, label) = (part.name(), name_meanings::label(part));
            HtmlRow::begin(out)
                .head(format_args!("<b class=\"key p-{name}\"></b>{label}"))
                .text(name_meanings::of_part(part))
                .number(FormattedTime::from(ns))
                .number(share)
                .end();
        }
    }
    table_markup::end(out);
    Ok(())
}

fn distributions(out: &mut String, report: &TraceReport, found: &FileSystemReport) -> fmt::Result {
    let shown: Vec<_> = [
        ("fsync", &found.syncs.latency),
        ("commit", &found.commits.full),
        ("fast commit", &found.commits.fast),
    ]
    .into_iter()
    .filter(|(_, latency)| latency.count > 0)
    .collect();
    let latencies: Vec<_> = shown.iter().map(|&(_, latency)| latency).collect();
    let Some(axis) = LogTimeAxis::of(&latencies) else {
        return Ok(());
    };
    let per_octave = if report.trace.mode == "summary" { 1.0 } else { 4.0 };
    writeln!(out, "<h3>How long they took</h3><div class=\"columns\">")?;
    for (what, latency) in shown {
        charts::histogram(out, what, latency, axis, per_octave)?;
    }
    writeln!(out, "</div>")
}

/// Writes an empty detailed timeline, which a script fills.
fn detail(out: &mut String, number: usize, brief: u64) -> fmt::Result {
    writeln!(
        out,
        "<div class=\"timeline\" data-timeline=\"{number}\" hidden><div class=\"bar-row\">\
         <h3>Commits and waits</h3><label>Show <select></select></label>\
         <span class=\"buttons\"><button type=\"button\" data-do=\"in\" aria-label=\"Zoom in\">+</button>\
         <button type=\"button\" data-do=\"out\" aria-label=\"Zoom out\">−</button>\
         <button type=\"button\" data-do=\"left\" aria-label=\"Earlier\">←</button>\
         <button type=\"button\" data-do=\"right\" aria-label=\"Later\">→</button>\
         <button type=\"button\" data-do=\"all\">All</button></span></div>\
         <p class=\"quiet\"><span class=\"hint\">Drag to move, Ctrl and wheel to zoom, point at anything for its \
         figures.</span> <span class=\"note\"></span></p>\
         <div class=\"view\"><canvas tabindex=\"0\" role=\"img\" aria-label=\"Timeline of commits and of the calls of \
         threads\"></canvas></div><div class=\"legend\"></div>"
    )?;
    if brief > 0 {
        writeln!(
            out,
            "<p class=\"quiet\">Left out: {brief} calls that did not wait and took less than {}.</p>",
            FormattedTime::from(BRIEF_NS)
        )?;
    }
    writeln!(
        out,
        "</div><noscript><p class=\"quiet\">A script draws the calls of each thread here; the rest of this page does \
         without. The steps above show the whole trace in at most {} steps.</p></noscript>",
        timeline_bins::MAX_BINS
    )
}

fn calls(out: &mut String, found: &FileSystemReport) -> fmt::Result {
    let mut calls: Vec<(&&str, &CallKindReport)> =
        found.calls.iter().filter(|(_, call)| call.latency.count > 0).collect();
    if calls.is_empty() {
        return Ok(());
    }
    calls.sort_by_key(|(name, call)| (std::cmp::Reverse(call.latency.total_ns), **name));
    write!(out, "<h3>Other calls</h3>")?;
    let columns = [
        Text("Call"),
        Number("Count"),
        Number("Time"),
        Number("Mean"),
        Number("p99"),
        Number("Longest"),
        Bars("What it was made of"),
    ];
    table_markup::begin(out, "", &columns)?;
    for (name, call) in calls {
        let latency = &call.latency;
        HtmlRow::begin(out)
            .head(name)
            .number(latency.count)
            .number(FormattedTime::from(latency.total_ns))
            .number(FormattedTime::from(latency.mean_ns))
            .number(FormattedTime::from(latency.p99_ns))
            .number(FormattedTime::from(latency.max_ns))
            .parts(&call.parts)
            .end();
    }
    table_markup::end(out);
    Ok(())
}

fn actors(out: &mut String, found: &FileSystemReport) -> fmt::Result {
    let by = &found.commits.by;
    if by.is_empty() {
        return Ok(());
    }
    write!(out, "<h3>Whose work was in the commits</h3>")?;
    let columns = [
        Text("Process"),
        Number("Asked for"),
        Number("Handles"),
        Number("Metadata blocks"),
        Number("Data around commits"),
    ];
    table_markup::begin(out, "", &columns)?;
    for by in by.iter().take(MAX_ROWS) {
        HtmlRow::begin(out)
            .head(who(&by.actor))
            .number(by.asked)
            .number(by.handles)
            .number(by.blocks)
            .number(FormattedSize(by.data_bytes as f64))
            .end();
    }
    table_markup::end(out);
    more(out, by.len(), MAX_ROWS)
}
