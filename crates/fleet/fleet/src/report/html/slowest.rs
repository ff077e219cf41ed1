//! Draws why the slowest requests are slow, and how their time differs from that of usual ones.

use std::collections::BTreeMap;

use luc_graphs::{
    BarGraph, EstimatedValue, Graph, GraphBar, GraphTable, MOST_SERIES, PageSection, StackedBar,
    StackedBars, TableEntry,
};
use luc_units::number_formats::{FormattedShare, FormattedTime};

use crate::explain::{
    FleetExplanation, RequestGroup, SlowRequestFinding, SlowRequestFindings, worth_showing,
};
use crate::report::html::columns;
use crate::text::findings::title;
use crate::text::request::span;

/// Maximum number of addresses.
const MAX_ADDRESSES: usize = 3;
/// Maximum number of findings of an address.
const MAX_FINDINGS: usize = 8;
/// Minimum share of a finding after the first.
const MIN_SHARE: f64 = 0.01;

pub(super) fn sections(all: &FleetExplanation) -> Vec<PageSection> {
    let shown = all.findings.iter().take(MAX_ADDRESSES);
    let mut text = vec![if all.findings.is_empty() {
        "None of the requests in these traces has an answer.".to_owned()
    } else {
        let least = FormattedShare(MIN_SHARE);
        format!(
            "An address has at most {MAX_FINDINGS} findings here, and after the first none of less than {least} of the time."
        )
    }];
    if all.findings.len() > MAX_ADDRESSES {
        text.push(format!(
            "The {MAX_ADDRESSES} addresses whose requests took the most time in all are shown."
        ));
    }
    let mut sections = vec![PageSection {
        title: "Why the slowest requests are slow".to_owned(),
        text,
        graphs: shown.clone().map(draw_findings).chain(list_slowest(all)).collect(),
    }];
    if !all.findings.is_empty() {
        let text = "The slowest are one request in 20, but at least 10 and at most 200; the usual ones are as many around \
                    the median. Bars are as long as a request takes in the mean.";
        sections.push(PageSection {
            title: "The slowest against usual requests, by host and part".to_owned(),
            text: vec![text.to_owned()],
            graphs: shown.map(draw_comparison).collect(),
        });
    }
    sections
}

fn draw_findings(found: &SlowRequestFindings) -> Graph {
    let shown = worth_showing(&found.findings, MAX_FINDINGS, MIN_SHARE);
    let bar = |one: &SlowRequestFinding| GraphBar {
        name: one.text.clone(),
        figure: Some(EstimatedValue {
            value: one.share * 100.0,
            interval: Some((one.share_low * 100.0, one.share_high * 100.0)),
        }),
        remark: format!(
            "{} of usual ones; the largest part of {} of {}",
            FormattedShare::of(one.usual_time_ns, found.usual.time_ns),
            one.largest_in,
            found.slowest.requests
        ),
        is_aside: false,
    };
    Graph::Bars(BarGraph {
        title: title(found),
        row: "what the slowest requests' time went into".to_owned(),
        unit: "% of their time (95 % interval)".to_owned(),
        bars: shown.map(bar).collect(),
    })
}

/// Lists the slowest requests.
fn list_slowest(all: &FleetExplanation) -> Option<Graph> {
    let has_spans = all.slowest.iter().any(|request| request.span.is_some());
    let rows = all.slowest.iter().map(|request| -> Vec<TableEntry> {
        let mut row: Vec<TableEntry> = vec![
            request.number.to_string().into(),
            FormattedTime::from(request.time_ns).to_string().into(),
            FormattedTime::from(request.began_ns).to_string().into(),
            request.host.clone().into(),
            request.process.clone().into(),
            request.address.clone().into(),
        ];
        if has_spans {
            row.push(request.span.as_ref().map(span).unwrap_or_default().into());
        }
        row
    });
    let heads = "request | >time | >began at | host | process | address";
    let span_head = if has_spans { " | span" } else { "" };
    (!all.slowest.is_empty()).then(|| {
        Graph::Table(GraphTable {
            title: "The slowest requests that are not known to be made for another (--request N shows one)".to_owned(),
            columns: columns(&format!("{heads}{span_head}")),
            rows: rows.collect(),
            more: 0,
        })
    })
}

/// Time of one kind on one host in the slowest and in the usual requests, ns.
#[derive(Debug, Clone, Copy, Default)]
struct HostPart {
    slow_ns: u64,
    usual_ns: u64,
}

/// Draws the mean slow and the mean usual request, by host and kind of time.
fn draw_comparison(found: &SlowRequestFindings) -> Graph {
    let mut sums: BTreeMap<(&str, &str), HostPart> = BTreeMap::new();
    for one in &found.findings {
        let part = sums.entry((&one.who.host, one.kind)).or_default();
        part.slow_ns = part.slow_ns.saturating_add(one.time_ns);
        part.usual_ns = part.usual_ns.saturating_add(one.usual_time_ns);
    }
    let mut sums: Vec<((&str, &str), HostPart)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, part)| std::cmp::Reverse(part.slow_ns));
    // The last class is all the rest. For usual requests this includes parts that no slow one has.
    sums.truncate(MOST_SERIES - 1);
    let mean = |sum_ns: u64, requests: u64| sum_ns as f64 / requests.max(1) as f64;
    let row = |name: &str, group: RequestGroup, pick: fn(&HostPart) -> u64| {
        let known_ns = sums.iter().map(|(_, part)| pick(part));
        let rest_ns = known_ns.fold(group.time_ns, u64::saturating_sub);
        let parts = sums.iter().map(|(_, part)| pick(part)).chain([rest_ns]);
        StackedBar {
            name: format!("{} {name}", group.requests),
            note: FormattedTime::from(group.mean_ns()).to_string(),
            parts: parts.map(|ns| mean(ns, group.requests)).collect(),
        }
    };
    let classes =
        sums.iter().map(|((host, kind), _)| format!("{} on {host}", kind.replace('_', " ")));
    Graph::Stacks(StackedBars {
        title: found.address.clone(),
        row: "requests".to_owned(),
        unit: "mean time".to_owned(),
        classes: classes.chain(["everything else".to_owned()]).collect(),
        is_of_one_scale: true,
        rows: vec![
            row("slowest", found.slowest, |part| part.slow_ns),
            row("usual", found.usual, |part| part.usual_ns),
        ],
    })
}
