//! Queues: a request lies at a socket while its reader works for others.

use luc_events::WaitCause;
use luc_waits::{CallIndex, GraphThread, RootKind};

use crate::story::{At, MS, Story, call_roots, roots};

/// Two requests for one thread of a pool. The second lies at the socket from 200 to 810.
fn pool(story: &mut Story) -> (GraphThread, CallIndex) {
    let client = story.thread("load", "load");
    let worker = story.thread("gunicorn:8006", "worker");
    let first = story.message(At(client, 1, 90), At(worker, 101, 100));
    let first_answer = story.message(At(worker, 101, 800), At(client, 1, 805));
    let second = story.message(At(client, 2, 200), At(worker, 102, 810));
    let second_answer = story.message(At(worker, 102, 850), At(client, 2, 860));
    story.call(first, first_answer, None);
    (worker, story.call(second, second_answer, None))
}

#[test]
fn a_request_in_the_queue_of_a_pool_waits_for_others() {
    let mut story = Story::new();
    let (_, second) = pool(&mut story);
    let graph = story.graph();
    assert_eq!(
        call_roots(&graph, second, 660),
        [
            "610 busy_with_others gunicorn:8006 worker",
            "40 computes gunicorn:8006 worker",
            "10 computes load load"
        ]
    );
}

#[test]
fn what_holds_the_queue_up_stays_what_it_is() {
    let mut story = Story::new();
    let (worker, second) = pool(&mut story);
    story.wait(worker, WaitCause::Stopped, [300, 700, 701], None);
    let graph = story.graph();
    let found = call_roots(&graph, second, 660);
    assert_eq!(found[0], "401 stopped gunicorn:8006 worker");
    assert_eq!(found[1], "209 busy_with_others gunicorn:8006 worker");
}

#[test]
fn others_that_compute_keep_the_queue_busy_and_are_named() {
    let mut story = Story::new();
    let (worker, second) = pool(&mut story);
    let holder = story.thread("gunicorn:8006", "holder");
    story.wait(worker, WaitCause::Futex, [300, 700, 700], Some(holder));
    let graph = story.graph();
    let found = graph.roots_of_call(second).expect("a call");
    let busy: Vec<_> = found.parts.iter().filter_map(|part| part.busy).collect();
    let names: Vec<_> = busy.iter().map(|root| graph.names_of(root)[1]).collect();
    assert_eq!(names, ["worker", "holder", "worker"]);
    assert_eq!(call_roots(&graph, second, 660)[0], "610 busy_with_others gunicorn:8006 worker");
}

/// Two clients share a connection. The server's thread reads the second request after it has answered the first.
fn shared_connection(story: &mut Story) -> (GraphThread, CallIndex) {
    let [first, second] = [(); 2].map(|()| story.thread("client", "client"));
    let server = story.thread("front", "connection");
    let asked = story.message(At(first, 1, 100), At(server, 101, 100));
    let asked_second = story.message(At(second, 1, 110), At(server, 101, 501));
    let answer = story.message(At(server, 101, 500), At(first, 1, 500));
    let answer_second = story.message(At(server, 101, 900), At(second, 1, 900));
    story.call(asked, answer, None);
    let call = story.call(asked_second, answer_second, None);
    story.wait(server, WaitCause::Sleep, [510, 880, 880], None);
    (server, call)
}

#[test]
fn a_server_that_sleeps_for_another_request_is_busy_with_it() {
    let mut story = Story::new();
    let (server, call) = shared_connection(&mut story);
    story.wait(server, WaitCause::Sleep, [105, 490, 490], None);
    let graph = story.graph();
    assert_eq!(
        call_roots(&graph, call, 790),
        [
            "391 busy_with_others front connection",
            "370 timer front connection",
            "29 computes front connection"
        ]
    );
    let found = graph.roots_of_call(call).expect("a call");
    let busy = found.parts.iter().filter_map(|part| Some((part.busy?, part.span.length_ns())));
    let slept = busy.filter(|(busy, _)| busy.kind == RootKind::Timer).map(|(_, ns)| ns);
    assert_eq!(slept.sum::<u64>(), 380 * MS);
}

#[test]
fn a_lock_that_holds_a_queue_up_stays_its_holders() {
    let mut story = Story::new();
    let (server, call) = shared_connection(&mut story);
    let keeper = story.thread("front", "keeper");
    story.wait(server, WaitCause::Futex, [105, 490, 490], Some(keeper));
    story.wait(keeper, WaitCause::Sleep, [50, 485, 485], None);
    let graph = story.graph();
    let found = call_roots(&graph, call, 790);
    assert_eq!(found[..2], ["375 timer front keeper", "370 timer front connection"]);
}

#[test]
fn a_neighbour_that_holds_a_queue_up_by_the_processor_stays_itself() {
    let mut story = Story::new();
    let (server, call) = shared_connection(&mut story);
    let hog = story.thread("hog", "hog");
    story.wait_for(3, hog, WaitCause::Sleep, [0, 50, 50]);
    story.wait_for(3, hog, WaitCause::Sleep, [490, 950, 950]);
    story.wait_for(3, server, WaitCause::Sleep, [105, 106, 490]);
    let graph = story.graph();
    assert_eq!(call_roots(&graph, call, 790)[0], "380 processor hog hog");
}

/// Connections give their requests to a worker, which sleeps for each. The second request waits for the first.
#[test]
fn a_request_in_the_queue_of_a_worker_waits_for_others() {
    let mut story = Story::new();
    let client = story.thread("load", "load");
    let [first, second] = [(); 2].map(|()| story.thread("twin", "connection"));
    let worker = story.thread("twin", "worker");
    let asked = story.message(At(client, 1, 95), At(first, 101, 100));
    let answer = story.message(At(first, 101, 505), At(client, 1, 506));
    story.call(asked, answer, None);
    let asked = story.message(At(client, 2, 110), At(second, 102, 110));
    let answer = story.message(At(second, 102, 910), At(client, 2, 910));
    let call = story.call(asked, answer, None);
    story.wait(first, WaitCause::Futex, [105, 500, 501], Some(worker));
    story.wait(second, WaitCause::Futex, [115, 900, 901], Some(worker));
    story.wait(worker, WaitCause::Sleep, [120, 480, 481], None);
    story.wait(worker, WaitCause::Sleep, [510, 880, 881], None);
    let graph = story.graph();
    let found = call_roots(&graph, call, 800);
    assert_eq!(found[..2], ["384 busy_with_others twin worker", "370 timer twin worker"]);
}

/// The holder of a mutex has a request itself: it is no worker that takes requests from others.
#[test]
fn a_holder_that_woke_others_before_is_no_queue() {
    let mut story = Story::new();
    let client = story.thread("load", "load");
    let [holder, first, second] = [(); 3].map(|()| story.thread("app", "connection"));
    let mut ask = |end, server, read, done| {
        let asked = story.message(At(client, end, read), At(server, 100 + end, read));
        let answer = story.message(At(server, 100 + end, done), At(client, end, done));
        story.call(asked, answer, None)
    };
    ask(1, holder, 50, 950);
    ask(2, first, 60, 520);
    let call = ask(3, second, 110, 910);
    story.wait(first, WaitCause::Futex, [70, 500, 501], Some(holder));
    story.wait(second, WaitCause::Futex, [115, 900, 901], Some(holder));
    let graph = story.graph();
    let found = call_roots(&graph, call, 800);
    assert_eq!(found, ["799 computes app connection", "1 no_processor app connection"]);
}

#[test]
fn a_worker_without_work_waits_for_input() {
    let mut story = Story::new();
    let client = story.thread("load", "load");
    let dispatcher = story.thread("app", "dispatcher");
    let worker = story.thread("app", "worker");
    let asked = story.message(At(client, 1, 900), At(dispatcher, 101, 910));
    let answer = story.message(At(worker, 101, 950), At(client, 1, 960));
    story.call(asked, answer, None);
    story.wait(dispatcher, WaitCause::Poll, [0, 901, 902], Some(client));
    story.wait(worker, WaitCause::Futex, [0, 915, 916], Some(dispatcher));
    let graph = story.graph();
    // The dispatcher had nothing to give before the request came.
    assert_eq!(
        roots(&graph, worker, 0, 915),
        ["901 input load load", "13 computes app dispatcher", "1 no_processor app dispatcher"]
    );
}
