//! The section of a file system: parts of fsync time, distributions, timelines, other calls, commits.

use std::fmt::{self, Write as _};

use luc_explain::{CallReport, FileSystemReport, Parts, Report};
use luc_graphs::escape::Text;
use luc_units::figures::{Share, Size, Time, three_digits};

use super::charts::{self, Axis};
use super::findings::who;
use super::tables::more;
use super::timeline::{BRIEF_NS, Timeline};
use super::{bins, meaning};

/// Maximum number of file systems with detailed timelines, which make a page large.
pub(super) const MAX_DETAILED: usize = 4;
/// Maximum number of rows of a list.
const MAX_ROWS: usize = 12;

/// Writes the section of a file system. `number` makes its ids.
pub(super) fn section(
    out: &mut String,
    report: &Report,
    found: &FileSystemReport,
    timeline: &Timeline,
    number: usize,
) -> fmt::Result {
    let place = super::findings::place(report, found.dev);
    writeln!(
        out,
        "<section id=\"fs{number}\" class=\"file-system\"><h2>{place}</h2><p class=\"facts\">"
    )?;
    let kind = if found.kind.is_empty() { "file system" } else { &found.kind };
    write!(out, "<span class=\"tag\">{}</span>", Text(kind))?;
    if found.journal_bytes > 0 {
        let size = Size(found.journal_bytes as f64);
        write!(out, "<span>journal {size}</span>")?;
    }
    if found.fast_commit {
        write!(out, "<span>fast_commit</span>")?;
    }
    if !found.options.is_empty() {
        write!(out, "<span class=\"quiet\">{}</span>", Text(&found.options))?;
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
        Time::from(syncs.latency.total_ns)
    )?;
    if syncs.parts.sum() == 0 {
        return writeln!(out, "<p class=\"empty\">Not split: the trace has sums only.</p>");
    }
    charts::stacked(out, &syncs.parts)?;
    parts(out, &syncs.parts)
}

/// Writes the parts as a table, with their colours.
fn parts(out: &mut String, parts: &Parts) -> fmt::Result {
    let whole = parts.sum();
    writeln!(
        out,
        "<div class=\"scroll\"><table class=\"parts\"><thead><tr><th scope=\"col\">Part</th>\
         <th scope=\"col\">What it is</th><th scope=\"col\" class=\"number\">Time</th>\
         <th scope=\"col\" class=\"number\">Share</th></tr></thead><tbody>"
    )?;
    for (part, ns) in charts::largest(parts) {
        let share = Share::of(ns, whole);
        if share.0 < 0.0005 {
            continue;
        }
        writeln!(
            out,
            "<tr><th scope=\"row\"><b class=\"key p-{}\"></b>{}</th><td>{}</td><td class=\"number\">{}</td>\
             <td class=\"number\">{share}</td></tr>",
            part.name(),
            meaning::label(part),
            meaning::of_part(part),
            Time::from(ns)
        )?;
    }
    writeln!(out, "</tbody></table></div>")
}

fn distributions(out: &mut String, report: &Report, found: &FileSystemReport) -> fmt::Result {
    let shown = [
        ("fsync", &found.syncs.latency),
        ("commit", &found.commits.full),
        ("fast commit", &found.commits.fast),
    ];
    let shown: Vec<_> = shown.into_iter().filter(|(_, latency)| latency.count > 0).collect();
    let latencies: Vec<_> = shown.iter().map(|&(_, latency)| latency).collect();
    let Some(axis) = Axis::of(&latencies) else {
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
            Time::from(BRIEF_NS)
        )?;
    }
    writeln!(
        out,
        "</div><noscript><p class=\"quiet\">A script draws the calls of each thread here; the rest of this page does \
         without. The steps above show the whole trace in at most {} steps.</p></noscript>",
        bins::MAX_BINS
    )
}

fn calls(out: &mut String, found: &FileSystemReport) -> fmt::Result {
    let mut calls: Vec<(&&str, &CallReport)> =
        found.calls.iter().filter(|(_, call)| call.latency.count > 0).collect();
    if calls.is_empty() {
        return Ok(());
    }
    calls.sort_by_key(|(name, call)| (std::cmp::Reverse(call.latency.total_ns), **name));
    writeln!(
        out,
        "<h3>Other calls</h3><div class=\"scroll\"><table><thead><tr><th scope=\"col\">Call</th>\
         <th scope=\"col\" class=\"number\">Count</th><th scope=\"col\" class=\"number\">Time</th>\
         <th scope=\"col\" class=\"number\">Mean</th><th scope=\"col\" class=\"number\">p99</th>\
         <th scope=\"col\" class=\"number\">Longest</th><th scope=\"col\" class=\"wide\">What it was made of</th>\
         </tr></thead><tbody>"
    )?;
    for (name, call) in calls {
        let latency = &call.latency;
        write!(
            out,
            "<tr><th scope=\"row\">{name}</th><td class=\"number\">{}</td><td class=\"number\">{}</td>\
             <td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"wide\">",
            latency.count,
            Time::from(latency.total_ns),
            Time::from(latency.mean_ns),
            Time::from(latency.p99_ns),
            Time::from(latency.max_ns)
        )?;
        charts::stacked(out, &call.parts)?;
        writeln!(out, "</td></tr>")?;
    }
    writeln!(out, "</tbody></table></div>")
}

fn actors(out: &mut String, found: &FileSystemReport) -> fmt::Result {
    let by = &found.commits.by;
    if by.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<h3>Whose work was in the commits</h3><div class=\"scroll\"><table><thead><tr>\
         <th scope=\"col\">Process</th><th scope=\"col\" class=\"number\">Asked for</th>\
         <th scope=\"col\" class=\"number\">Handles</th><th scope=\"col\" class=\"number\">Metadata blocks</th>\
         <th scope=\"col\" class=\"number\">Data around commits</th></tr></thead><tbody>"
    )?;
    for by in by.iter().take(MAX_ROWS) {
        writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td class=\"number\">{}</td><td class=\"number\">{}</td>\
             <td class=\"number\">{}</td><td class=\"number\">{}</td></tr>",
            who(&by.actor),
            by.asked,
            by.handles,
            by.blocks,
            Size(by.data_bytes as f64)
        )?;
    }
    writeln!(out, "</tbody></table></div>")?;
    more(out, by.len(), MAX_ROWS)
}
