//! Locks: the root is what the holder does.

use luc_events::WaitCause;
use luc_waits::{LinkReason, RootKind, TimeSpan, WaitEnd};

use crate::story::{MS, Story, roots};

#[test]
fn a_lock_behind_a_backend_in_fdatasync_is_the_flushs() {
    let mut story = Story::new();
    let writer = story.thread_of_process(0, 11, "postgres:5432", "postgres");
    let waiter = story.thread_of_process(0, 12, "postgres:5432", "postgres");
    story.fsync(writer, 100, 7_000);
    story.wait(writer, WaitCause::Flush, [200, 6_900, 6_950], None);
    // The lock is in shared memory: its semaphore is a futex, woken by another process.
    story.wait(waiter, WaitCause::Futex, [500, 7_010, 7_050], Some(writer));
    let graph = story.graph();
    assert_eq!(
        roots(&graph, waiter, 0, 8_000),
        [
            "6450 fsync postgres:5432 postgres",
            "1460 computes postgres:5432 postgres",
            "90 no_processor postgres:5432 postgres"
        ]
    );
}

#[test]
fn a_convoy_on_a_mutex_ends_at_its_holder() {
    let mut story = Story::new();
    let keeper = story.thread("rdsrv", "keeper");
    let [first, second, third] = [(); 3].map(|()| story.thread("rdsrv", "worker"));
    story.wait(keeper, WaitCause::Sleep, [0, 150, 151], None);
    story.wait(first, WaitCause::Futex, [10, 152, 153], Some(keeper));
    story.wait(second, WaitCause::Futex, [20, 160, 161], Some(first));
    story.wait(third, WaitCause::Futex, [30, 170, 171], Some(second));
    let graph = story.graph();
    assert_eq!(
        roots(&graph, third, 30, 171),
        [
            "120 timer rdsrv keeper",
            "16 computes rdsrv worker",
            "3 no_processor rdsrv worker",
            "1 computes rdsrv keeper",
            "1 no_processor rdsrv keeper"
        ]
    );
    // The chain names each of them.
    let found = graph.roots_of(third, TimeSpan::new(100 * MS, 101 * MS));
    let chain = found.chain(&found.parts[0]);
    let waiters: Vec<_> = chain.iter().filter_map(|link| link.waiter).collect();
    assert_eq!(waiters, [third, second, first]);
    assert!(chain.iter().all(|link| link.reason == LinkReason::Woke));
    assert_eq!(chain.last().map(|link| link.other), Some(keeper));
}

#[test]
fn a_pipe_whose_writer_is_stopped_waits_for_a_stopped_process() {
    let mut story = Story::new();
    let writer = story.thread("producer", "producer");
    let reader = story.thread("consumer", "consumer");
    story.wait(writer, WaitCause::Stopped, [10, 480, 481], None);
    story.wait(reader, WaitCause::PipeSocket, [0, 500, 501], Some(writer));
    let graph = story.graph();
    assert_eq!(
        roots(&graph, reader, 0, 501),
        [
            "471 stopped producer producer",
            "29 computes producer producer",
            "1 no_processor consumer consumer"
        ]
    );
}

#[test]
fn a_lock_that_is_held_beyond_the_trace_is_its_holders() {
    let mut story = Story::new();
    let holder = story.thread("app", "holder");
    let waiter = story.thread("app", "waiter");
    let alone = story.thread("app", "alone");
    story.wait_ended(holder, WaitCause::Sleep, [100, 1_000, 1_000], None, WaitEnd::Timer);
    let until_the_end = [200, 1_000, 1_000];
    let unfinished = WaitEnd::Unfinished;
    story.wait_ended(waiter, WaitCause::Futex, until_the_end, Some(holder), unfinished);
    story.wait_ended(alone, WaitCause::Futex, until_the_end, None, unfinished);
    let graph = story.graph();
    assert_eq!(roots(&graph, waiter, 200, 1_000), ["800 timer app holder"]);
    // Nobody is known to hold what this one waits for: it is neither idle nor a timer.
    assert_eq!(roots(&graph, alone, 200, 1_000), ["800 unknown app alone"]);
}

#[test]
fn threads_that_end_each_others_waits_have_no_root() {
    let mut story = Story::new();
    let one = story.thread("app", "one");
    let other = story.thread("app", "other");
    story.wait(one, WaitCause::Futex, [0, 100, 100], Some(other));
    story.wait(other, WaitCause::Futex, [0, 100, 100], Some(one));
    let graph = story.graph();
    assert_eq!(roots(&graph, one, 0, 100), ["100 unknown app other"]);
}

#[test]
fn a_lock_of_the_kernel_is_its_holders_if_somebody_gave_it_away() {
    let mut story = Story::new();
    let holder = story.thread("tar", "tar");
    let waiter = story.thread("app", "app");
    story.wait(holder, WaitCause::Device, [10, 90, 91], None);
    story.wait(waiter, WaitCause::InodeLock, [20, 95, 96], Some(holder));
    story.wait(waiter, WaitCause::InodeLock, [100, 150, 150], None);
    let graph = story.graph();
    assert_eq!(roots(&graph, waiter, 20, 95)[0], "70 device tar tar");
    assert_eq!(roots(&graph, waiter, 100, 150), ["50 unknown app app"]);
}

#[test]
fn whoever_ended_a_stop_is_named() {
    let mut story = Story::new();
    let thread = story.thread("app", "app");
    let neighbour = story.thread("neighbour", "neighbour");
    story.wait(thread, WaitCause::Stopped, [0, 100, 100], Some(neighbour));
    let found = story.graph().roots_of(thread, TimeSpan::new(0, 100 * MS));
    assert_eq!(found.parts[0].root.kind, RootKind::Stopped);
    assert_eq!(found.parts[0].other, Some(neighbour));
}

#[test]
fn waits_of_the_system_have_their_root_in_themselves() {
    let causes = [
        (WaitCause::Throttled, RootKind::Throttled),
        (WaitCause::Frozen, RootKind::Frozen),
        (WaitCause::CommitWait, RootKind::Journal),
        (WaitCause::Checkpoint, RootKind::Journal),
        (WaitCause::Device, RootKind::Device),
        (WaitCause::DataWriteback, RootKind::Device),
        (WaitCause::DirtyThrottle, RootKind::Memory),
    ];
    for (cause, kind) in causes {
        let mut story = Story::new();
        let thread = story.thread("app", "app");
        // An interrupt has the name of a thread that it met.
        let met = story.thread("other", "other");
        story.wait(thread, cause, [0, 100, 100], Some(met));
        let found = story.graph().roots_of(thread, TimeSpan::new(0, 100 * MS));
        assert_eq!(found.parts[0].root.kind, kind, "{cause}");
        assert_eq!(found.parts[0].cause, Some(cause));
    }
}
