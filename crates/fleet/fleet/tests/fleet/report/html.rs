use std::fs;

use luc_events::event_kinds::MessageDirection;
use luc_events::tables::{ConnectionMessage, ThreadInfo};
use luc_events::{Pid, Tgid};
use luc_fleet::report::html;
use luc_fleet::{ExplanationOptions, JoinedTraces, explain};
use luc_testkit::page::check;

use super::{CLIENT, chosen, joined, planted, written};
use crate::planted_hosts::{BEGIN_NS, PlantedConnection, host, message};

pub(super) fn page(joined: &JoinedTraces) -> String {
    let page = written(joined, chosen(None, 5), |report, out| html::write(report, out));
    String::from_utf8(page).expect("text")
}

#[test]
fn the_page_has_what_explain_says() {
    let joined = joined(planted());
    let page = page(&joined);
    check(&page);
    let found = explain(&joined, ExplanationOptions::default()).expect("explained");
    let request = found.request.expect("a request");
    // The slowest is the one that was planted.
    assert!(request.request.time_ns.abs_diff(8_200_000) < 1_000, "{request:?}");
    for text in [
        "Request 1: 8.20 ms of clientd on client",
        "serverd 7 at 10.0.0.2:80 on server: serverd waits for the storage device (device)",
        // Its own time is 3 ms, and 5 ms for the disk.
        "<td class=\"number\">8.20 ms</td>",
        "<td class=\"number\">8 ms</td>",
        "10.0.0.3:5432",
        "in no trace",
        "serverd on server, 10.0.0.2:80</",
        "device on server",
    ] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
    // The server's begin has an error bar as wide as the clocks are known.
    let call = &request.calls[0];
    let error_ns = call.server_after_error_ns.expect("bounded");
    assert!((10_000..30_000).contains(&error_ns), "{call:?}");
    let after_ns = call.server_after_ns.expect("known");
    assert!(after_ns.abs_diff(100_000) <= error_ns, "{call:?}");
    let whole = request.request.time_ns as f64;
    let bar = format!(
        "<b style=\"left:{:.3}%;width:{:.3}%\"",
        (after_ns as f64 - error_ns as f64) / whole * 100.0,
        2.0 * error_ns as f64 / whole * 100.0
    );
    assert!(page.contains(&bar), "{bar} is not in {page}");
}

/// Traces of `clients` clients that ask one server once each.
fn many(clients: u32) -> JoinedTraces {
    let (mut client, mut server) = (host("client", &CLIENT, 4), host("server", &CLIENT, 4));
    for number in 0..clients {
        let connection = PlantedConnection::new(&mut client, &mut server, number + 1).number;
        let process = number + 100;
        client.tasks.push(ThreadInfo {
            thread: Pid(process),
            process: Tgid(process),
            comm: format!("client{number}"),
            start_ns: 1,
            ..ThreadInfo::default()
        });
        let row = |us: i64, flow, bytes| {
            let at_ns = BEGIN_NS + 500_000_000 + i64::from(number) * 1_000_000 + us * 1_000;
            message(connection, CLIENT.monotonic_ns(at_ns), flow, 0, bytes)
        };
        let of_client = |row: ConnectionMessage| ConnectionMessage {
            thread: Pid(process),
            process: Tgid(process),
            ..row
        };
        client.messages.extend([
            of_client(row(0, MessageDirection::Sent, 40)),
            of_client(row(800, MessageDirection::Received, 90)),
        ]);
        server.messages.extend([
            row(100, MessageDirection::Received, 40),
            row(700, MessageDirection::Sent, 90),
        ]);
    }
    joined([client, server])
}

#[test]
fn a_box_of_the_map_has_the_requests_of_arrows_that_are_not_shown() {
    let page = page(&many(40));
    check(&page);
    // Those that are: 30 of 40 in 4 s.
    assert_eq!(page.matches("class=\"arrow\"").count(), 30);
    assert!(page.contains("10 more are not shown here."), "{page}");
    assert!(page.contains(">10/s, median 800 us<"), "{page}");
}

#[test]
fn a_browser_shows_the_page() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("page.html");
    fs::write(&path, page(&joined(planted()))).expect("written");
    if let Some(dom) = luc_testkit::page::in_browser(&path) {
        assert!(dom.contains("Request 1: 8.20 ms of clientd on client"));
    }
}
