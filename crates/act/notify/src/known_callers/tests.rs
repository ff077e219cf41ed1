//! Sequences of calls, and how many callers they are taken for.

use std::collections::HashSet;

use super::*;

/// Programs whose calls come and return one after the other.
#[derive(Default)]
struct Programs {
    callers: KnownCallers,
    inside: HashSet<u32>,
    seen: HashSet<CallerId>,
    /// Calls that the supervisor knows to have returned.
    returned: usize,
    /// Number of questions whether a call still goes on.
    asked: std::cell::Cell<usize>,
    now_ns: u64,
}

impl Programs {
    /// Thread `thread` of process 1 begins to synchronize descriptor `fd`.
    fn begins(&mut self, thread: u32, fd: i32) -> CallerId {
        self.now_ns += 1_000_000;
        self.callers.process_of(thread, self.now_ns, || 1);
        let who = CallMaker { thread, process: 1, number: 75, fd };
        let (inside, asked) = (&self.inside, &self.asked);
        let arrived = self.callers.arrives(who, self.now_ns, |who| {
            asked.set(asked.get() + 1);
            inside.contains(&who.thread)
        });
        self.returned += arrived.returned.iter().flatten().count();
        self.seen.insert(arrived.caller);
        self.callers.get(arrived.caller).unwrap().has_made(AnsweredCall {
            who,
            place: FileSystemId(0),
            needs: DurabilityNeed::Commit,
            called_ns: self.now_ns,
            answered_ns: self.now_ns,
            joined: None,
        });
        self.inside.insert(thread);
        arrived.caller
    }

    fn returns(&mut self, thread: u32) {
        self.inside.remove(&thread);
    }

    /// A call that returns before anybody else calls.
    fn calls(&mut self, thread: u32, fd: i32) -> CallerId {
        let caller = self.begins(thread, fd);
        self.returns(thread);
        caller
    }
}

#[test]
fn a_goroutine_is_one_caller_whichever_threads_it_runs_on() {
    let mut go = Programs::default();
    for call in 0..100 {
        go.calls(10 + call * 7 % 13, 8);
    }
    assert_eq!(go.seen.len(), 1);
    // Each call but the last is known to have returned when the next one comes, not when its thread calls again.
    assert_eq!(go.returned, 99);
    assert!(go.asked.get() <= 20, "asked {} times", go.asked.get());
}

#[test]
fn two_calls_of_one_file_at_once_are_two_callers() {
    let mut pool = Programs::default();
    let (first, second) = (pool.begins(1, 8), pool.begins(2, 8));
    assert_ne!(first, second);
    pool.returns(1);
    pool.returns(2);
    // They stay two however their threads take turns.
    for round in 0..50 {
        let threads = if round % 3 == 0 { [2, 1] } else { [1, 2] };
        let both = threads.map(|thread| pool.begins(thread, 8));
        assert_ne!(both[0], both[1]);
        for thread in threads {
            pool.returns(thread);
        }
    }
    assert_eq!(pool.seen.len(), 2);
    assert_eq!(pool.returned, 100);
}

#[test]
fn whoever_writes_the_log_next_is_the_same_caller() {
    // A server whose sessions take turns at one log, after two of them were at it at once.
    let mut server = Programs::default();
    server.begins(1, 8);
    server.calls(2, 8);
    server.returns(1);
    server.seen.clear();
    for call in 0..64 {
        server.calls(1 + call * 5 % 8, 8);
    }
    assert_eq!(server.seen.len(), 1);
}

#[test]
fn a_thread_with_many_files_is_one_caller() {
    let mut checkpointer = Programs::default();
    for fd in 0..40 {
        checkpointer.calls(1, fd);
    }
    assert_eq!(checkpointer.seen.len(), 1);
    assert_eq!(checkpointer.returned, 39);
}

#[test]
fn threads_that_exchange_descriptors_are_as_many_callers_as_threads() {
    // Each creates a file, synchronizes and closes it; the numbers of descriptors are given out anew.
    let mut creators = Programs::default();
    for thread in 0..16 {
        creators.begins(thread, 3 + thread as i32);
    }
    for round in 1..40 {
        for thread in 0..16 {
            creators.returns(thread);
        }
        for thread in 0..16 {
            creators.begins(thread, 3 + ((thread * 7 + round * 5) % 16) as i32);
        }
    }
    assert_eq!(creators.seen.len(), 16);
    assert_eq!(creators.returned, 39 * 16);
}

#[test]
fn a_log_and_a_database_of_one_program_are_two_callers_when_they_meet() {
    // As etcd: a goroutine appends to a log, another writes a database; four threads take turns.
    let mut etcd = Programs::default();
    let (log, database) = (8, 6);
    for turn in 0..60 {
        let threads = [turn % 4, (turn + 1) % 4, (turn + 2) % 4];
        etcd.begins(threads[0], database);
        etcd.calls(threads[1], log);
        etcd.calls(threads[2], log);
        etcd.returns(threads[0]);
    }
    assert_eq!(etcd.seen.len(), 2);
}

/// The first calls of an etcd server, as they were notified, by thread and descriptor. Descriptor 12 is its log, 11
/// its database. The calls of `at_once` came while another thread's call of the same descriptor went on.
#[test]
fn a_recorded_etcd_server_is_two_callers() {
    #[rustfmt::skip]
    let calls = [
        (1, 11), (1, 12), (1, 14), (1, 11), (1, 11), (1, 11), (1, 11), (1, 11), (1, 11), (1, 11),
        (1, 11), (1, 12), (2, 11), (2, 11), (2, 12), (2, 12), (2, 12), (3, 11), (3, 11), (2, 12),
        (3, 12), (3, 12), (3, 12), (4, 11), (4, 11), (4, 12), (5, 12), (2, 12), (2, 12), (2, 12),
        (4, 11), (4, 11), (4, 12), (5, 12), (3, 12), (3, 12), (3, 12), (2, 11), (2, 11), (2, 12),
        (2, 12), (4, 12), (3, 12), (3, 11), (2, 12), (3, 11), (2, 12), (4, 12), (3, 12), (3, 12),
        (3, 12), (3, 12), (2, 11), (2, 11), (5, 12), (5, 12), (2, 12), (2, 12), (4, 12), (5, 11),
        (3, 12), (5, 11), (5, 12), (5, 12), (4, 12), (4, 12), (6, 12), (3, 11), (3, 11), (3, 12),
        (3, 12), (6, 12),
    ];
    let at_once: &[usize] = &[23];
    let mut callers = KnownCallers::default();
    let mut last = Vec::new();
    let mut returned = 0;
    for (index, (thread, fd)) in calls.into_iter().enumerate() {
        callers.process_of(thread, 0, || 1);
        let who = CallMaker { thread, process: 1, number: 75, fd };
        let arrived = callers.arrives(who, 0, |_| at_once.contains(&index));
        returned += arrived.returned.iter().flatten().count();
        callers.get(arrived.caller).unwrap().has_made(AnsweredCall {
            who,
            place: FileSystemId(0),
            needs: DurabilityNeed::Commit,
            called_ns: 0,
            answered_ns: 0,
            joined: None,
        });
        last.push(arrived.caller);
    }
    let distinct: HashSet<_> = last.iter().collect();
    assert_eq!(distinct.len(), 2);
    // Of each but the last call it is known that it has returned.
    assert_eq!(returned, last.len() - 1);
}

#[test]
fn a_held_call_is_nobody_else_s() {
    let mut callers = KnownCallers::default();
    let who = |thread, fd| CallMaker { thread, process: 1, number: 75, fd };
    let is_making = |_: &CallMaker| -> bool { unreachable!("nothing was let go on") };
    let first = callers.arrives(who(1, 8), 0, is_making).caller;
    callers.get(first).unwrap().is_held();
    let second = callers.arrives(who(2, 8), 0, is_making).caller;
    assert_ne!(first, second);
}

#[test]
fn what_is_gone_is_forgotten() {
    let mut callers = KnownCallers::default();
    let call = |callers: &mut KnownCallers, thread, now_ns| {
        callers.process_of(thread, now_ns, || thread);
        let who = CallMaker { thread, process: thread, number: 75, fd: 8 };
        callers.arrives(who, now_ns, |_| false);
    };
    for thread in 0..MIN_ENTRIES_TO_FORGET as u32 {
        call(&mut callers, thread, 0);
    }
    call(&mut callers, u32::MAX, MAX_IDLE_NS);
    let left = (callers.threads.len(), callers.files.len(), callers.callers.len());
    assert_eq!(left, (1, 1, 1));
}

#[test]
fn what_comes_without_end_drives_the_oldest_out() {
    let mut callers = KnownCallers::default();
    let who =
        |call: u32| CallMaker { thread: call % 20_000, process: 1, number: 75, fd: call as i32 };
    let last = 3 * MAX_ENTRIES as u32;
    for call in 0..=last {
        let now_ns = u64::from(call);
        callers.process_of(who(call).thread, now_ns, || 1);
        callers.arrives(who(call), now_ns, |_| false);
        assert!(callers.threads.len() <= MAX_ENTRIES && callers.files.len() <= MAX_ENTRIES);
    }
    assert!(callers.file(&who(last - 1)).is_some() && callers.file(&who(0)).is_none());
    callers.forget_file(&who(last));
    assert!(callers.file(&who(last)).is_none());
}

#[test]
fn processes_that_take_turns_at_a_file_tell_of_each_other_s_returns() {
    // As backends of a PostgreSQL server: each has the log open by a descriptor of its own.
    let mut callers = KnownCallers::default();
    let log = FileInode { device: 1, number: 7 };
    let mut returned = 0;
    for call in 0..100 {
        let thread = 10 + call % 2;
        callers.process_of(thread, 0, || thread);
        let who = CallMaker { thread, process: thread, number: 75, fd: 5 };
        let arrived = callers.arrives(who, 0, |_| false);
        returned += arrived.returned.iter().flatten().count();
        let before = callers.follows(&who, Some(log), 0, |_| false);
        returned += before.iter().count();
        // Every call but the last one is known to have returned when the next one comes.
        assert_eq!(returned, call as usize);
        let caller = callers.caller_of(&who).unwrap();
        // Both are the log's caller.
        assert_eq!(caller, CallerId(1));
        callers.get(caller).unwrap().has_made(AnsweredCall {
            who,
            place: FileSystemId(0),
            needs: DurabilityNeed::Flush,
            called_ns: 0,
            answered_ns: 0,
            joined: None,
        });
    }
}
