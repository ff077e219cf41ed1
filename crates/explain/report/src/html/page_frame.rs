//! The frame of the page: header, key figures, sections, footer.

use std::fmt::{self, Write as _};

use luc_explain::{CallTimePart, FileSystemReport, TraceReport};
use luc_graphs::STYLE;
use luc_graphs::html_escape::EscapedText;
use luc_units::number_formats::{FormattedShare, FormattedTime, three_digits, utc};
use serde_json::json;

use super::script_data::island;
use super::table_markup::{self, HtmlColumn, HtmlRow};
use super::timeline::HtmlTimelines;
use super::{disk_sharing, file_system, findings, name_meanings, wait_tables};

const SCRIPT: &str = include_str!("script.js");

/// Maximum number of file systems that have a section.
const MAX_SECTIONS: usize = 8;

pub(super) fn page(report: &TraceReport, timeline: &HtmlTimelines) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut out, report, timeline);
    out
}

fn write_page(out: &mut String, report: &TraceReport, timeline: &HtmlTimelines) -> fmt::Result {
    let title =
        if report.trace.command.is_empty() { &report.trace.host } else { &report.trace.command };
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'\">\n\
         <title>LUC: {}</title>\n<style>\n{STYLE}",
        EscapedText(title)
    )?;
    colours(out)?;
    writeln!(out, "</style>\n</head>\n<body>")?;
    header(out, report)?;
    writeln!(out, "<main>")?;
    let shown: Vec<&FileSystemReport> =
        report.file_systems.iter().filter(|found| is_busy(found)).take(MAX_SECTIONS).collect();
    figures(out, report, shown.first().copied())?;
    findings::section(out, report)?;
    for (number, found) in shown.iter().enumerate() {
        file_system::section(out, report, found, timeline, number)?;
    }
    quiet_ones(out, report, &shown)?;
    disk_sharing::section(out, report)?;
    wait_tables::blame(out, report)?;
    wait_tables::slowest(out, report)?;
    wait_tables::accounts(out, report)?;
    wait_tables::disks(out, report)?;
    wait_tables::services(out, report)?;
    writeln!(out, "</main>")?;
    footer(out, report)?;
    let details: Vec<_> = shown
        .iter()
        .take(file_system::MAX_DETAILED)
        .map(|found| timeline.details(found.dev))
        .collect();
    let parts: Vec<String> = CallTimePart::ALL.into_iter().map(name_meanings::label).collect();
    let classes: Vec<&str> = CallTimePart::ALL.into_iter().map(CallTimePart::name).collect();
    let data = json!({"parts": parts, "classes": classes, "file_systems": details});
    writeln!(
        out,
        "<script type=\"application/json\" id=\"timelines\">{}</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>",
        island(&data)
    )
}

/// Returns whether the file system had fsyncs or commits.
fn is_busy(found: &FileSystemReport) -> bool {
    found.syncs.latency.count > 0 || found.commits.full.count > 0 || found.commits.fast.count > 0
}

/// Writes each part's colour, as a class and as a variable for the script.
fn colours(out: &mut String) -> fmt::Result {
    let colours = || CallTimePart::ALL.into_iter().zip(name_meanings::COLOURS);
    write!(out, ":root{{")?;
    for (part, (light, _)) in colours() {
        write!(out, "--p-{}:{light};", part.name())?;
    }
    write!(out, "}}\n@media (prefers-color-scheme:dark){{:root{{")?;
    for (part, (_, dark)) in colours() {
        write!(out, "--p-{}:{dark};", part.name())?;
    }
    writeln!(out, "}}}}")?;
    for (part, _) in colours() {
        let name = part.name();
        writeln!(out, ".p-{name}{{background:var(--p-{name});fill:var(--p-{name})}}")?;
    }
    Ok(())
}

fn header(out: &mut String, report: &TraceReport) -> fmt::Result {
    let trace = &report.trace;
    let length_ns = trace.end_ns.saturating_sub(trace.start_ns);
    writeln!(
        out,
        "<header class=\"top\"><div class=\"inner\"><p class=\"brand\">LUC <span>I/O wait report</span></p><h1>"
    )?;
    if trace.command.is_empty() {
        write!(out, "{}", EscapedText(&trace.host))?;
    } else {
        write!(out, "<code>{}</code>", EscapedText(&trace.command))?;
    }
    writeln!(
        out,
        "</h1><p class=\"facts\"><span>{} recorded</span><span>on {}</span><span>Linux {}</span>\
         <span>{} processors</span><span>{} events</span>",
        FormattedTime::from(length_ns),
        EscapedText(&trace.host),
        EscapedText(&trace.kernel),
        trace.processors,
        trace.events
    )?;
    if trace.realtime_offset_ns > 0 {
        let began_s = trace.start_ns.saturating_add(trace.realtime_offset_ns) / 1_000_000_000;
        let began = utc(began_s);
        write!(out, "<span>began <time datetime=\"{began}Z\">{began} UTC</time></span>")?;
    }
    if !trace.filters.is_empty() {
        write!(out, "<span>filter: {}</span>", EscapedText(&trace.filters))?;
    }
    if trace.mode == "summary" {
        write!(out, "<span class=\"tag\">recorded as summary</span>")?;
    }
    if !trace.complete {
        write!(out, "<span class=\"tag bad\">the recorder did not finish</span>")?;
    }
    for (place, count) in report.lost.iter().take(8) {
        write!(out, "<span class=\"tag bad\">lost {count} {}</span>", EscapedText(place))?;
    }
    writeln!(out, "</p></div></header>")
}

/// Writes the key figures of the busiest file system.
fn figures(
    out: &mut String,
    report: &TraceReport,
    found: Option<&FileSystemReport>,
) -> fmt::Result {
    let Some(found) = found else {
        return Ok(());
    };
    let (syncs, commits) = (&found.syncs, &found.commits);
    let place = findings::place(report, found.dev);
    writeln!(
        out,
        "<section class=\"figures\" aria-label=\"Key figures\"><p class=\"quiet\">Busiest file system: {place}</p><dl>"
    )?;
    let mut figure = |name: &str, id: &str, raw: String, shown: String, more: String| {
        writeln!(
            out,
            "<div><dt>{name}</dt><dd data-figure=\"{id}\" data-value=\"{raw}\">{shown}</dd><dd class=\"quiet\">{more}\
             </dd></div>"
        )
    };
    let count = syncs.latency.count;
    let per_s = format!("{}/s", three_digits(syncs.per_s));
    figure("fsyncs", "syncs", count.to_string(), count.to_string(), per_s)?;
    let latency = &syncs.latency;
    let median = format!("median {}", FormattedTime::from(latency.p50_ns));
    let mean = FormattedTime::from(latency.mean_ns).to_string();
    figure("mean fsync", "sync_mean_ns", latency.mean_ns.to_string(), mean, median)?;
    let longest = format!("longest {}", FormattedTime::from(latency.max_ns));
    let p99 = FormattedTime::from(latency.p99_ns).to_string();
    figure("99 % within", "sync_p99_ns", latency.p99_ns.to_string(), p99, longest)?;
    if syncs.parts.sum() > 0 {
        let predecessor_ns = syncs.parts.get(CallTimePart::Predecessor);
        let share = FormattedShare::of(predecessor_ns, syncs.parts.sum()).to_string();
        let of = "of fsync time".to_owned();
        figure("on earlier commits", "predecessor_ns", predecessor_ns.to_string(), share, of)?;
    }
    let count = commits.full.count;
    let mean = format!("mean {}", FormattedTime::from(commits.full.mean_ns));
    figure("commits", "commits", count.to_string(), count.to_string(), mean)?;
    if commits.serving > 0 {
        let each = three_digits(commits.syncs_per_commit);
        let raw = commits.syncs_per_commit.to_string();
        figure("fsyncs per commit", "syncs_per_commit", raw, each, "served".to_owned())?;
    }
    if found.batching.would_help {
        let gain = format!("{:+.0} %", found.batching.gain * 100.0);
        let raw = found.batching.gain.to_string();
        figure("predicted gain", "gain", raw, gain, "under luc run".to_owned())?;
    }
    writeln!(out, "</dl></section>")
}

/// Lists the file systems without a section.
fn quiet_ones(out: &mut String, report: &TraceReport, shown: &[&FileSystemReport]) -> fmt::Result {
    let rest: Vec<&FileSystemReport> = report
        .file_systems
        .iter()
        .filter(|found| !shown.iter().any(|shown| shown.dev == found.dev))
        .collect();
    if rest.is_empty() {
        return Ok(());
    }
    write!(out, "<section id=\"others\"><h2>Other file systems</h2>")?;
    let columns = [
        HtmlColumn::Text("Mounted on"),
        HtmlColumn::Text("Type"),
        HtmlColumn::Number("Calls"),
        HtmlColumn::Number("Time in calls"),
    ];
    table_markup::begin(out, "", &columns)?;
    for found in rest.iter().take(50) {
        let calls = found.calls.values().map(|call| &call.latency);
        let count: u64 = calls.clone().map(|latency| latency.count).sum();
        let ns = calls.fold(0_u64, |sum, latency| sum.saturating_add(latency.total_ns));
        HtmlRow::begin(out)
            .head(findings::place(report, found.dev))
            .text(EscapedText(&found.kind))
            .number(count)
            .number(FormattedTime::from(ns))
            .end();
    }
    table_markup::end(out);
    wait_tables::more(out, rest.len(), 50)?;
    writeln!(out, "</section>")
}

fn footer(out: &mut String, report: &TraceReport) -> fmt::Result {
    let omitted = &report.omitted;
    writeln!(
        out,
        "<footer><p>Report version {}. The parts of each call sum to its measured time. Predicted gains of the fsync \
         gate come from a model of the callers seen; those of other remedies are upper bounds.</p>",
        report.version
    )?;
    let left_out = [
        (omitted.waits, "waits inside very long calls"),
        (omitted.blame, "pairs of victim and culprit"),
        (omitted.syncs_without_waits, "long calls without recorded waits"),
        (omitted.implausible, "rows with impossible times"),
    ];
    for (count, what) in left_out.into_iter().filter(|&(count, _)| count > 0) {
        writeln!(out, "<p>Left out by the analysis: {count} {what}.</p>")?;
    }
    writeln!(out, "</footer>")
}
