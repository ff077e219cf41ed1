//! Draws one request: its calls as a waterfall, and what its time went into.

use luc_graphs::{
    BarGraph, EstimatedValue, Graph, GraphBar, GraphTable, LaneSpan, PageSection, SpanGraph,
    SpanLane, TableEntry,
};
use luc_units::number_formats::{FormattedShare, FormattedTime};

use crate::error::FleetError;
use crate::explain::{
    CallThread, PathPart, RequestFindings, RequestReport, SlowRequestFinding, TreeCallReport,
    worth_showing,
};
use crate::report::html::{columns, cut};
use crate::text::request::{label_part, min_shown_ns, moment, title, what};
use crate::text::style::time;

/// Maximum number of calls that are shown: the first.
const MAX_CALLS: usize = 200;
/// Maximum number of threads of a path that are shown.
const MAX_THREADS: usize = 60;
/// Maximum number of parts of a path that are drawn: the longest. An axis has fewer pixels.
const MAX_DRAWN_PARTS: usize = 2_000;
/// Maximum number of parts of a path that are listed: the first.
const MAX_LISTED_PARTS: usize = 100;
/// Maximum number of findings.
const MAX_FINDINGS: usize = 12;
/// Minimum share of a finding after the first.
const MIN_SHARE: f64 = 0.001;

/// Kinds of parts, each with a colour: those that share one, and its name.
const PART_CLASSES: [(&str, &[&str]); 5] = [
    ("computes", &["computes"]),
    ("has, or waits for, a processor", &["processor", "no_processor", "throttled"]),
    ("waits", &[]),
    ("gets a message late", &["network", "held_back"]),
    ("not known", &["unknown", "outside"]),
];
/// Class of all other kinds.
const OTHER_CLASS: usize = 2;

pub(super) fn section(
    explained: &RequestFindings<'_>,
    report: &RequestReport,
) -> Result<PageSection, FleetError> {
    let request = &report.request;
    let text = format!(
        "Sent to {}, {} after the trace of {} began. All times are on the clock of {}; an error bar shows by how much the \
         begin of what is on another host may be off.",
        request.address,
        FormattedTime::from(request.began_ns),
        request.host,
        request.host
    );
    let mut text = vec![text];
    text.extend(cut(report.calls.len(), MAX_CALLS, "calls"));
    let mut graphs = vec![Graph::Spans(draw_calls(report))];
    if !report.path.is_empty() {
        let (path, left_out) = draw_path(report);
        text.extend(left_out);
        let least = FormattedShare(MIN_SHARE);
        text.push(format!(
            "The list of whose time it is has at most {MAX_FINDINGS} findings, and after the first none of less than {least}."
        ));
        graphs.push(Graph::Spans(path));
        graphs.push(Graph::Bars(draw_blame(explained, report)?));
        graphs.push(Graph::Table(list_parts(report)));
    }
    Ok(PageSection { title: title(request), text, graphs })
}

/// Draws all calls on one axis.
fn draw_calls(report: &RequestReport) -> SpanGraph {
    let lane = |call: &TreeCallReport| {
        let mut spans = Vec::new();
        if let (Some(after_ns), Some(client)) = (call.after_ns, &call.client) {
            spans.push(LaneSpan {
                begin_ns: after_ns,
                end_ns: end_ns(after_ns, call.time_ns),
                error_ns: call.after_error_ns,
                class: 0,
                title: format!(
                    "{} waits for the answer: {}",
                    label_actor(client),
                    time(call.time_ns)
                ),
                is_inner: false,
            });
        }
        if let (Some(after_ns), Some(server)) = (call.server_after_ns, &call.server) {
            spans.push(LaneSpan {
                begin_ns: after_ns,
                end_ns: end_ns(after_ns, call.server_time_ns),
                error_ns: call.server_after_error_ns,
                class: 1,
                title: format!("{} has it: {}", label_actor(server), time(call.server_time_ns)),
                is_inner: true,
            });
        }
        let place = |actor: &Option<CallThread>| match actor {
            Some(actor) => format!("{} on {}", actor.process, actor.host),
            None => "no trace".to_owned(),
        };
        let made = match call.evidence {
            Some(evidence) => format!("; made for it by: {evidence}"),
            None => String::new(),
        };
        SpanLane {
            name: format!("{} → {}", place(&call.client), place(&call.server)),
            note: format!("{}, {} bytes{made}", call.address, call.bytes),
            depth: call.depth,
            cells: vec![
                moment(call.after_ns, call.after_error_ns),
                time(call.time_ns),
                moment(call.server_after_ns, call.server_after_error_ns),
                time(call.server_time_ns),
            ],
            spans,
        }
    };
    SpanGraph {
        title: "All calls that were made for it".to_owned(),
        lane: "call".to_owned(),
        columns: ["sent after", "answered in", "server begins after", "and takes"]
            .map(str::to_owned)
            .to_vec(),
        length_ns: report.request.time_ns,
        classes: vec![
            "the client waits for the answer".to_owned(),
            "the server has the request".to_owned(),
        ],
        lanes: report.calls.iter().take(MAX_CALLS).map(lane).collect(),
    }
}

fn end_ns(after_ns: i64, time_ns: Option<u64>) -> i64 {
    after_ns.saturating_add_unsigned(time_ns.unwrap_or(0))
}

fn label_actor(actor: &CallThread) -> String {
    format!("{} {} on {}", actor.name, actor.thread, actor.host)
}

/// Draws what the time went into, with a lane for each thread. Also returns notes on what is left out.
fn draw_path(report: &RequestReport) -> (SpanGraph, Vec<String>) {
    let min_ns = min_shown_ns(&report.path, MAX_DRAWN_PARTS);
    let mut drawn = 0;
    let mut lanes: Vec<(String, SpanLane, u64)> = Vec::new();
    for part in &report.path {
        let label = label_part(part);
        let known = lanes.iter().position(|(of_lane, _, _)| *of_lane == label);
        let at = known.unwrap_or_else(|| {
            let lane = SpanLane {
                name: label.clone(),
                note: part.process.as_deref().unwrap_or("process not known").to_owned(),
                ..SpanLane::default()
            };
            lanes.push((label, lane, 0));
            lanes.len() - 1
        });
        let begin_ns = i64::try_from(part.after_ns).unwrap_or(i64::MAX);
        let (_, lane, sum_ns) = &mut lanes[at];
        *sum_ns = sum_ns.saturating_add(part.time_ns);
        if part.time_ns < min_ns {
            continue;
        }
        drawn += 1;
        lane.spans.push(LaneSpan {
            begin_ns,
            end_ns: begin_ns.saturating_add_unsigned(part.time_ns),
            error_ns: part.error_ns.filter(|_| part.is_between_hosts),
            class: find_class(part),
            title: format!("{}: {}", what(part), FormattedTime::from(part.time_ns)),
            is_inner: false,
        });
    }
    let whole_ns = report.request.time_ns;
    let threads = cut(lanes.len(), MAX_THREADS, "threads that its time went into");
    let parts = cut(report.path.len(), drawn, "parts, the shortest,");
    let lanes = lanes.into_iter().take(MAX_THREADS);
    let lanes = lanes.map(|(_, lane, sum_ns)| SpanLane {
        cells: vec![
            FormattedTime::from(sum_ns).to_string(),
            FormattedShare::of(sum_ns, whole_ns).to_string(),
        ],
        ..lane
    });
    let spans = SpanGraph {
        title: "What its time went into, thread by thread".to_owned(),
        lane: "thread".to_owned(),
        columns: vec!["time".to_owned(), "share".to_owned()],
        length_ns: whole_ns,
        classes: PART_CLASSES.map(|(name, _)| name.to_owned()).to_vec(),
        lanes: lanes.collect(),
    };
    (spans, threads.into_iter().chain(parts).collect())
}

fn find_class(part: &PathPart) -> usize {
    let at = PART_CLASSES.iter().position(|(_, kinds)| kinds.contains(&part.kind));
    at.unwrap_or(OTHER_CLASS)
}

/// Draws the findings of the request.
fn draw_blame(
    explained: &RequestFindings<'_>,
    report: &RequestReport,
) -> Result<BarGraph, FleetError> {
    let findings = explained.of_one(report.request.number)?;
    let shown = worth_showing(&findings, MAX_FINDINGS, MIN_SHARE);
    let bar = |one: &SlowRequestFinding| GraphBar {
        name: one.text.clone(),
        figure: Some(EstimatedValue { value: one.share * 100.0, interval: None }),
        remark: FormattedTime::from(one.time_ns).to_string(),
        is_aside: false,
    };
    Ok(BarGraph {
        title: "Whose time it is".to_owned(),
        row: "what the request's time went into".to_owned(),
        unit: "% of its time".to_owned(),
        bars: shown.map(bar).collect(),
    })
}

/// Lists the parts of the path in order.
fn list_parts(report: &RequestReport) -> GraphTable {
    let row = |part: &PathPart| -> Vec<TableEntry> {
        vec![
            FormattedTime::from(part.after_ns).to_string().into(),
            FormattedTime::from(part.time_ns).to_string().into(),
            FormattedShare::of(part.time_ns, report.request.time_ns).to_string().into(),
            label_part(part).into(),
            what(part).into(),
        ]
    };
    GraphTable {
        title: "What its time went into, part by part".to_owned(),
        columns: columns("after | >time | >share | thread | what"),
        rows: report.path.iter().take(MAX_LISTED_PARTS).map(row).collect(),
        more: report.path.len().saturating_sub(MAX_LISTED_PARTS),
    }
}
