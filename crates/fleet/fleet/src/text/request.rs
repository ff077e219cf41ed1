//! Prints one request: its tree, and what its time went into.

use std::fmt;

use luc_events::event_kinds::CounterMode;
use luc_units::number_formats::{FormattedShare, FormattedTime, digits};

use super::style::{TextStyle, dash_or, signed, time};
use super::table::TextTable;
use crate::counters::{EventCount, cycles_of_an_instruction};
use crate::explain::{
    CallThread, PathPart, RankedRequest, RequestReport, SpanName, TreeCallReport,
};

/// Maximum number of parts of a path: the longest.
const MAX_PARTS: usize = 40;
/// Maximum number of calls of a tree: the first.
const MAX_CALLS: usize = 60;

pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    style: TextStyle,
    report: &RequestReport,
) -> fmt::Result {
    style.title(f, &title(&report.request))?;
    print_tree(f, &report.calls)?;
    print_path(f, style, report)
}

fn print_tree(f: &mut fmt::Formatter<'_>, calls: &[TreeCallReport]) -> fmt::Result {
    let mut table =
        TextTable::new("call | >bytes | >after | >time | >at the server | made for it by");
    for call in calls.iter().take(MAX_CALLS) {
        let indent = "  ".repeat(call.depth);
        let text = match (&call.client, &call.server) {
            (Some(client), Some(server)) => {
                format!("{} -> {}", label_actor(client), label_actor(server))
            }
            (Some(client), None) => format!("{} -> no trace", label_actor(client)),
            (None, Some(server)) => format!("no trace -> {}", label_actor(server)),
            (None, None) => "not known".to_owned(),
        };
        table.row(vec![
            match &call.span {
                Some(span) => format!("{indent}{text} ({}), {}", call.address, span.name),
                None => format!("{indent}{text} ({})", call.address),
            },
            call.bytes.to_string(),
            moment(call.after_ns, call.after_error_ns),
            time(call.time_ns),
            time(call.server_time_ns),
            call.evidence.unwrap_or_default().to_owned(),
        ]);
    }
    write!(f, "{table}")?;
    if calls.len() > MAX_CALLS {
        writeln!(f, "  and {} more calls (--json has all)", calls.len() - MAX_CALLS)?;
    }
    Ok(())
}

fn label_actor(actor: &CallThread) -> String {
    format!("{} {} on {}", actor.process, actor.thread, actor.host)
}

fn print_path(f: &mut fmt::Formatter<'_>, style: TextStyle, report: &RequestReport) -> fmt::Result {
    style.title(f, "What its time went into, from its begin on")?;
    let whole_ns = report.request.time_ns;
    if report.path.is_empty() {
        return writeln!(f, "  no time passed between the request and its answer");
    }
    // If there are many, the shortest are not shown.
    let min_ns = min_shown_ns(&report.path, MAX_PARTS);
    let mut table = TextTable::new(">after | >time | >share | thread | what");
    let (mut hidden, mut hidden_ns) = (0_u64, 0_u64);
    for part in &report.path {
        if part.time_ns < min_ns {
            hidden += 1;
            hidden_ns += part.time_ns;
            continue;
        }
        table.row(vec![
            FormattedTime::from(part.after_ns).to_string(),
            FormattedTime::from(part.time_ns).to_string(),
            FormattedShare::of(part.time_ns, whole_ns).to_string(),
            label_part(part),
            what(part),
        ]);
    }
    write!(f, "{table}")?;
    if hidden > 0 {
        writeln!(
            f,
            "  {hidden} shorter parts: {} (--json has all)",
            FormattedTime::from(hidden_ns)
        )?;
    }
    let sum_ns: u64 = report.path.iter().map(|part| part.time_ns).sum();
    writeln!(
        f,
        "  sum of all parts: {} of {}",
        FormattedTime::from(sum_ns),
        FormattedTime::from(whole_ns)
    )?;
    match list_counts(&report.counted) {
        Some(counts) => writeln!(f, "  counted on processors: {counts}"),
        None => Ok(()),
    }
}

/// Names the thread of a part, or the service if no thread is known.
pub(crate) fn label_part(part: &PathPart) -> String {
    match part.thread {
        Some(thread) => format!("{} {thread} on {}", part.name, part.host),
        None if part.service.is_empty() => "not known".to_owned(),
        None => part.service.clone(),
    }
}

/// Lists cycles per instruction, and each other event that happened.
fn list_counts(counted: &[EventCount]) -> Option<String> {
    let cpi = cycles_of_an_instruction(counted);
    let is_shown = |count: &&EventCount| {
        let is_of_cpi = ["cycles", "instructions"].contains(&count.event.as_str());
        count.value > 0 && !(cpi.is_some() && is_of_cpi)
    };
    let others = counted.iter().filter(is_shown).map(|count| {
        let mode = match count.mode {
            CounterMode::Total => String::new(),
            mode => format!(" ({mode})"),
        };
        format!("{} {}{mode}", digits(count.value as f64), count.event)
    });
    let cpi = cpi.map(|cpi| format!("{} cycles an instruction", digits(cpi)));
    let all: Vec<String> = cpi.into_iter().chain(others).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Title of a request.
pub(crate) fn title(request: &RankedRequest) -> String {
    let title = format!(
        "Request {}: {} of {} on {}",
        request.number,
        FormattedTime::from(request.time_ns),
        request.process,
        request.host
    );
    match &request.span {
        Some(named) => format!("{title}: {}", span(named)),
        None => title,
    }
}

/// Name and trace id that a program gave a request.
pub(crate) fn span(span: &SpanName) -> String {
    format!("{} (trace {})", span.name, span.trace_id)
}

/// Formats a time after the request's begin, with its error.
pub(crate) fn moment(after_ns: Option<i64>, error_ns: Option<u64>) -> String {
    let after = dash_or(after_ns, signed);
    match error_ns {
        Some(0) | None => after,
        Some(error_ns) => format!("{after} ± {}", FormattedTime::from(error_ns)),
    }
}

/// Minimum length of a shown part, ns, if only `max_count` of the longest are shown.
pub(crate) fn min_shown_ns(path: &[PathPart], max_count: usize) -> u64 {
    let mut lengths: Vec<u64> = path.iter().map(|part| part.time_ns).collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    lengths.get(max_count).map_or(0, |length_ns| length_ns.saturating_add(1))
}

/// Words for a part of a path.
pub(crate) fn what(part: &PathPart) -> String {
    let mut text = part.what.to_owned();
    if let Some(cause) = part.cause {
        text += &format!(" ({cause})");
    }
    if part.brief_waits_ns.is_some() {
        text += ", or waits briefly";
    }
    if let Some(counts) = list_counts(&part.counted) {
        text += &format!(", {counts}");
    }
    if let Some(from) = &part.from {
        text += &format!(", from {from}");
    }
    match (part.is_between_hosts, part.error_ns) {
        (false, _) => {}
        (true, Some(error_ns)) => text += &format!(", ± {}", FormattedTime::from(error_ns)),
        (true, None) => text += ", not bounded",
    }
    if let Some(waiter) = &part.waiter {
        text += &format!("; {waiter} waits for it");
    }
    text
}
