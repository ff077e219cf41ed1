//! Each host: what its processors and threads did; how the clocks relate, and how long messages took.

use luc_graphs::{Entry, Graph, Section, Stack, Stacks, Table};
use luc_units::figures::{Share, Time};

use crate::explain::{Explanation, Found, OneWay};
use crate::figures::Spread;
use crate::fit::PairReport;
use crate::joined::{Host, HostSummary};
use crate::report::html::cut;
use crate::text::style::signed;
use crate::wait_kind::WaitKind;

/// Hosts, pairs and ways that are listed.
const LISTED: usize = 100;

/// What threads wait for, as the bars have it.
const WAITS: [(&str, &[WaitKind]); 5] = [
    (
        "storage, journal, memory",
        &[WaitKind::Storage, WaitKind::Journal, WaitKind::Fsync, WaitKind::Memory],
    ),
    ("locks", &[WaitKind::Lock]),
    ("input: messages, files", &[WaitKind::Input]),
    ("a time to pass", &[WaitKind::Timer]),
    ("other", &[WaitKind::Frozen, WaitKind::Other]),
];

pub(super) fn section(found: &Found<'_>, all: &Explanation) -> Section {
    let hosts = &found.joined.hosts;
    let mut text = Vec::from_iter(cut(hosts.len(), LISTED, "hosts"));
    let mut graphs = Vec::new();
    if hosts.iter().any(has_processor_times) {
        graphs.push(Graph::Stacks(processors(hosts)));
    } else {
        text.push("The traces do not say how long threads were on a processor.".to_owned());
    }
    graphs.push(Graph::Stacks(threads(hosts)));
    graphs.push(Graph::Table(list(all)));
    Section { title: "Hosts".to_owned(), text, graphs }
}

fn has_processor_times(host: &Host) -> bool {
    host.times.user_ns.saturating_add(host.times.system_ns) > 0
}

fn processors(hosts: &[Host]) -> Stacks {
    let row = |host: &Host| {
        let times = &host.times;
        let summary = &host.summary;
        let all_ns = summary.length_ns.saturating_mul(u64::from(summary.processors));
        let idle_ns = all_ns.saturating_sub(times.user_ns).saturating_sub(times.system_ns);
        Stack {
            name: host.name.clone(),
            note: summary.processors.to_string(),
            parts: [times.user_ns, times.system_ns, idle_ns].map(|ns| ns as f64).to_vec(),
        }
    };
    let shown = hosts.iter().filter(|host| has_processor_times(host));
    Stacks {
        title: "What the processors did".to_owned(),
        row: "host".to_owned(),
        unit: "processors".to_owned(),
        classes: ["user", "system", "idle, or of threads that are in no trace"]
            .map(str::to_owned)
            .to_vec(),
        is_of_one_scale: false,
        rows: shown.take(LISTED).map(row).collect(),
    }
}

/// What threads did and waited for.
fn threads(hosts: &[Host]) -> Stacks {
    let row = |host: &Host| {
        let times = &host.times;
        let mut parts = vec![times.user_ns, times.system_ns, times.runnable_ns];
        parts.extend(WAITS.iter().map(|(_, kinds)| times.waits_for_ns(kinds)));
        let sum_ns = parts.iter().copied().fold(0, u64::saturating_add);
        Stack {
            name: host.name.clone(),
            note: Time::from(sum_ns).to_string(),
            parts: parts.into_iter().map(|ns| ns as f64).collect(),
        }
    };
    let waits = WAITS.iter().map(|(name, _)| format!("waits: {name}"));
    let classes = ["user", "system", "waits for a processor"].map(str::to_owned);
    Stacks {
        title: "What the threads did and waited for, all together; idle ones wait for input, locks or a time".to_owned(),
        row: "host".to_owned(),
        unit: "time of threads".to_owned(),
        classes: classes.into_iter().chain(waits).collect(),
        is_of_one_scale: false,
        rows: hosts.iter().take(LISTED).map(row).collect(),
    }
}

fn list(all: &Explanation) -> Table {
    let row = |host: &HostSummary| -> Vec<Entry> {
        let lost: u64 = host.lost.values().copied().fold(0, u64::saturating_add);
        vec![
            host.name.clone().into(),
            host.kernel.clone().into(),
            host.processors.to_string().into(),
            Time::from(host.length_ns).to_string().into(),
            host.connections.to_string().into(),
            host.messages.to_string().into(),
            host.packets.to_string().into(),
            host.retransmits.to_string().into(),
            lost.to_string().into(),
            host.filters.clone().into(),
        ]
    };
    Table {
        title: "Traces".to_owned(),
        columns: vec![
            ("host".to_owned(), false),
            ("kernel".to_owned(), false),
            ("processors".to_owned(), true),
            ("length".to_owned(), true),
            ("connections".to_owned(), true),
            ("sends, receives".to_owned(), true),
            ("packets".to_owned(), true),
            ("sent again".to_owned(), true),
            ("lost rows".to_owned(), true),
            ("limited to".to_owned(), false),
        ],
        rows: all.hosts.iter().take(LISTED).map(row).collect(),
        more: all.hosts.len().saturating_sub(LISTED),
    }
}

/// How the clocks relate, and how long messages took.
pub(super) fn clocks(all: &Explanation) -> Section {
    let mut graphs = Vec::new();
    if !all.clocks.is_empty() {
        graphs.push(Graph::Table(pairs(&all.clocks)));
    }
    if !all.one_way.is_empty() {
        graphs.push(Graph::Table(one_way(&all.one_way)));
    }
    let text = match all.hosts.len() {
        0 | 1 => "All times are of one clock.",
        _ => {
            "Packets bound how far two clocks are apart: none arrives before it is sent. `luc fleet fit` says more of \
             the clocks."
        }
    };
    Section { title: "Clocks and messages".to_owned(), text: vec![text.to_owned()], graphs }
}

fn pairs(pairs: &[PairReport]) -> Table {
    let row = |pair: &PairReport| -> Vec<Entry> {
        let offset = pair.offset.as_ref();
        let width = |pick: fn(&Spread) -> f64| {
            let width = offset.and_then(|offset| offset.half_width.as_ref());
            width.map_or_else(|| "-".to_owned(), |width| Time(pick(width)).to_string())
        };
        vec![
            format!("{} and {}", pair.a, pair.b).into(),
            pair.packets_a_to_b.to_string().into(),
            pair.packets_b_to_a.to_string().into(),
            width(|width| width.median_ns).into(),
            width(|width| width.max_ns).into(),
            offset
                .map_or_else(|| "-".to_owned(), |offset| Share(offset.without_a_bound).to_string())
                .into(),
            pair.failure.clone().unwrap_or_default().into(),
        ]
    };
    Table {
        title: "To how much the clocks are known, either side".to_owned(),
        columns: vec![
            ("hosts".to_owned(), false),
            ("packets there".to_owned(), true),
            ("packets back".to_owned(), true),
            ("median".to_owned(), true),
            ("greatest".to_owned(), true),
            ("time without a bound".to_owned(), true),
            ("not known because".to_owned(), false),
        ],
        rows: pairs.iter().take(LISTED).map(row).collect(),
        more: pairs.len().saturating_sub(LISTED),
    }
}

fn one_way(ways: &[OneWay]) -> Table {
    let row = |way: &OneWay| -> Vec<Entry> {
        let signed_or_dash = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), signed);
        let error = match &way.error {
            Some(error) => format!("± {}", Time(error.median_ns)),
            None if way.from == way.to => "exact".to_owned(),
            None => "-".to_owned(),
        };
        vec![
            way.from.clone().into(),
            way.to.clone().into(),
            way.edges.to_string().into(),
            signed_or_dash(way.p50_ns).into(),
            signed_or_dash(way.p99_ns).into(),
            error.into(),
            way.before_sent.to_string().into(),
        ]
    };
    Table {
        title: "Messages, from the call that sends to the end of the call that receives".to_owned(),
        columns: vec![
            ("from".to_owned(), false),
            ("to".to_owned(), false),
            ("messages".to_owned(), true),
            ("p50".to_owned(), true),
            ("p99".to_owned(), true),
            ("may be off by".to_owned(), true),
            ("arrived before they were sent".to_owned(), true),
        ],
        rows: ways.iter().take(LISTED).map(row).collect(),
        more: ways.len().saturating_sub(LISTED),
    }
}
