//! Prints connections, messages and requests.

use std::collections::BTreeMap;
use std::fmt;

use luc_units::number_formats::{FormattedShare, FormattedSize, FormattedTime};

use super::request::span;
use super::style::{TextStyle, count, dash_or, signed, time};
use super::table::TextTable;
use super::{clocks, request};
use crate::explain::{FleetExplanation, IdleThreads, MatchedSpanCounts};

/// Maximum number of rows of a shortened list.
const MAX_ROWS: usize = 10;

pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    style: TextStyle,
    explanation: &FleetExplanation,
) -> fmt::Result {
    if explanation.hosts.len() > 1 {
        clocks::write_briefly(f, style, &explanation.clocks, &explanation.unrelated)?;
        clocks::write_contradiction(f, explanation.contradiction.as_deref())?;
    }
    print_connections(f, style, explanation)?;
    print_messages(f, style, explanation)?;
    print_one_way(f, style, explanation)?;
    print_requests(f, style, explanation)?;
    print_services(f, style, explanation)?;
    print_idle(f, style, &explanation.idle)?;
    print_slowest(f, style, explanation)?;
    match &explanation.request {
        Some(request) => request::write(f, style, request),
        None => Ok(()),
    }
}

fn print_connections(
    f: &mut fmt::Formatter<'_>,
    style: TextStyle,
    all: &FleetExplanation,
) -> fmt::Result {
    let connections = &all.connections;
    style.title(f, "Connections")?;
    let paired = connections.paired;
    writeln!(
        f,
        "  {} with both ends known, {} between hosts: {} within a host, {} by initial sequence numbers, \
         {} by addresses and numbers, {} by numbers",
        paired.all(),
        connections.between_hosts,
        paired.by_host,
        paired.by_initial_numbers,
        paired.by_addresses,
        paired.by_numbers
    )?;
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for end in &connections.unpaired {
        *reasons.entry(end.reason).or_default() += 1;
    }
    for (reason, ends) in reasons {
        writeln!(f, "  {} without a peer: {reason}", count(ends, "end", "ends"))?;
    }
    for end in connections.unpaired.iter().take(MAX_ROWS) {
        writeln!(f, "    {} {} to {}: {}", end.host, end.local, end.remote, end.reason)?;
    }
    print_more(f, connections.unpaired.len())
}

/// Notes how many rows of a list are left out.
fn print_more(f: &mut fmt::Formatter<'_>, all: usize) -> fmt::Result {
    if all > MAX_ROWS {
        writeln!(f, "    and {} more (--json has all)", all - MAX_ROWS)?;
    }
    Ok(())
}

fn print_messages(
    f: &mut fmt::Formatter<'_>,
    style: TextStyle,
    all: &FleetExplanation,
) -> fmt::Result {
    let messages = &all.messages;
    style.title(f, "Messages")?;
    writeln!(
        f,
        "  {} from {}: {} from a known send to a known reception",
        count(messages.edges, "edge", "edges"),
        count(messages.rows, "send or receive", "sends and receives"),
        FormattedSize(messages.bytes_on_edges as f64)
    )?;
    for gap in &messages.gaps {
        writeln!(
            f,
            "  {} in {} on no edge: {}",
            FormattedSize(gap.bytes as f64),
            count(gap.count, "gap", "gaps"),
            gap.reason
        )?;
    }
    let left_out = messages.left_out;
    for (rows, what) in [
        (left_out.unpaired, "of ends without a peer"),
        (left_out.duplicates, "that are there twice"),
        (left_out.empty, "without a byte"),
        (left_out.damaged, "that are damaged"),
    ] {
        if rows > 0 {
            writeln!(f, "  {rows} sends and receives left out {what}")?;
        }
    }
    Ok(())
}

fn print_one_way(
    f: &mut fmt::Formatter<'_>,
    style: TextStyle,
    all: &FleetExplanation,
) -> fmt::Result {
    if all.one_way.is_empty() {
        return Ok(());
    }
    let title = "One-way times, from the call that sends to the end of the call that receives";
    style.title(f, title)?;
    let mut table = TextTable::new("from | to | >edges | >p50 | >p99 | >may be off by | >up to");
    for way in &all.one_way {
        let error = |pick: fn(crate::min_median_max::MinMedianMax) -> f64| match way.error {
            Some(error) => FormattedTime(pick(error)).to_string(),
            None if way.from == way.to => "0 ns".to_owned(),
            None => "-".to_owned(),
        };
        table.row(vec![
            way.from.clone(),
            way.to.clone(),
            way.edges.to_string(),
            dash_or(way.p50_ns, signed),
            dash_or(way.p99_ns, signed),
            error(|error| error.median_ns),
            error(|error| error.max_ns),
        ]);
    }
    write!(f, "{table}")?;
    for way in &all.one_way {
        if way.without_a_time > 0 {
            writeln!(
                f,
                "  {} to {}: no time of {}, as the clocks are not known then",
                way.from,
                way.to,
                count(way.without_a_time, "edge", "edges")
            )?;
        }
        if way.before_sent > 0 {
            writeln!(
                f,
                "  {} to {}: {} arrived before they were sent: the traces contradict themselves",
                way.from,
                way.to,
                count(way.before_sent, "edge", "edges")
            )?;
        }
    }
    Ok(())
}

fn print_requests(
    f: &mut fmt::Formatter<'_>,
    style: TextStyle,
    all: &FleetExplanation,
) -> fmt::Result {
    let requests = &all.requests;
    style.title(f, "Requests")?;
    writeln!(
        f,
        "  {} received: {} answered, {} with the client in a trace",
        requests.incoming, requests.incoming_answered, requests.incoming_with_client
    )?;
    writeln!(
        f,
        "  {} sent: {} answered, {} with the server in a trace",
        requests.outgoing, requests.outgoing_answered, requests.outgoing_with_server
    )?;
    if requests.ends_without_role > 0 {
        writeln!(
            f,
            "  {} of which it is not known who asks: their messages are no requests",
            count(requests.ends_without_role, "end", "ends")
        )?;
    }
    if let Some(spans) = requests.spans {
        for (counts, whose) in [(spans.servers, "servers"), (spans.clients, "clients")] {
            let MatchedSpanCounts { spans, matched, several, none } = counts;
            writeln!(
                f,
                "  {matched} of {spans} spans of {whose} are put to a request; {several} fit several, {none} none"
            )?;
        }
    }
    let hand_over = requests.hand_over;
    let servers = hand_over.of_servers();
    writeln!(f, "  {} sent by processes that received none", hand_over.of_clients)?;
    writeln!(f, "  {servers} sent by processes that receive requests; made for which one, by")?;
    let mut table = TextTable::new(" | >requests | >share");
    for (requests, what) in [
        (hand_over.token, "the same name in the bytes"),
        (hand_over.same_thread, "the same thread"),
        (hand_over.backward, "its effect on the answer"),
        (hand_over.forward, "a wake-up of an idle thread"),
        (hand_over.queue, "the order of a queue"),
        (hand_over.exclusion, "that no other request lacked a call"),
        (hand_over.unknown, "not known, or for none"),
    ] {
        table.row(vec![
            format!("  {what}"),
            requests.to_string(),
            FormattedShare::of(requests, servers).to_string(),
        ]);
    }
    write!(f, "{table}")
}

/// Maximum number of ticking threads of a host.
const MAX_TICKING: usize = 3;

fn print_idle(f: &mut fmt::Formatter<'_>, style: TextStyle, all: &[IdleThreads]) -> fmt::Result {
    if all.is_empty() {
        return Ok(());
    }
    style.title(f, "Threads without work")?;
    for idle in all {
        write!(
            f,
            "  {}: {} of {} only waited for work",
            idle.host,
            idle.without_work,
            count(idle.threads, "thread", "threads")
        )?;
        if idle.asleep > 0 {
            write!(f, ", {} of them all along", idle.asleep)?;
        }
        let ticking = idle.ticking.len();
        if ticking > 0 {
            write!(f, "; {ticking} woke again and again for nothing")?;
        }
        writeln!(f)?;
        for one in idle.ticking.iter().take(MAX_TICKING) {
            let id = one.process_id.map_or_else(String::new, |id| format!(" {id}"));
            writeln!(
                f,
                "    {} {} of {}{id}: {}, about each {}",
                one.name,
                one.thread,
                one.process,
                count(one.times, "time", "times"),
                FormattedTime::from(one.period_ns)
            )?;
        }
    }
    Ok(())
}

fn print_services(
    f: &mut fmt::Formatter<'_>,
    style: TextStyle,
    all: &FleetExplanation,
) -> fmt::Result {
    if all.services.is_empty() {
        return Ok(());
    }
    style.title(f, "Services, by the server's own time")?;
    let mut table =
        TextTable::new("host | process | at | >requests | >answered | >p50 | >p99 | >max");
    for service in all.services.iter().take(MAX_ROWS) {
        table.row(vec![
            service.host.clone(),
            service.process.clone(),
            service.endpoint().to_string(),
            service.requests.to_string(),
            service.answered.to_string(),
            time(service.p50_ns),
            time(service.p99_ns),
            time(service.max_ns),
        ]);
    }
    write!(f, "{table}")?;
    print_more(f, all.services.len())
}

fn print_slowest(
    f: &mut fmt::Formatter<'_>,
    style: TextStyle,
    all: &FleetExplanation,
) -> fmt::Result {
    let has_spans = all.slowest.iter().any(|request| request.span.is_some());
    let heads = ">request | >time | >began at | host | process | address";
    let span_head = if has_spans { " | span" } else { "" };
    let mut table = TextTable::new(&format!("{heads}{span_head}"));
    for request in &all.slowest {
        let mut row = vec![
            request.number.to_string(),
            FormattedTime::from(request.time_ns).to_string(),
            FormattedTime::from(request.began_ns).to_string(),
            request.host.clone(),
            request.process.clone(),
            request.address.clone(),
        ];
        if has_spans {
            row.push(request.span.as_ref().map(span).unwrap_or_default());
        }
        table.row(row);
    }
    if all.slowest.is_empty() {
        return Ok(());
    }
    let title =
        "Slowest requests that are not known to be made for another (--request N shows one)";
    style.title(f, title)?;
    write!(f, "{table}")
}
