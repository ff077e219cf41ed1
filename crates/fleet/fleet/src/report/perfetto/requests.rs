//! Writes requests and messages: each host has a track for each thread that sends or receives.

use std::collections::BTreeMap;
use std::io::Write;

use luc_fleet_requests::{CallCause, Exchange, MessageEdge, MessageSide, ThreadId};
use luc_report::perfetto::packets::TrackKind;

use super::TraceFile;
use super::write_slices::{TrackItem, write_slices};
use crate::explain::{FleetRequests, evidence};

/// Slices and instants of each thread.
type ThreadItems = BTreeMap<ThreadId, Vec<TrackItem>>;

/// Writes all of them.
pub(super) fn write<W: Write>(file: &mut TraceFile<'_, W>, found: &FleetRequests<'_>) {
    let mut items = ThreadItems::new();
    add_requests(file, found, &mut items);
    for edge in &found.messages.edges {
        add_message(file, edge, &mut items);
    }
    let mut of_host: Option<(ThreadId, u64)> = None;
    for (thread, items) in items {
        let host = found.joined.host(thread.host);
        let group = match of_host {
            Some((other, group)) if other.host == thread.host => group,
            _ => {
                let name = &host.name;
                let group = file.track(TrackKind::Named { parent: None, name });
                of_host = Some((thread, group));
                group
            }
        };
        let name = format!("{} {}", host.thread_name(thread.thread), thread.thread.id);
        let track = file.track(TrackKind::Named { parent: Some(group), name: &name });
        write_slices(file.packets, track, items);
    }
}

/// Adds a slice for each side of a request, from the first bytes to the last of the answer. A flow leads from a request
/// to those that other threads made for it.
fn add_requests<W: Write>(
    file: &mut TraceFile<'_, W>,
    found: &FleetRequests<'_>,
    items: &mut ThreadItems,
) {
    let requests = &found.requests;
    let mut flows: Vec<Vec<u64>> = vec![Vec::new(); requests.incoming.len()];
    for sent in &requests.outgoing {
        let asked = &sent.exchange.asked;
        let mut item = build_slice(file, found, &sent.exchange, true);
        if let Some(CallCause { request, evidence: hand_over }) = sent.cause
            && let Some(item) = &mut item
        {
            item.words.push(("made for it by", evidence(hand_over).to_owned()));
            let received = &requests.incoming[request.0].exchange;
            let is_placed =
                file.clock.place_ns(received.asked.host, received.asked.at_ns).is_some();
            if thread_of(&received.asked) != thread_of(asked) && is_placed {
                let flow = file.flow();
                item.flows.push(flow);
                flows[request.0].push(flow);
            }
        }
        items.entry(thread_of(asked)).or_default().extend(item);
    }
    for (received, flows) in requests.incoming.iter().zip(flows) {
        let item = build_slice(file, found, &received.exchange, false);
        let item = item.map(|item| TrackItem { flows, ..item });
        items.entry(thread_of(&received.exchange.asked)).or_default().extend(item);
    }
}

/// Builds the slice that one side saw of a request. A request without an answer is an instant.
fn build_slice<W: Write>(
    file: &TraceFile<'_, W>,
    found: &FleetRequests<'_>,
    exchange: &Exchange,
    is_sent: bool,
) -> Option<TrackItem> {
    let asked = &exchange.asked;
    let end = found.joined.ends.get(&exchange.end)?;
    let host = found.joined.host(asked.host);
    let begin_ns = file.clock.place_ns(asked.host, asked.at_ns)?;
    let answered_ns = exchange.answer.and_then(|answer| {
        let last = &answer.last;
        file.clock.place_ns(last.host, last.at_ns)
    });
    let (name, category) = if is_sent {
        (format!("asks {}", found.joined.address(end.remote)), "request sent")
    } else {
        (format!("answers at {}", found.joined.address(end.local)), "request received")
    };
    Some(TrackItem {
        begin_ns,
        end_ns: answered_ns,
        name,
        category,
        numbers: vec![("bytes", exchange.bytes)],
        words: vec![("process", host.process_name(asked.process, asked.at_ns))],
        ..TrackItem::default()
    })
}

/// Adds the two ends of a message.
fn add_message<W: Write>(file: &mut TraceFile<'_, W>, edge: &MessageEdge, items: &mut ThreadItems) {
    let place = |side: &MessageSide| file.clock.place(side.host, side.at_ns);
    let (Some(sent), Some(received)) = (place(&edge.sent), place(&edge.received)) else {
        return;
    };
    let error_ns = match (sent.error_ns, received.error_ns) {
        _ if edge.sent.host == edge.received.host => Some(0),
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        _ => None,
    };
    let flow = file.flow();
    let mut numbers = vec![("bytes", edge.bytes)];
    numbers.extend(error_ns.map(|error_ns| ("clock error ns", error_ns)));
    if let Some(way_ns) = received.at_ns.checked_sub(sent.at_ns) {
        numbers.push(("one-way time ns", way_ns));
    }
    for (side, at_ns, name) in
        [(&edge.sent, sent.at_ns, "sends"), (&edge.received, received.at_ns, "receives")]
    {
        items.entry(thread_of(side)).or_default().push(TrackItem {
            begin_ns: at_ns,
            end_ns: None,
            name: name.to_owned(),
            category: "message",
            flows: vec![flow],
            numbers: numbers.clone(),
            words: Vec::new(),
        });
    }
}

fn thread_of(side: &MessageSide) -> ThreadId {
    ThreadId { host: side.host, thread: side.thread }
}
