//! Writes one page with all results, for a browser: no other file, no script, no network.
//!
//! Programs choose the names in traces: `luc-graphs` escapes all of them. The page's size is bounded for any trace:
//! lists are cut, with a note.

mod call_map;
mod hosts;
mod request;
mod slowest;

use std::io::Write;

use luc_graphs::GraphPage;
use luc_units::number_formats::FormattedTime;

use crate::explain::{ExplanationOptions, FleetExplanation, RequestFindings, explain_found};
use crate::report::{ReportError, ReportSource};
use crate::text::style::count;

/// Maximum number of hosts that the title names.
const MAX_TITLE_HOSTS: usize = 6;
/// Maximum number of warnings.
const MAX_WARNINGS: usize = 50;

/// Writes the page.
///
/// # Errors
/// [`ReportError::Fleet`] if no request has the number; [`ReportError::Output`].
pub fn write(report: &ReportSource<'_>, mut out: impl Write) -> Result<(), ReportError> {
    let found = &report.found;
    let wanted = ExplanationOptions { request: report.chosen.request, rows: false };
    let findings = RequestFindings::new(found);
    let all = explain_found(&findings, wanted)?;
    let mut sections = slowest::sections(&all);
    if let Some(request) = &all.request {
        sections.push(request::section(&findings, request)?);
    }
    sections.push(call_map::section(found, &all));
    sections.push(hosts::section(found, &all));
    sections.push(hosts::clocks(&all));
    let page = GraphPage {
        title: title(&all),
        kind: "fleet report".to_owned(),
        facts: facts(&all),
        warnings: warnings(&all),
        sections,
        footer: footer(),
    };
    out.write_all(luc_graphs::page(&page).as_bytes())?;
    Ok(out.flush()?)
}

fn title(all: &FleetExplanation) -> String {
    let names: Vec<&str> = all.hosts.iter().map(|host| host.name.as_str()).collect();
    let shown = names[..names.len().min(MAX_TITLE_HOSTS)].join(", ");
    match names.len() {
        0..=MAX_TITLE_HOSTS => shown,
        more => format!("{shown} and {} more", more - MAX_TITLE_HOSTS),
    }
}

fn facts(all: &FleetExplanation) -> Vec<String> {
    let longest_ns = all.hosts.iter().map(|host| host.length_ns).max();
    let mut facts = vec![
        count(all.hosts.len() as u64, "host", "hosts"),
        format!("{} recorded", FormattedTime::from(longest_ns.unwrap_or(0))),
        count(
            all.connections.paired.all(),
            "connection with both ends known",
            "connections with both ends known",
        ),
        count(all.messages.edges, "message", "messages"),
        count(all.requests.incoming, "request received", "requests received"),
    ];
    if let Some(request) = &all.request {
        facts.push(format!(
            "shows request {}, {}",
            request.request.number,
            FormattedTime::from(request.request.time_ns)
        ));
    }
    facts
}

/// Collects what makes figures doubtful.
fn warnings(all: &FleetExplanation) -> Vec<String> {
    let mut warnings: Vec<String> = Vec::new();
    warnings.extend(all.contradiction.clone());
    for host in &all.hosts {
        if !host.is_complete {
            let why = "the recorder has not ended by itself";
            warnings.push(format!("{}: {why}", host.name));
        }
        for (table, rows) in &host.lost {
            warnings.push(format!("{}: {rows} rows of {table} were lost", host.name));
        }
    }
    for host in &all.unrelated {
        warnings.push(format!(
            "{}: its clock does not relate to any other's: {}",
            host.host, host.reason
        ));
    }
    let more = cut(warnings.len(), MAX_WARNINGS, "warnings");
    warnings.truncate(MAX_WARNINGS);
    warnings.extend(more);
    warnings
}

/// Notes how many entries of a list are left out.
fn cut(all: usize, shown: usize, what: &str) -> Option<String> {
    let more = all.checked_sub(shown).filter(|&more| more > 0)?;
    Some(format!("{more} more {what} are not shown here."))
}

/// Columns of a table from headings between " | "; a '>' before a heading marks a column of figures.
fn columns(heads: &str) -> Vec<(String, bool)> {
    let heads = heads.split(" | ");
    heads.map(|head| (head.trim_start_matches('>').to_owned(), head.starts_with('>'))).collect()
}

fn footer() -> Vec<String> {
    [
        "Times of other hosts are placed on the clock of the host that has the request. An error bar shows by how much \
         that may be off: the bounds are guaranteed if a clock's rate changes by at most 5 us/s each second.",
        "The parts of a request's time sum to it exactly. The findings of an address sum to the time of \
         its slowest requests.",
    ]
    .map(str::to_owned)
    .to_vec()
}
