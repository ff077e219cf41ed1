//! Hand-over told row by row: loops that have several requests at once, helpers, and what must stay unknown.

use std::net::SocketAddr;

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{
    ByteDirection, CallCause, ConnectionEnd, ConnectionOpener, Connections, EndAddress, FleetWaits,
    HandOver, MessageRow, Requests, ThreadIdentity, ThreadWait,
};

/// Rows of one host, 1 us apart. Connections below 10 are of clients, those above of back ends.
#[derive(Default)]
struct Story {
    ends: Vec<ConnectionEnd>,
    messages: Vec<MessageRow>,
    waits: Vec<ThreadWait>,
    now_ns: u64,
    passed: std::collections::BTreeMap<(u64, bool), u64>,
}

fn address(ip: [u8; 4], port: u16) -> EndAddress {
    SocketAddr::from((ip, port)).into()
}

impl Story {
    fn row(&mut self, thread: u32, connection: u64, way: ByteDirection) {
        let is_new = self.ends.iter().all(|end| end.connection != connection);
        let is_client = connection >= 10;
        if is_new {
            self.ends.push(ConnectionEnd {
                host: HostId(1),
                connection,
                namespace: 1,
                local: address(
                    [10, 0, 0, 1],
                    if is_client { 5000 + connection as u16 } else { 80 },
                ),
                remote: address([10, 0, 0, 2], 6000 + connection as u16),
                peer: None,
                own_isn: Some(1),
                peer_isn: Some(connection as u32),
                at_start: None,
                opener: Some(if is_client {
                    ConnectionOpener::This
                } else {
                    ConnectionOpener::Peer
                }),
                opened_ns: None,
                closed_ns: None,
            });
        }
        self.now_ns += 1000;
        let passed = self.passed.entry((connection, way == ByteDirection::Sent)).or_insert(1);
        self.messages.push(MessageRow {
            host: HostId(1),
            at_ns: self.now_ns,
            thread: thread_of(thread),
            process: 1,
            connection,
            way,
            first_byte: *passed,
            bytes: 10,
            token: None,
        });
        *passed += 10;
    }

    fn reads(&mut self, thread: u32, connection: u64) {
        self.row(thread, connection, ByteDirection::Received);
    }

    fn sends(&mut self, thread: u32, connection: u64) {
        self.row(thread, connection, ByteDirection::Sent);
    }

    /// Adds a wake-up of `thread`, which has waited for `waited_ns`.
    fn wakes(&mut self, waker: Option<u32>, thread: u32, waited_ns: u64) {
        self.now_ns += 1000;
        self.waits.push(ThreadWait {
            host: HostId(1),
            thread: thread_of(thread),
            off_ns: self.now_ns.saturating_sub(waited_ns),
            woken_ns: Some(self.now_ns),
            on_ns: self.now_ns + 100,
            waker: waker.map(thread_of),
            may_be_input: true,
            may_be_hand_over: true,
            processor: None,
        });
    }

    /// Makes all connections to back ends go to one.
    fn calls_one_server(&mut self) {
        let calls = self.ends.iter_mut().filter(|end| end.connection >= 10);
        for end in calls {
            end.remote = address([10, 0, 0, 2], 7000);
        }
    }

    /// Returns each call's connection, in order of connections, with its cause's connection and evidence.
    fn causes(&self) -> Vec<(u64, Option<(u64, HandOver)>)> {
        let connections = Connections::pair(&self.ends, &self.messages, &[]);
        let found = Requests::find(
            &self.ends,
            &connections,
            &self.messages,
            &FleetWaits::of(&self.waits).expect("few"),
            |_| true,
        );
        let cause = |CallCause { request, evidence }| {
            (found.incoming[request.0].exchange.end.connection, evidence)
        };
        let all = found.outgoing.iter();
        all.map(|outgoing| (outgoing.exchange.end.connection, outgoing.cause.map(cause))).collect()
    }
}

fn thread_of(id: u32) -> ThreadIdentity {
    ThreadIdentity { id, start_ns: 0 }
}

#[test]
fn a_name_tells_of_the_same_process_only() {
    let mut story = Story::default();
    // Two clients ask the process, which makes two calls for each with the name; the back end is on this host, and
    // has requests of the names open, too.
    for (connection, name) in [(1, 7), (2, 8)] {
        story.reads(connection as u32, connection);
        story.messages.last_mut().expect("a row").token = Some(name);
    }
    for (connection, name) in [(10, 7), (11, 8), (12, 7), (13, 8)] {
        story.sends(50, connection);
        story.messages.last_mut().expect("a row").token = Some(name);
        let of_back_end = connection - 7;
        story.reads(60, of_back_end);
        let row = story.messages.last_mut().expect("a row");
        (row.process, row.token) = (2, Some(name));
    }
    for (connection, back_end) in [(10, 3), (11, 4), (12, 5), (13, 6)] {
        story.sends(60, back_end);
        story.messages.last_mut().expect("a row").process = 2;
        story.reads(50, connection);
    }
    story.sends(1, 1);
    story.sends(2, 2);
    let by_name = |request| Some((request, HandOver::Token));
    assert_eq!(
        story.causes(),
        [(10, by_name(1)), (11, by_name(2)), (12, by_name(1)), (13, by_name(2))]
    );
}

#[test]
fn a_loop_goes_on_with_what_it_has_read() {
    let mut story = Story::default();
    story.reads(1, 1);
    story.sends(1, 11);
    story.reads(1, 2);
    story.sends(1, 12);
    // The answers come in the other order; each has another call behind it.
    story.wakes(None, 1, 500);
    story.reads(1, 12);
    story.sends(1, 14);
    story.reads(1, 11);
    story.sends(1, 13);
    story.reads(1, 13);
    story.sends(1, 1);
    story.reads(1, 14);
    story.sends(1, 2);
    let same = |connection| Some((connection, HandOver::SameThread));
    assert_eq!(story.causes(), [(11, same(1)), (12, same(2)), (13, same(1)), (14, same(2))]);
}

#[test]
fn a_loop_that_reads_all_before_it_goes_on_is_not_followed() {
    let mut story = Story::default();
    story.reads(1, 1);
    story.sends(1, 11);
    story.reads(1, 2);
    story.sends(1, 12);
    // It reads both answers, and then goes on with the first request: what it has read last is for the second.
    story.wakes(None, 1, 500);
    story.reads(1, 11);
    story.reads(1, 12);
    story.sends(1, 13);
    story.sends(1, 14);
    story.reads(1, 13);
    story.reads(1, 14);
    story.sends(1, 1);
    story.sends(1, 2);
    let none = [11, 12, 13, 14].map(|call| (call, None));
    assert_eq!(story.causes(), none);
}

#[test]
fn a_loop_that_helpers_wake_answers_for_them() {
    let mut story = Story::default();
    story.reads(1, 1);
    story.reads(1, 2);
    // Helpers 2 and 3 were busy: nobody wakes them. Each calls, and wakes the loop, which then answers.
    story.sends(3, 13);
    story.sends(2, 12);
    story.reads(2, 12);
    story.wakes(Some(2), 1, 20_000);
    story.sends(1, 1);
    story.reads(3, 13);
    story.wakes(Some(3), 1, 20_000);
    story.sends(1, 2);
    let backward = |connection| Some((connection, HandOver::Backward));
    assert_eq!(story.causes(), [(12, backward(1)), (13, backward(2))]);
}

#[test]
fn a_loop_that_a_timer_wakes_is_not_known_to_work_for_anybody() {
    let mut story = Story::default();
    story.reads(1, 1);
    story.reads(1, 2);
    story.wakes(None, 1, 500);
    story.sends(1, 11);
    story.reads(1, 11);
    assert_eq!(story.causes(), [(11, None)]);
}

#[test]
fn work_that_nobody_waits_for_is_told_by_the_wake_up_of_an_idle_thread() {
    let mut story = Story::default();
    story.reads(1, 1);
    story.wakes(Some(1), 2, 50_000);
    story.sends(2, 11);
    story.reads(2, 11);
    story.sends(1, 1);
    assert_eq!(story.causes(), [(11, Some((1, HandOver::Forward)))]);
    // After the answer the request is over.
    story.sends(2, 12);
    assert_eq!(story.causes()[1], (12, None));
}

#[test]
fn an_interrupted_thread_is_nobodys_worker() {
    let mut story = Story::default();
    story.sends(7, 17);
    story.reads(1, 1);
    story.sends(1, 11);
    // The answer's interrupt has stopped thread 7.
    story.wakes(Some(7), 1, 50_000);
    story.reads(1, 11);
    story.sends(1, 1);
    assert_eq!(story.causes(), [(11, Some((1, HandOver::SameThread))), (17, None)]);
}

#[test]
fn one_pool_waits_for_another() {
    let mut story = Story::default();
    // Worker 2 has the request of thread 1, and waits for worker 3 of the other pool, which was busy.
    story.reads(1, 1);
    story.sends(3, 13);
    story.reads(3, 13);
    story.wakes(Some(3), 2, 50_000);
    story.sends(2, 12);
    story.reads(2, 12);
    story.wakes(Some(2), 1, 50_000);
    story.sends(1, 1);
    let backward = Some((1, HandOver::Backward));
    assert_eq!(story.causes(), [(12, backward), (13, backward)]);
}

#[test]
fn a_call_before_a_request_is_not_for_it() {
    // A thread of no request calls, and is woken by one that has one.
    let mut story = Story::default();
    story.sends(5, 15);
    story.reads(1, 1);
    story.wakes(Some(1), 5, 500);
    story.sends(1, 1);
    story.reads(5, 15);
    assert_eq!(story.causes(), [(15, None)]);
}

#[test]
fn who_reads_an_answer_tells_for_whom_another_thread_has_sent_the_call() {
    // A client in the background: thread 9 sends what waits for a connection, for whomever that is, and 7 and 8 read
    // answers. What 9 wakes next is the thread of another request.
    let mut story = Story::default();
    story.reads(1, 1);
    story.sends(1, 11);
    story.reads(2, 2);
    story.sends(9, 12);
    story.reads(8, 11);
    story.wakes(Some(8), 9, 1500);
    story.wakes(Some(9), 1, 4500);
    // The answer to the call of 9 is handed on by 7.
    story.reads(8, 12);
    story.wakes(Some(8), 7, 500);
    story.wakes(Some(7), 2, 4500);
    // Nobody is woken for the answer to this one, and 9 wakes thread 2 for something else.
    story.sends(9, 13);
    story.wakes(Some(9), 2, 500);
    story.reads(8, 13);
    story.sends(1, 1);
    story.sends(2, 2);
    assert_eq!(
        story.causes(),
        [(11, Some((1, HandOver::SameThread))), (12, Some((2, HandOver::Backward))), (13, None),]
    );
}

#[test]
fn effects_of_senders_are_believed_where_readers_say_the_same() {
    let mut story = Story::default();
    for (request, call) in [(1, 11), (2, 12)] {
        story.reads(1, request);
        story.sends(9, call);
        story.reads(8, call);
        // Of the first one the reader wakes the sender, which wakes the thread that has the request.
        if call == 11 {
            story.wakes(Some(8), 9, 500);
        }
        story.wakes(Some(9), 1, 2500);
        story.sends(1, request);
    }
    let effect = |connection| Some((connection, HandOver::Backward));
    assert_eq!(story.causes(), [(11, effect(1)), (12, effect(2))]);
}

#[test]
fn a_thread_with_two_calls_to_one_server_may_have_sent_one_for_another() {
    // Threads 1 and 2 put their calls into a queue, and thread 1 sends both.
    let mut story = Story::default();
    story.reads(1, 1);
    story.reads(2, 2);
    story.sends(1, 11);
    story.sends(1, 12);
    story.reads(8, 11);
    story.wakes(Some(8), 2, 3500);
    story.reads(8, 12);
    story.wakes(Some(8), 1, 3500);
    story.sends(1, 1);
    story.sends(2, 2);
    story.calls_one_server();
    let expected = [(11, Some((2, HandOver::Backward))), (12, Some((1, HandOver::SameThread)))];
    assert_eq!(story.causes(), expected);
    // To two servers both are its own: a wake-up alone does not take them from it.
    for (port, end) in story.ends.iter_mut().enumerate() {
        end.remote = address([10, 0, 0, 2], 7000 + port as u16);
    }
    let same = Some((1, HandOver::SameThread));
    assert_eq!(story.causes(), [(11, same), (12, same)]);
}

#[test]
fn two_threads_may_each_have_sent_the_others_call() {
    // Threads 1 and 2 put their calls into a queue, and each takes the other's from it.
    let story_of = |second_wakes: u32| {
        let mut story = Story::default();
        story.reads(1, 1);
        story.reads(2, 2);
        story.sends(1, 11);
        story.sends(2, 12);
        story.reads(8, 11);
        story.wakes(Some(8), 2, 2500);
        story.reads(8, 12);
        story.wakes(Some(8), second_wakes, 1000);
        story.sends(1, 1);
        story.sends(2, 2);
        story.calls_one_server();
        story
    };
    let effect = |connection| Some((connection, HandOver::Backward));
    assert_eq!(story_of(1).causes(), [(11, effect(2)), (12, effect(1))]);
    // One wake-up that says something else does not take a thread's call from it.
    let same = |connection| Some((connection, HandOver::SameThread));
    assert_eq!(story_of(2).causes(), [(11, same(1)), (12, same(2))]);
}
