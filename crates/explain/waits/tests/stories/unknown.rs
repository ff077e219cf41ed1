//! Time without a root in the rows stays unknown.

use luc_events::WaitCause;
use luc_waits::{GraphCall, TimeSpan};

use crate::story::{At, MS, Story, call_roots, roots};

#[test]
fn a_thread_that_was_not_recorded_is_unknown() {
    let mut story = Story::new();
    let waiter = story.thread("app", "waiter");
    let stranger = story.thread("other", "stranger");
    story.facts(stranger).is_recorded = false;
    story.wait(waiter, WaitCause::PipeSocket, [0, 100, 100], Some(stranger));
    let graph = story.graph();
    assert_eq!(roots(&graph, waiter, 0, 100), ["100 unknown other stranger"]);
    // One that was recorded and did not wait has run.
    assert_eq!(roots(&graph, waiter, 100, 200), ["100 computes app waiter"]);
}

#[test]
fn a_server_that_no_trace_has_is_outside() {
    let mut story = Story::new();
    let client = story.thread("app", "client");
    let far = story.thread("far", "far");
    let asked = story.message(At(client, 1, 100), At(far, 2, 110));
    let answer = story.message(At(far, 2, 890), At(client, 1, 900));
    let address = Some(story.labels.index("10.99.0.3:8100"));
    let call = story.call_of(GraphCall {
        sent: Some(asked.sent),
        answer: Some(answer.received),
        address,
        ..GraphCall::default()
    });
    let graph = story.graph();
    assert_eq!(call_roots(&graph, call, 800), ["800 outside 10.99.0.3:8100"]);
}

#[test]
fn a_call_whose_client_has_no_trace_begins_when_it_arrives() {
    let mut story = Story::new();
    let far = story.thread("far", "far");
    let server = story.thread("app", "server");
    let asked = story.message(At(far, 1, 100), At(server, 2, 150));
    let answer = story.message(At(server, 2, 400), At(far, 1, 410));
    let call = story.call_of(GraphCall {
        read: Some(asked.received),
        done: Some(answer.sent),
        ..GraphCall::default()
    });
    let graph = story.graph();
    assert_eq!(call_roots(&graph, call, 300), ["300 computes app server"]);
}

#[test]
fn before_a_thread_began_its_maker_counts() {
    let mut story = Story::new();
    let maker = story.thread("app", "main");
    let made = story.thread("app", "made");
    let orphan = story.thread("app", "orphan");
    for thread in [made, orphan] {
        story.facts(thread).started_ns = Some(100 * MS);
    }
    story.facts(made).creator = Some(maker.thread);
    story.wait(maker, WaitCause::Sleep, [10, 80, 80], None);
    let graph = story.graph();
    assert_eq!(
        roots(&graph, made, 0, 200),
        ["100 computes app made", "70 timer app main", "30 computes app main"]
    );
    assert_eq!(
        roots(&graph, orphan, 0, 200),
        ["100 computes app orphan", "100 unknown app orphan"]
    );
}

#[test]
fn after_a_thread_ended_it_does_nothing() {
    let mut story = Story::new();
    let ended = story.thread("app", "ended");
    story.facts(ended).ended_ns = Some(100 * MS);
    let facts = *story.facts(ended);
    story.wait(ended, WaitCause::Sleep, [10, 80, 80], None);
    let graph = story.graph();
    assert_eq!(
        roots(&graph, ended, 0, 200),
        ["100 unknown app ended", "70 timer app ended", "30 computes app ended"]
    );
    let alive = facts.alive_in(TimeSpan::new(50 * MS, 200 * MS));
    assert_eq!(alive, TimeSpan::new(50 * MS, 100 * MS));
}

#[test]
fn a_request_that_nobody_answered_has_no_time() {
    let mut story = Story::new();
    let client = story.thread("app", "client");
    let far = story.thread("far", "far");
    let asked = story.message(At(client, 1, 100), At(far, 2, 110));
    let call = story.call_of(GraphCall { sent: Some(asked.sent), ..GraphCall::default() });
    assert_eq!(story.graph().roots_of_call(call), None);
}
