//! Draws who calls whom: a map, the figures of its arrows, and the times of services.

use std::collections::BTreeMap;

use luc_graphs::{
    Graph, GraphTable, MOST_SERIES, NetworkGraph, NetworkLink, NetworkNode, PageSection, TableEntry,
};
use luc_units::number_formats::three_digits;

use crate::explain::{FleetExplanation, FleetRequests};
use crate::report::calls_between_processes::{CallsBetweenNodes, MapNode, sum_calls, sum_received};
use crate::report::html::columns;
use crate::text::style::time;

/// Maximum number of arrows on the map and in the table; those with the most requests stay.
const MAX_ARROWS: usize = 30;
/// Maximum number of listed services.
const MAX_SERVICES: usize = 40;

pub(super) fn section(found: &FleetRequests<'_>, all: &FleetExplanation) -> PageSection {
    let all_calls = sum_calls(found);
    let received = sum_received(&all_calls);
    let mut arrows: Vec<((MapNode, MapNode), CallsBetweenNodes)> = all_calls.into_iter().collect();
    arrows.sort_by_key(|(_, calls)| std::cmp::Reverse(calls.requests));
    let more = arrows.len().saturating_sub(MAX_ARROWS);
    arrows.truncate(MAX_ARROWS);
    let text = "Processes of one name that answer at one address are one box; arrows go from who asks to who answers. A time \
                is as long as the client waited, where it is in a trace.";
    let mut graphs = Vec::new();
    if !arrows.is_empty() {
        graphs.push(Graph::Network(draw_network(found, &arrows, &received)));
        graphs.push(Graph::Table(list_calls(found, &arrows, more)));
    }
    graphs.extend(list_services(all));
    PageSection { title: "Who calls whom".to_owned(), text: vec![text.to_owned()], graphs }
}

fn draw_network(
    found: &FleetRequests<'_>,
    arrows: &[((MapNode, MapNode), CallsBetweenNodes)],
    received: &BTreeMap<MapNode, CallsBetweenNodes>,
) -> NetworkGraph {
    let mut places: Vec<&MapNode> = Vec::new();
    // Nodes with the most requests come first.
    for place in arrows.iter().flat_map(|((from, to), _)| [from, to]) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let node = |place: &&MapNode| {
        let (name, host) = label_node(found, place);
        let mut lines = vec![name.clone(), host.clone()];
        lines.extend(received.get(*place).map(|calls| {
            let rate = format_rate(found, place, calls.requests);
            format!("{rate}, median {}", time(calls.time_ns(0.5)))
        }));
        NetworkNode {
            title: format!("{name}, {host}"),
            lines,
            class: match place {
                MapNode::Process(host, ..) => host.0 as usize % (MOST_SERIES - 1),
                MapNode::At(_) | MapNode::Outside => MOST_SERIES - 1,
            },
        }
    };
    let at = |place: &MapNode| places.iter().position(|other| *other == place);
    let link = |((from, to), calls): &((MapNode, MapNode), CallsBetweenNodes)| {
        Some(NetworkLink {
            from: at(from)?,
            to: at(to)?,
            weight: calls.times_ns.iter().map(|&ns| ns as f64).sum(),
            label: format_rate(found, to, calls.requests),
            title: format!(
                "{} requests; median {}, 99 % within {}",
                calls.requests,
                time(calls.time_ns(0.5)),
                time(calls.time_ns(0.99))
            ),
        })
    };
    NetworkGraph {
        title: "Requests per second; the wider an arrow, the more time is spent in its requests"
            .to_owned(),
        nodes: places.iter().map(node).collect(),
        links: arrows.iter().filter_map(link).collect(),
    }
}

/// Name of a node, and where it is.
fn label_node(found: &FleetRequests<'_>, place: &MapNode) -> (String, String) {
    match place {
        MapNode::Process(host, name, service) => {
            let host = found.joined.name(*host);
            let at = service
                .map_or_else(String::new, |service| format!(", {}", found.joined.address(service)));
            (name.clone(), format!("on {host}{at}"))
        }
        MapNode::At(address) => (found.joined.address(*address), "in no trace".to_owned()),
        MapNode::Outside => ("clients".to_owned(), "in no trace".to_owned()),
    }
}

/// Requests per second of the trace of the node's host; for a node without a trace, of the longest trace.
fn format_rate(found: &FleetRequests<'_>, place: &MapNode, requests: u64) -> String {
    let hosts = found.joined.hosts.iter();
    let length_ns = match place {
        MapNode::Process(host, ..) => found.joined.host(*host).summary.length_ns,
        _ => hosts.map(|host| host.summary.length_ns).max().unwrap_or(0),
    };
    if length_ns == 0 {
        return format!("{requests} requests");
    }
    let per_s = requests as f64 * 1e9 / length_ns as f64;
    format!("{}/s", three_digits(per_s))
}

fn list_calls(
    found: &FleetRequests<'_>,
    arrows: &[((MapNode, MapNode), CallsBetweenNodes)],
    more: usize,
) -> GraphTable {
    let row = |((from, to), calls): &((MapNode, MapNode), CallsBetweenNodes)| -> Vec<TableEntry> {
        let place = |place| {
            let (name, host) = label_node(found, place);
            format!("{name} {host}")
        };
        vec![
            place(from).into(),
            place(to).into(),
            calls.requests.to_string().into(),
            format_rate(found, to, calls.requests).into(),
            time(calls.time_ns(0.5)).into(),
            time(calls.time_ns(0.99)).into(),
            time(calls.times_ns.last().copied()).into(),
        ]
    };
    GraphTable {
        title: "Requests, as the client sees them".to_owned(),
        columns: columns("from | to | >requests | >rate | >p50 | >p99 | >longest"),
        rows: arrows.iter().map(row).collect(),
        more,
    }
}

fn list_services(all: &FleetExplanation) -> Option<Graph> {
    if all.services.is_empty() {
        return None;
    }
    let rows = all.services.iter().take(MAX_SERVICES).map(|service| -> Vec<TableEntry> {
        vec![
            service.process.clone().into(),
            service.host.clone().into(),
            service.endpoint().to_string().into(),
            service.requests.to_string().into(),
            service.answered.to_string().into(),
            time(service.p50_ns).into(),
            time(service.p99_ns).into(),
            time(service.max_ns).into(),
        ]
    });
    Some(Graph::Table(GraphTable {
        title: "Services, by the server's own time".to_owned(),
        columns: columns("process | host | at | >requests | >answered | >p50 | >p99 | >longest"),
        rows: rows.collect(),
        more: all.services.len().saturating_sub(MAX_SERVICES),
    }))
}
