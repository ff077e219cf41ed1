//! Several hosts, each with its own clock.

use luc_events::WaitCause;
use luc_waits::{CallIndex, TraceClocks, TraceIndex};

use crate::story::{At, MS, Story, call_roots};

const CLIENT: u32 = 0;
const SERVER: u32 = 1;
/// The server's clock less the client's.
const AHEAD_MS: u64 = 1_000_000;

#[derive(Debug)]
struct ServerAhead;

impl TraceClocks for ServerAhead {
    fn ahead_ns(&self, from: TraceIndex, to: TraceIndex, _: u64) -> Option<i64> {
        let ahead_ns =
            |trace: TraceIndex| if trace.0 == SERVER { (AHEAD_MS * MS) as i64 } else { 0 };
        Some(ahead_ns(to) - ahead_ns(from))
    }
}

#[derive(Debug)]
struct UnrelatedClocks;

impl TraceClocks for UnrelatedClocks {
    fn ahead_ns(&self, _: TraceIndex, _: TraceIndex, _: u64) -> Option<i64> {
        None
    }
}

/// A request that leaves the client 10 ms after its send and is 100 ms on its way. An fsync comes before the answer.
fn story() -> (Story, CallIndex) {
    let mut story = Story::of_hosts(2);
    let client = story.thread_on(CLIENT, "client", "client");
    let server = story.thread_on(SERVER, "server", "server");
    let there = |at: u64| AHEAD_MS + at;
    let asked =
        story.message_by(At(client, 1, 1_000), At(server, 1, there(1_120)), [1_010, there(1_110)]);
    let answer =
        story.message_by(At(server, 1, there(2_000)), At(client, 1, 2_130), [there(2_000), 2_100]);
    let call = story.call(asked, answer, None);
    story.fsync(server, there(1_200), there(1_900));
    story.wait(server, WaitCause::Flush, [there(1_210), there(1_890), there(1_890)], None);
    (story, call)
}

#[test]
fn times_of_another_host_are_put_on_the_askers_clock() {
    let (story, call) = story();
    let graph = story.graph_by(Box::new(ServerAhead));
    assert_eq!(
        call_roots(&graph, call, 1_130),
        [
            "700 fsync server server",
            "190 computes server server",
            "100 network client client",
            "100 network server server",
            "30 computes client client",
            "10 held_back server server"
        ]
    );
}

#[test]
fn a_server_whose_clock_is_unrelated_is_unknown() {
    let (story, call) = story();
    let graph = story.graph_by(Box::new(UnrelatedClocks));
    assert_eq!(call_roots(&graph, call, 1_130), ["1130 unknown"]);
}
