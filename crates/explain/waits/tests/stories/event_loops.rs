//! Event loops: the walk follows the request's data, not the loop's thread.

use luc_events::WaitCause;
use luc_waits::{CallIndex, GraphThread};

use crate::story::{At, Story, call_roots, roots};

/// A client asks a proxy, which asks a server whose worker needs a mutex. The keeper sleeps with it. Meanwhile the
/// proxy's only thread serves others.
struct Proxied {
    story: Story,
    proxy: GraphThread,
    request: CallIndex,
}

fn behind_a_proxy(is_attributed: bool) -> Proxied {
    let mut story = Story::new();
    let client = story.thread("load", "load");
    let proxy = story.thread("nginx:8080", "nginx");
    let other = story.thread("other", "other");
    let worker = story.thread("rdsrv:8100", "conn");
    let keeper = story.thread("rdsrv:8100", "keeper");
    // 1. The request, the call to the server, and their answers.
    let asked = story.message(At(client, 1, 90), At(proxy, 101, 100));
    let call = story.message(At(proxy, 103, 110), At(worker, 3, 120));
    let done = story.message(At(worker, 3, 890), At(proxy, 103, 900));
    let answer = story.message(At(proxy, 101, 905), At(client, 1, 915));
    let request = story.call(asked, answer, None);
    story.call(call, done, is_attributed.then_some(request));
    // 2. A request of another client meanwhile.
    let others = story.message(At(other, 2, 290), At(proxy, 102, 300));
    let others_answer = story.message(At(proxy, 102, 310), At(other, 2, 320));
    story.call(others, others_answer, None);
    // 3. Waits.
    story.wait(proxy, WaitCause::Poll, [40, 92, 93], Some(client));
    story.wait(proxy, WaitCause::Poll, [130, 292, 293], Some(other));
    story.wait(proxy, WaitCause::Poll, [320, 892, 893], Some(worker));
    story.wait(worker, WaitCause::PipeSocket, [50, 112, 113], Some(proxy));
    story.wait(worker, WaitCause::Futex, [130, 880, 881], Some(keeper));
    story.wait(keeper, WaitCause::Sleep, [0, 870, 871], None);
    Proxied { story, proxy, request }
}

#[test]
fn a_lock_behind_a_proxy_is_the_holders() {
    let Proxied { story, request, .. } = behind_a_proxy(true);
    let graph = story.graph();
    let found = call_roots(&graph, request, 825);
    assert_eq!(found[0], "740 timer rdsrv:8100 keeper");
    assert!(!found.iter().any(|line| line.contains("busy_with_others")), "{found:?}");
    assert!(!found.iter().any(|line| line.contains("unknown")), "{found:?}");
}

#[test]
fn a_lock_behind_a_proxy_is_the_holders_without_attribution() {
    let Proxied { story, request, .. } = behind_a_proxy(false);
    let graph = story.graph();
    assert_eq!(call_roots(&graph, request, 825)[0], "740 timer rdsrv:8100 keeper");
}

#[test]
fn a_loop_waits_for_requests_without_work() {
    let Proxied { story, proxy, .. } = behind_a_proxy(true);
    let graph = story.graph();
    // A request ended this wait.
    assert_eq!(roots(&graph, proxy, 130, 292), ["162 input other other"]);
    // An answer ended that one.
    assert_eq!(roots(&graph, proxy, 320, 892)[0], "550 timer rdsrv:8100 keeper");
}

/// The server writes its answer in two parts. TCP holds the second one back until the first is acknowledged.
#[test]
fn the_second_part_of_an_answer_is_held_back() {
    let mut story = Story::new();
    let client = story.thread("load", "load");
    let server = story.thread("java", "pool");
    let met = story.thread("qemu", "qemu");
    let asked = story.message(At(client, 1, 90), At(server, 101, 100));
    story.message(At(server, 101, 110), At(client, 1, 113));
    let answer = story.message(At(server, 101, 112), At(client, 1, 160));
    let call = story.call(asked, answer, None);
    // An interrupt wakes the client, with the name of a thread that it met.
    story.wait(client, WaitCause::Poll, [114, 156, 157], Some(met));
    let graph = story.graph();
    let found = call_roots(&graph, call, 70);
    assert_eq!(found[0], "42 network load load");
}

#[test]
fn a_loop_that_another_request_woke_is_unknown() {
    let mut story = Story::new();
    let client = story.thread("load", "load");
    let other = story.thread("other", "other");
    let looping = story.thread("app", "loop");
    let asked = story.message(At(client, 1, 90), At(looping, 101, 100));
    let answer = story.message(At(looping, 101, 905), At(client, 1, 915));
    let request = story.call(asked, answer, None);
    // The loop reads another client's request, and then answers the first one.
    let others = story.message(At(other, 2, 850), At(looping, 102, 900));
    let others_answer = story.message(At(looping, 102, 950), At(other, 2, 960));
    story.call(others, others_answer, None);
    story.wait(looping, WaitCause::Poll, [120, 852, 853], Some(other));
    let graph = story.graph();
    let found = call_roots(&graph, request, 825);
    assert_eq!(found[0], "752 unknown app loop");
}

#[test]
fn a_call_of_another_request_is_not_followed() {
    let mut story = Story::new();
    let client = story.thread("load", "load");
    let looping = story.thread("app", "loop");
    let server = story.thread("db", "db");
    let asked = story.message(At(client, 1, 90), At(looping, 101, 100));
    let answer = story.message(At(looping, 101, 905), At(client, 1, 915));
    let request = story.call(asked, answer, None);
    // A request of another client, with a call whose answer wakes the loop.
    let others = story.message(At(client, 2, 105), At(looping, 102, 110));
    let others_answer = story.message(At(looping, 102, 950), At(client, 2, 960));
    let others_request = story.call(others, others_answer, None);
    let call = story.message(At(looping, 103, 115), At(server, 3, 125));
    let done = story.message(At(server, 3, 850), At(looping, 103, 900));
    story.call(call, done, Some(others_request));
    story.wait(looping, WaitCause::Poll, [120, 852, 853], Some(server));
    let graph = story.graph();
    assert_eq!(call_roots(&graph, request, 825)[0], "752 unknown app loop");
}

/// As above, but the thread waits for one socket alone: it can do nothing else.
#[test]
fn a_thread_that_waits_for_anothers_answer_is_busy_with_it() {
    let mut story = Story::new();
    let client = story.thread("load", "load");
    let connection = story.thread("app", "connection");
    let server = story.thread("db", "db");
    let asked = story.message(At(client, 1, 90), At(connection, 101, 100));
    let answer = story.message(At(connection, 101, 905), At(client, 1, 915));
    let request = story.call(asked, answer, None);
    let others = story.message(At(client, 2, 105), At(connection, 102, 110));
    let others_answer = story.message(At(connection, 102, 950), At(client, 2, 960));
    let others_request = story.call(others, others_answer, None);
    let call = story.message(At(connection, 103, 115), At(server, 3, 125));
    let done = story.message(At(server, 3, 850), At(connection, 103, 900));
    story.call(call, done, Some(others_request));
    story.wait(connection, WaitCause::PipeSocket, [120, 852, 853], Some(server));
    let graph = story.graph();
    assert_eq!(call_roots(&graph, request, 825)[0], "792 busy_with_others app connection");
}

#[test]
fn what_a_thread_computes_for_others_before_a_message_is_theirs() {
    let mut story = Story::new();
    let client = story.thread("load", "load");
    let looping = story.thread("app", "loop");
    let asked = story.message(At(client, 1, 90), At(looping, 101, 100));
    let others = story.message(At(client, 2, 95), At(looping, 102, 110));
    let others_answer = story.message(At(looping, 102, 600), At(client, 2, 610));
    let answer = story.message(At(looping, 101, 905), At(client, 1, 915));
    let request = story.call(asked, answer, None);
    story.call(others, others_answer, None);
    let graph = story.graph();
    let found = call_roots(&graph, request, 825);
    assert_eq!(found[0], "500 busy_with_others app loop");
    assert_eq!(found[1], "315 computes app loop");
}
