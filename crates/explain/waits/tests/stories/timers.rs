//! Timers: of a thread alone, and behind the event loops of asyncio, Node, Go and Java.

use luc_events::WaitCause;
use luc_waits::{CallIndex, GraphThread, WaitEnd};

use crate::story::{At, Story, call_roots, roots};

/// A client asks at 90 and has its answer at 1,120. Another client asks and is answered between 150 and 170. `server`
/// reads and answers both.
fn two_clients(story: &mut Story, server: GraphThread, done_ns: u64) -> CallIndex {
    let client = story.thread("client", "client");
    let other = story.thread("client", "other");
    let request = story.message(At(client, 1, 90), At(server, 101, 100));
    let others = story.message(At(other, 2, 140), At(server, 102, 150));
    let others_answer = story.message(At(server, 102, 170), At(other, 2, 175));
    let answer = story.message(At(server, 101, done_ns), At(client, 1, 1_120));
    story.call(others, others_answer, None);
    story.call(request, answer, None)
}

#[test]
fn a_loop_of_asyncio_or_node_waits_for_the_requests_timer() {
    let mut story = Story::new();
    let event_loop = story.thread("aslp.py", "python3");
    let call = two_clients(&mut story, event_loop, 1_110);
    story.wait(event_loop, WaitCause::Poll, [180, 1_100, 1_101], None);
    let graph = story.graph();
    let found = call_roots(&graph, call, 1_030);
    assert_eq!(found[0], "1000 timer aslp.py python3");
    assert_eq!(found[1], "19 computes aslp.py python3");
}

#[test]
fn a_goroutine_that_sleeps_is_taken_up_by_another_thread() {
    let mut story = Story::new();
    let worker = story.thread("gslp", "gslp");
    let poller = story.thread("gslp", "gslp");
    let call = two_clients(&mut story, worker, 1_010);
    // The poller sleeps until the earliest timer, and wakes the worker for the goroutine.
    story.wait(poller, WaitCause::Poll, [50, 990, 991], None);
    story.wait(worker, WaitCause::Futex, [180, 1_000, 1_001], Some(poller));
    let graph = story.graph();
    assert_eq!(call_roots(&graph, call, 1_030)[0], "890 timer gslp gslp");
}

#[test]
fn a_thread_of_java_sleeps_in_a_futex() {
    let mut story = Story::new();
    let worker = story.thread("JSlp", "pool-thread");
    let client = story.thread("client", "client");
    let request = story.message(At(client, 1, 90), At(worker, 101, 100));
    let answer = story.message(At(worker, 101, 1_110), At(client, 1, 1_120));
    let call = story.call(request, answer, None);
    story.wait(worker, WaitCause::Futex, [110, 1_100, 1_101], None);
    let graph = story.graph();
    assert_eq!(call_roots(&graph, call, 1_030)[0], "990 timer JSlp pool-thread");
}

#[test]
fn the_recorder_tells_a_timer_from_an_interrupt() {
    let ended = |end| {
        let mut story = Story::new();
        let thread = story.thread("app", "app");
        let sender = story.thread("peer", "peer");
        // A message comes just when the wait ends.
        story.message(At(sender, 1, 999), At(thread, 101, 1_010));
        story.wait_ended(thread, WaitCause::Poll, [0, 1_000, 1_001], None, end);
        roots(&story.graph(), thread, 0, 1_000)
    };
    assert_eq!(ended(WaitEnd::Timer), ["1000 timer app app"]);
    assert_eq!(ended(WaitEnd::NotKnown), ["1000 input peer peer"]);
    let mut story = Story::new();
    let thread = story.thread("app", "app");
    story.wait_ended(thread, WaitCause::Poll, [0, 1_000, 1_000], None, WaitEnd::Interrupt);
    assert_eq!(roots(&story.graph(), thread, 0, 1_000), ["1000 unknown app app"]);
}

#[test]
fn a_futex_is_not_given_up_by_another_service() {
    let mut story = Story::new();
    let thread = story.thread("app", "app");
    let met = story.thread("qemu", "qemu");
    story.wait(thread, WaitCause::Futex, [0, 1_000, 1_001], Some(met));
    assert_eq!(roots(&story.graph(), thread, 0, 1_000), ["1000 timer app app"]);
    // Unless the recorder saw the thread do it.
    let mut story = Story::new();
    let thread = story.thread("app", "app");
    let other = story.thread("peer", "peer");
    story.wait_ended(thread, WaitCause::Futex, [0, 1_000, 1_001], Some(other), WaitEnd::Thread);
    assert_eq!(roots(&story.graph(), thread, 0, 1_000), ["1000 computes peer peer"]);
}

#[test]
fn a_thread_may_wait_for_a_lock_before_it_reads() {
    let mut story = Story::new();
    let [thread, holder] = [(); 2].map(|()| story.thread("app.py", "python3"));
    let sender = story.thread("peer", "peer");
    // A loaded kernel wakes it 200 ms after the message came, with the name of a thread that it met.
    let met = story.thread("qemu", "qemu");
    story.message(At(sender, 1, 500), At(thread, 101, 1_010));
    story.wait(thread, WaitCause::Poll, [0, 700, 701], Some(met));
    story.wait(thread, WaitCause::Futex, [702, 1_000, 1_001], Some(holder));
    assert_eq!(roots(&story.graph(), thread, 0, 700), ["700 input peer peer"]);
}

#[test]
fn a_message_does_not_end_a_sleep() {
    let mut story = Story::new();
    let thread = story.thread("app", "app");
    let sender = story.thread("peer", "peer");
    story.message(At(sender, 1, 500), At(thread, 101, 1_010));
    story.wait(thread, WaitCause::Sleep, [0, 1_000, 1_001], None);
    assert_eq!(roots(&story.graph(), thread, 0, 1_000), ["1000 timer app app"]);
}
