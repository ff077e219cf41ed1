//! One request: its tree, and its critical path.

use std::fmt;

use luc_events::codes::CounterMode;
use luc_units::figures::{Share, Time, digits};

use super::style::{Style, signed, time};
use super::table::Table;
use crate::counters::{EventCount, cycles_of_an_instruction};
use crate::explain::{Actor, Call, PathPart, Ranked, RequestReport, SpanName};

/// Parts of a path that are shown: the longest.
const PARTS: usize = 40;
/// Calls of a tree that are shown: the first.
const CALLS: usize = 60;

pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    style: Style,
    report: &RequestReport,
) -> fmt::Result {
    style.title(f, &title(&report.request))?;
    tree(f, &report.calls)?;
    path(f, style, report)
}

fn tree(f: &mut fmt::Formatter<'_>, calls: &[Call]) -> fmt::Result {
    let mut table =
        Table::new(&["call", ">bytes", ">after", ">time", ">at the server", "made for it by"]);
    for call in calls.iter().take(CALLS) {
        let indent = "  ".repeat(call.depth);
        let text = match (&call.client, &call.server) {
            (Some(client), Some(server)) => format!("{} -> {}", actor(client), actor(server)),
            (Some(client), None) => format!("{} -> no trace", actor(client)),
            (None, Some(server)) => format!("no trace -> {}", actor(server)),
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
    if calls.len() > CALLS {
        writeln!(f, "  and {} more calls (--json has all)", calls.len() - CALLS)?;
    }
    Ok(())
}

fn actor(actor: &Actor) -> String {
    format!("{} {} on {}", actor.process, actor.thread, actor.host)
}

fn path(f: &mut fmt::Formatter<'_>, style: Style, report: &RequestReport) -> fmt::Result {
    style.title(f, "Critical path, from the answer back")?;
    let whole_ns = report.request.time_ns;
    if report.path.is_empty() {
        return writeln!(f, "  no time passed between the request and its answer");
    }
    // Where there are many, the shortest are not shown.
    let least_ns = least_shown_ns(&report.path, PARTS);
    let mut table = Table::new(&[">after", ">time", ">share", "thread", "what"]);
    let (mut hidden, mut hidden_ns) = (0_u64, 0_u64);
    for part in &report.path {
        if part.time_ns < least_ns {
            hidden += 1;
            hidden_ns += part.time_ns;
            continue;
        }
        table.row(vec![
            Time::from(part.after_ns).to_string(),
            Time::from(part.time_ns).to_string(),
            Share::of(part.time_ns, whole_ns).to_string(),
            format!("{} {} on {}", part.name, part.thread, part.host),
            what(part),
        ]);
    }
    write!(f, "{table}")?;
    if hidden > 0 {
        writeln!(f, "  {hidden} shorter parts: {} (--json has all)", Time::from(hidden_ns))?;
    }
    let sum_ns: u64 = report.path.iter().map(|part| part.time_ns).sum();
    writeln!(f, "  sum of all parts: {} of {}", Time::from(sum_ns), Time::from(whole_ns))?;
    match counts(&report.counted) {
        Some(counts) => writeln!(f, "  counted on processors: {counts}"),
        None => Ok(()),
    }
}

/// What was counted: cycles of an instruction, and each other event that happened.
fn counts(counted: &[EventCount]) -> Option<String> {
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

/// Which request it is.
pub(crate) fn title(request: &Ranked) -> String {
    let title = format!(
        "Request {}: {} of {} on {}",
        request.number,
        Time::from(request.time_ns),
        request.process,
        request.host
    );
    match &request.span {
        Some(named) => format!("{title}: {}", span(named)),
        None => title,
    }
}

/// What a program calls a request.
pub(crate) fn span(span: &SpanName) -> String {
    format!("{} (trace {})", span.name, span.trace_id)
}

/// A time after the request began, with by how much it may be off.
pub(crate) fn moment(after_ns: Option<i64>, error_ns: Option<u64>) -> String {
    let after = after_ns.map_or_else(|| "-".to_owned(), signed);
    match error_ns {
        Some(0) | None => after,
        Some(error_ns) => format!("{after} ± {}", Time::from(error_ns)),
    }
}

/// How long a part of a path is at least, ns, if only so many of the longest are shown.
pub(crate) fn least_shown_ns(path: &[PathPart], most: usize) -> u64 {
    let mut lengths: Vec<u64> = path.iter().map(|part| part.time_ns).collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    let longest_hidden_ns = lengths.get(most);
    longest_hidden_ns.map_or(0, |length_ns| length_ns.saturating_add(1))
}

/// What a part of a path was, in words.
pub(crate) fn what(part: &PathPart) -> String {
    let Some(from) = &part.from else {
        return match (part.cause, counts(&part.counted)) {
            (Some(cause), _) => format!("{} ({cause})", part.what),
            (None, Some(counts)) => format!("{}, {counts}", part.what),
            (None, None) => part.what.to_owned(),
        };
    };
    let error = match (part.is_between_hosts, part.error_ns) {
        (false, _) => String::new(),
        (true, Some(error_ns)) => format!(", ± {}", Time::from(error_ns)),
        (true, None) => ", not bounded".to_owned(),
    };
    format!("{} from {from}{error}", part.what)
}
