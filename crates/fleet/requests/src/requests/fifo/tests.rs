use rand::RngExt as _;

use super::*;
use crate::requests::forward::Span;
use crate::rows::Thread;
use crate::rows::Wait;

const HOST: HostId = HostId(0);
/// Calls of each request.
const EACH: usize = 3;

fn thread(number: usize) -> Thread {
    Thread { id: number as u32, start_ns: 0 }
}

fn sleep(thread: Thread, off_ns: u64, on_ns: u64, waker: Thread) -> Wait {
    Wait {
        host: HOST,
        thread,
        off_ns,
        woken_ns: Some(on_ns - 1_000),
        on_ns,
        waker: Some(waker),
        may_be_input: false,
        may_be_hand_over: true,
        processor: Some(0),
    }
}

/// What a server did whose eight threads read requests, and whose sixteen workers take their tasks out of one queue.
#[derive(Debug, Default)]
struct Story {
    waits: Vec<Wait>,
    /// Calls by when they were sent, with the request that each was for.
    calls: Vec<(Call, Rank)>,
    requests: Vec<Request>,
}

/// `takes` says which of so many tasks in the queue is taken next.
fn story(
    seed: u64,
    requests: usize,
    mut takes: impl FnMut(&mut ChaCha8Rng, usize) -> usize,
) -> Story {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut story = Story::default();
    let mut workers: Vec<(u64, usize)> = (0..16).map(|worker| (1_000, worker)).collect();
    let mut queue: Vec<(u64, Rank)> = Vec::new();
    let mut next_ns = 1_000_000;
    let mut ends_ns = vec![0_u64; requests];
    let mut rank = 0;
    while rank < requests || !queue.is_empty() {
        workers.sort_unstable();
        let (free_ns, worker) = workers[0];
        // A request comes before a worker can take something.
        if rank < requests && (queue.is_empty() || next_ns <= free_ns) {
            let reader = thread(100 + rank % 8);
            let slept_ns = next_ns + rng.random_range(20_000..80_000);
            let mut puts: Vec<u64> =
                (0..EACH).map(|_| rng.random_range(next_ns..slept_ns)).collect();
            puts.sort_unstable();
            queue.extend(puts.iter().map(|&put_ns| (put_ns, rank)));
            queue.sort_unstable();
            story.requests.push(Request {
                thread: reader,
                span: Span { opened_ns: next_ns, sure_until_ns: u64::MAX },
                is_first: false,
            });
            story.waits.push(sleep(reader, slept_ns, slept_ns + 10_000, thread(1)));
            next_ns += rng.random_range(50_000..400_000);
            rank += 1;
            continue;
        }
        let ready = queue.iter().filter(|(put_ns, _)| *put_ns <= free_ns).count();
        let at = takes(&mut rng, ready.max(1));
        let (put_ns, of) = queue.remove(at);
        let taken_ns = free_ns.max(put_ns) + rng.random_range(1_000..4_000);
        if put_ns > free_ns {
            story.waits.push(sleep(thread(worker), free_ns, taken_ns - 500, thread(1)));
        }
        let asked_ns = taken_ns + rng.random_range(2_000..60_000);
        let answered_ns = asked_ns + rng.random_range(200_000..3_000_000);
        ends_ns[of] = ends_ns[of].max(answered_ns);
        story.waits.push(sleep(thread(worker), asked_ns + 500, answered_ns - 500, thread(1)));
        let call = Call {
            thread: thread(worker),
            asked_ns,
            answered_ns,
            is_first: false,
            cause: Some(of),
            is_heard: rng.random_bool(0.6),
        };
        story.calls.push((call, of));
        workers[0].0 = answered_ns + 2_000;
    }
    for (request, &end_ns) in story.requests.iter_mut().zip(&ends_ns) {
        request.span.sure_until_ns = end_ns + 50_000;
    }
    story.calls.sort_by_key(|(call, _)| call.asked_ns);
    story
}

/// What is told of a story whose calls are known by whose wait they ended: of how many of the others, and how many right.
fn judge(story: &Story) -> [usize; 3] {
    let waits = Waits::of(&story.waits).expect("few");
    let calls: Vec<Call> = story
        .calls
        .iter()
        .map(|&(call, of)| Call { cause: call.is_heard.then_some(of), ..call })
        .collect();
    let told = told(HOST, &waits, &calls, &story.requests, EACH);
    assert!(told.iter().all(|&(call, _)| calls[call].cause.is_none()));
    let right = told.iter().filter(|&&(call, rank)| story.calls[call].1 == rank);
    let unknown = calls.iter().filter(|call| call.cause.is_none()).count();
    [unknown, told.len(), right.count()]
}

#[test]
fn a_queue_that_keeps_the_order_tells_nearly_all() {
    for seed in 0..3 {
        let [unknown, told, right] = judge(&story(seed, 500, |_, _| 0));
        assert!(unknown > 500, "{unknown}");
        assert!(told * 100 >= unknown * 85, "{told} of {unknown}");
        assert!(right * 100 >= told * 98, "{right} of {told}");
    }
}

#[test]
fn a_queue_that_keeps_no_order_tells_nothing() {
    let last = story(1, 500, |_, ready| ready - 1);
    let any = story(2, 500, |rng: &mut ChaCha8Rng, ready| rng.random_range(0..ready));
    for story in [last, any] {
        assert_eq!(judge(&story)[1], 0);
    }
}

#[test]
fn calls_for_requests_from_before_the_trace_are_told_of_none() {
    let mut story = story(3, 500, |_, _| 0);
    // The trace begins after the first ten requests.
    story.requests.drain(..10);
    let before = |&(call, of): &(Call, Rank)| (call, of.wrapping_sub(10));
    story.calls = story.calls.iter().map(before).collect();
    for (call, of) in &mut story.calls {
        call.is_heard &= *of < 490;
    }
    let [unknown, told, right] = judge(&story);
    assert!(told * 100 >= unknown * 80, "{told} of {unknown}");
    assert!(right * 100 >= told * 98, "{right} of {told}");
}

#[test]
fn nothing_is_told_of_nothing() {
    let waits = Waits::of(&[]).expect("none");
    assert!(told(HOST, &waits, &[], &[], EACH).is_empty());
    let story = story(4, 20, |_, _| 0);
    // Too few to know whether it is right.
    assert_eq!(judge(&story)[1], 0);
}
