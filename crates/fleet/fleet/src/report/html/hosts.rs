//! Draws what the processors and threads of each host did, how the clocks relate, and how long messages took.

use luc_graphs::{Graph, GraphTable, PageSection, StackedBar, StackedBars, TableEntry};
use luc_units::number_formats::{FormattedShare, FormattedTime};

use crate::clock_fit_report::PairReport;
use crate::explain::{FleetExplanation, FleetRequests, OneWayTimes};
use crate::joined_traces::{HostSummary, JoinedHost};
use crate::min_median_max::MinMedianMax;
use crate::report::html::{columns, cut};
use crate::text::style::{dash_or, signed};
use crate::thread_times::WaitClass;

/// Maximum number of hosts, of pairs and of directions.
const MAX_ROWS: usize = 100;

pub(super) fn section(found: &FleetRequests<'_>, all: &FleetExplanation) -> PageSection {
    let hosts = &found.joined.hosts;
    let mut text = Vec::from_iter(cut(hosts.len(), MAX_ROWS, "hosts"));
    let mut graphs = Vec::new();
    if hosts.iter().any(has_processor_times) {
        graphs.push(Graph::Stacks(draw_processors(hosts)));
    } else {
        text.push("The traces do not say how long threads were on a processor.".to_owned());
    }
    graphs.push(Graph::Stacks(draw_threads(hosts)));
    graphs.push(Graph::Table(list_traces(all)));
    PageSection { title: "Hosts".to_owned(), text, graphs }
}

fn has_processor_times(host: &JoinedHost) -> bool {
    host.times.user_ns.saturating_add(host.times.system_ns) > 0
}

fn draw_processors(hosts: &[JoinedHost]) -> StackedBars {
    let row = |host: &JoinedHost| {
        let times = &host.times;
        let summary = &host.summary;
        let all_ns = summary.length_ns.saturating_mul(u64::from(summary.processors));
        let idle_ns = all_ns.saturating_sub(times.user_ns).saturating_sub(times.system_ns);
        StackedBar {
            name: host.name.clone(),
            note: summary.processors.to_string(),
            parts: [times.user_ns, times.system_ns, idle_ns].map(|ns| ns as f64).to_vec(),
        }
    };
    let shown = hosts.iter().filter(|host| has_processor_times(host));
    StackedBars {
        title: "What the processors did".to_owned(),
        row: "host".to_owned(),
        unit: "processors".to_owned(),
        classes: ["user", "system", "idle, or of threads that are in no trace"]
            .map(str::to_owned)
            .to_vec(),
        is_of_one_scale: false,
        rows: shown.take(MAX_ROWS).map(row).collect(),
    }
}

/// Draws what threads did and waited for.
fn draw_threads(hosts: &[JoinedHost]) -> StackedBars {
    let row = |host: &JoinedHost| {
        let times = &host.times;
        let mut parts = vec![times.user_ns, times.system_ns, times.runnable_ns];
        parts.extend(WaitClass::NAMES.iter().map(|(class, _)| times.waits_for_ns(*class)));
        let sum_ns = parts.iter().copied().fold(0, u64::saturating_add);
        StackedBar {
            name: host.name.clone(),
            note: FormattedTime::from(sum_ns).to_string(),
            parts: parts.into_iter().map(|ns| ns as f64).collect(),
        }
    };
    let waits = WaitClass::NAMES.iter().map(|(_, name)| format!("waits: {name}"));
    let classes = ["user", "system", "waits for a processor"].map(str::to_owned);
    StackedBars {
        title: "What the threads did and waited for, all together; idle ones wait for input, locks or a time".to_owned(),
        row: "host".to_owned(),
        unit: "time of threads".to_owned(),
        classes: classes.into_iter().chain(waits).collect(),
        is_of_one_scale: false,
        rows: hosts.iter().take(MAX_ROWS).map(row).collect(),
    }
}

fn list_traces(all: &FleetExplanation) -> GraphTable {
    let row = |host: &HostSummary| -> Vec<TableEntry> {
        let lost = host.lost.values().copied().fold(0, u64::saturating_add);
        vec![
            host.name.clone().into(),
            host.kernel.clone().into(),
            host.processors.to_string().into(),
            FormattedTime::from(host.length_ns).to_string().into(),
            host.connections.to_string().into(),
            host.messages.to_string().into(),
            host.packets.to_string().into(),
            host.retransmits.to_string().into(),
            lost.to_string().into(),
            host.filters.clone().into(),
        ]
    };
    GraphTable {
        title: "Traces".to_owned(),
        columns: columns(
            "host | kernel | >processors | >length | >connections | >sends, receives | >packets | >sent again | >lost rows | limited to",
        ),
        rows: all.hosts.iter().take(MAX_ROWS).map(row).collect(),
        more: all.hosts.len().saturating_sub(MAX_ROWS),
    }
}

/// Draws how the clocks relate, and how long messages took.
pub(super) fn clocks(all: &FleetExplanation) -> PageSection {
    let mut graphs = Vec::new();
    if !all.clocks.is_empty() {
        graphs.push(Graph::Table(list_pairs(&all.clocks)));
    }
    if !all.one_way.is_empty() {
        graphs.push(Graph::Table(list_one_way(&all.one_way)));
    }
    let text = match all.hosts.len() {
        0 | 1 => "All times are of one clock.",
        _ => {
            "Packets bound how far two clocks are apart: none arrives before it is sent. `luc fleet fit` says more of \
             the clocks."
        }
    };
    PageSection { title: "Clocks and messages".to_owned(), text: vec![text.to_owned()], graphs }
}

fn list_pairs(pairs: &[PairReport]) -> GraphTable {
    let row = |pair: &PairReport| -> Vec<TableEntry> {
        let offset = pair.offset.as_ref();
        let width = |pick: fn(&MinMedianMax) -> f64| {
            let width = offset.and_then(|offset| offset.half_width.as_ref());
            dash_or(width, |width| FormattedTime(pick(width)).to_string())
        };
        vec![
            format!("{} and {}", pair.a, pair.b).into(),
            pair.packets_a_to_b.to_string().into(),
            pair.packets_b_to_a.to_string().into(),
            width(|width| width.median_ns).into(),
            width(|width| width.max_ns).into(),
            dash_or(offset, |offset| FormattedShare(offset.without_a_bound).to_string()).into(),
            pair.failure.clone().unwrap_or_default().into(),
        ]
    };
    GraphTable {
        title: "To how much the clocks are known, either side".to_owned(),
        columns: columns(
            "hosts | >packets there | >packets back | >median | >greatest | >time without a bound | not known because",
        ),
        rows: pairs.iter().take(MAX_ROWS).map(row).collect(),
        more: pairs.len().saturating_sub(MAX_ROWS),
    }
}

fn list_one_way(ways: &[OneWayTimes]) -> GraphTable {
    let row = |way: &OneWayTimes| -> Vec<TableEntry> {
        let error = match &way.error {
            Some(error) => format!("± {}", FormattedTime(error.median_ns)),
            None if way.from == way.to => "exact".to_owned(),
            None => "-".to_owned(),
        };
        vec![
            way.from.clone().into(),
            way.to.clone().into(),
            way.edges.to_string().into(),
            dash_or(way.p50_ns, signed).into(),
            dash_or(way.p99_ns, signed).into(),
            error.into(),
            way.before_sent.to_string().into(),
        ]
    };
    GraphTable {
        title: "Messages, from the call that sends to the end of the call that receives".to_owned(),
        columns: columns(
            "from | to | >messages | >p50 | >p99 | >may be off by | >arrived before they were sent",
        ),
        rows: ways.iter().take(MAX_ROWS).map(row).collect(),
        more: ways.len().saturating_sub(MAX_ROWS),
    }
}
