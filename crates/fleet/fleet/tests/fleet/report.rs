//! Reports of planted traces: a page, a Perfetto trace, spans.

mod html;
mod otlp;
mod perfetto;
mod unfinished_files;

use luc_events::event_kinds::MessageDirection;
use luc_events::tables::{SocketConnection, ThreadInfo};
use luc_events::{Pid, Tgid, WaitCause};
use luc_fleet::report::{ReportError, ReportSelection, ReportSource};
use luc_fleet::{FleetError, JoinedTraces, RecordedHost};

use crate::findings::wait;
use crate::planted_hosts::{BEGIN_NS, PlantedClock, TRUE_CLOCK, host, message, talk};

const CLIENT: PlantedClock = TRUE_CLOCK;
/// The server's clock is 7 ms ahead.
const SERVER: PlantedClock = PlantedClock { offset_ns: 7_000_000, ..CLIENT };
const REQUESTS: i64 = 30;
/// Name that would be markup if it were not escaped.
const HOSTILE: &str = "</script><b x='\">";

/// Client that asks a server 30 times. Each time the server takes 3 ms, and asks a third process without a trace. It
/// waits 1 ms for its disk. One request takes 5 ms longer.
fn planted() -> [RecordedHost; 2] {
    let (mut client, mut server) = (host("client", &CLIENT, 3), host("server", &SERVER, 3));
    talk([&mut client, &mut server], [&CLIENT, &SERVER], 1, 3);
    for recorded in [&mut client, &mut server] {
        recorded.trace.processors = 2;
        recorded.trace.realtime_offset_ns = 1_700_000_000_000_000_000;
    }
    server.tasks.push(ThreadInfo {
        thread: Pid(8),
        process: Tgid(7),
        comm: HOSTILE.to_owned(),
        start_ns: 1,
        ..ThreadInfo::default()
    });
    server.connections.push(SocketConnection {
        connection: luc_events::ConnectionId(9),
        local_address: "10.0.0.2".to_owned(),
        local_port: 4_000,
        remote_address: "10.0.0.3".to_owned(),
        remote_port: 5_432,
        side: luc_events::event_kinds::SocketRole::Client,
        initial_sent: 77,
        initial_received: 78,
        sequences: luc_events::event_kinds::SequenceSource::Seen,
        ..SocketConnection::default()
    });
    for number in 0..REQUESTS {
        let us = |us: i64| BEGIN_NS + 500_000_000 + number * 60_000_000 + us * 1_000;
        let (here, there) = (|at| CLIENT.monotonic_ns(us(at)), |at| SERVER.monotonic_ns(us(at)));
        let slow = if number == 11 { 5_000 } else { 0 };
        let first = |bytes: u64| number as u64 * bytes;
        let row = |at_ns, flow, bytes: u64| message(1, at_ns, flow, first(bytes), bytes);
        client.messages.extend([
            row(here(0), MessageDirection::Sent, 40),
            row(here(3_200 + slow), MessageDirection::Received, 90),
        ]);
        let asleep = [here(10), here(3_180 + slow), here(3_190 + slow)];
        client.waits.push(wait(7, asleep, WaitCause::PipeSocket, 0));
        server.messages.extend([
            row(there(100), MessageDirection::Received, 40),
            row(there(3_100 + slow), MessageDirection::Sent, 90),
        ]);
        server.messages.extend([
            message(9, there(300), MessageDirection::Sent, first(20), 20),
            message(9, there(900), MessageDirection::Received, first(30), 30),
        ]);
        server.waits.extend([
            wait(7, [there(310), there(890), there(895)], WaitCause::PipeSocket, 0),
            wait(7, [there(1_000), there(2_000 + slow), there(2_010 + slow)], WaitCause::Device, 8),
            wait(8, [there(1_000), there(1_100), there(1_110)], WaitCause::Futex, 7),
        ]);
    }
    for recorded in [&mut client, &mut server] {
        recorded.messages.sort_by_key(|row| row.at_ns);
        recorded.waits.sort_by_key(|row| row.on_ns);
    }
    [client, server]
}

fn joined(hosts: [RecordedHost; 2]) -> JoinedTraces {
    JoinedTraces::new(hosts.to_vec()).expect("joined")
}

fn chosen(request: Option<usize>, slowest: usize) -> ReportSelection {
    ReportSelection { request, slowest }
}

/// Writes a report to memory.
fn written(
    joined: &JoinedTraces,
    chosen: ReportSelection,
    write: impl FnOnce(&ReportSource<'_>, &mut Vec<u8>) -> Result<(), ReportError>,
) -> Vec<u8> {
    let report = ReportSource::new(joined, chosen).expect("found");
    let mut out = Vec::new();
    write(&report, &mut out).expect("written");
    out
}

#[test]
fn nothing_in_a_name_is_markup() {
    let mut hosts = planted();
    for (number, recorded) in hosts.iter_mut().enumerate() {
        recorded.name = format!("{HOSTILE}{number}");
        recorded.trace.kernel = HOSTILE.to_owned();
        recorded.trace.filters = HOSTILE.to_owned();
        for task in &mut recorded.tasks {
            task.comm = format!("{HOSTILE}\u{1b}[2J");
        }
        recorded.lost.push(luc_events::tables::LostEvents {
            place: HOSTILE.to_owned(),
            count: 3,
            ..Default::default()
        });
    }
    let joined = joined(hosts);
    let page = html::page(&joined);
    luc_testkit::page::check(&page);
    assert!(!page.contains("<b x") && !page.contains("</script>"), "{page}");
    assert!(!page.contains('\u{1b}'));
    assert!(page.contains("&lt;/script&gt;&lt;b x=&#39;&quot;&gt;"));
    let spans = otlp::spans(&otlp::json(&joined));
    let is_plain = |text: &str| !text.contains('\u{1b}');
    assert!(spans.values().all(|found| is_plain(&found.process) && is_plain(&found.span.name)));
    let trace = perfetto::trace(&joined);
    assert!(trace.tracks.values().all(|name| is_plain(name)));
    assert!(trace.slices.iter().all(|slice| is_plain(&slice.1)));
}

#[test]
fn a_request_that_is_not_there_is_refused() {
    let joined = joined(planted());
    let refused = ReportSource::new(&joined, chosen(Some(31), 5)).expect_err("refused");
    assert!(matches!(refused, FleetError::NoSuchRequest { number: 31, .. }));
}
