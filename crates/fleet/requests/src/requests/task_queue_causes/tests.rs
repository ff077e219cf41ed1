use rand::RngExt as _;

use super::*;
use crate::host_rows::ThreadWait;
use crate::requests::follow_threads::RequestSpan;
use crate::test_rows::{self, HERE, thread};

/// Calls of each request.
const EACH: usize = 3;

fn sleep(id: u32, off_ns: u64, on_ns: u64) -> ThreadWait {
    let wait = test_rows::wait(id, [off_ns, on_ns - 1_000, on_ns], Some(1));
    ThreadWait { may_be_input: false, processor: Some(0), ..wait }
}

/// A server whose eight threads read requests, and whose sixteen workers take their tasks out of one queue.
#[derive(Debug, Default)]
struct Story {
    waits: Vec<ThreadWait>,
    /// Calls in send order, with their true causes.
    calls: Vec<(TakenTask, RequestRank)>,
    requests: Vec<PutTasks>,
}

/// Simulates a server. `takes` chooses which of a number of tasks in the queue is taken next.
fn story(
    seed: u64,
    requests: usize,
    mut takes: impl FnMut(&mut ChaCha8Rng, usize) -> usize,
) -> Story {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut story = Story::default();
    let mut workers: Vec<(u64, u32)> = (0..16).map(|worker| (1_000, worker)).collect();
    let mut queue: Vec<(u64, RequestRank)> = Vec::new();
    let mut next_ns = 1_000_000;
    let mut ends_ns = vec![0_u64; requests];
    let mut rank = 0;
    while rank < requests || !queue.is_empty() {
        workers.sort_unstable();
        let (free_ns, worker) = workers[0];
        // A request comes before a worker can take something.
        if rank < requests && (queue.is_empty() || next_ns <= free_ns) {
            let reader = 100 + rank as u32 % 8;
            let slept_ns = next_ns + rng.random_range(20_000..80_000);
            let mut puts: Vec<u64> =
                (0..EACH).map(|_| rng.random_range(next_ns..slept_ns)).collect();
            puts.sort_unstable();
            queue.extend(puts.iter().map(|&put_ns| (put_ns, RequestRank(rank))));
            queue.sort_unstable();
            story.requests.push(PutTasks {
                thread: thread(reader),
                span: RequestSpan { opened_ns: next_ns, sure_until_ns: u64::MAX },
                is_first: false,
            });
            story.waits.push(sleep(reader, slept_ns, slept_ns + 10_000));
            next_ns += rng.random_range(50_000..400_000);
            rank += 1;
            continue;
        }
        let ready = queue.iter().filter(|(put_ns, _)| *put_ns <= free_ns).count();
        let at = takes(&mut rng, ready.max(1));
        let (put_ns, of) = queue.remove(at);
        let taken_ns = free_ns.max(put_ns) + rng.random_range(1_000..4_000);
        if put_ns > free_ns {
            story.waits.push(sleep(worker, free_ns, taken_ns - 500));
        }
        let asked_ns = taken_ns + rng.random_range(2_000..60_000);
        let answered_ns = asked_ns + rng.random_range(200_000..3_000_000);
        ends_ns[of.0] = ends_ns[of.0].max(answered_ns);
        story.waits.push(sleep(worker, asked_ns + 500, answered_ns - 500));
        let call = TakenTask {
            thread: thread(worker),
            asked_ns,
            answered_ns,
            is_first: false,
            cause: Some(of),
            is_by_effect: rng.random_bool(0.6),
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

/// Number of calls in a story without an effect, of those that are assigned, and of those assigned right.
#[derive(Debug)]
struct Judgement {
    unknown: usize,
    found: usize,
    right: usize,
}

impl Judgement {
    fn assert_finds(&self, min_percent: usize) {
        assert!(self.found * 100 >= self.unknown * min_percent, "{self:?}");
        assert!(self.right * 100 >= self.found * 98, "{self:?}");
    }
}

/// Judges the assignment of a story's calls when only those with an effect are known.
fn judge(story: &Story) -> Judgement {
    let waits = FleetWaits::of(&story.waits).expect("few");
    let calls: Vec<TakenTask> = story
        .calls
        .iter()
        .map(|&(call, of)| TakenTask { cause: call.is_by_effect.then_some(of), ..call })
        .collect();
    let found = infer_causes(HERE, &waits, &calls, &story.requests, EACH);
    assert!(found.iter().all(|one| calls[one.call.0].cause.is_none()));
    let right = found.iter().filter(|one| story.calls[one.call.0].1 == one.request).count();
    let unknown = calls.iter().filter(|call| call.cause.is_none()).count();
    Judgement { unknown, found: found.len(), right }
}

#[test]
fn a_queue_that_keeps_the_order_tells_nearly_all() {
    for seed in 0..3 {
        let judgement = judge(&story(seed, 500, |_, _| 0));
        assert!(judgement.unknown > 500, "{judgement:?}");
        judgement.assert_finds(85);
    }
}

#[test]
fn a_queue_that_keeps_no_order_tells_nothing() {
    let last = story(1, 500, |_, ready| ready - 1);
    let any = story(2, 500, |rng: &mut ChaCha8Rng, ready| rng.random_range(0..ready));
    for story in [last, any] {
        assert_eq!(judge(&story).found, 0);
    }
}

#[test]
fn calls_for_requests_from_before_the_trace_are_told_of_none() {
    let mut story = story(3, 500, |_, _| 0);
    // The trace begins after the first ten requests.
    story.requests.drain(..10);
    for (call, of) in &mut story.calls {
        *of = RequestRank(of.0.wrapping_sub(10));
        call.is_by_effect &= of.0 < 490;
    }
    judge(&story).assert_finds(80);
}

#[test]
fn nothing_is_told_of_nothing() {
    let waits = FleetWaits::of(&[]).expect("none");
    assert!(infer_causes(HERE, &waits, &[], &[], EACH).is_empty());
    let story = story(4, 20, |_, _| 0);
    // Too few to know whether it is right.
    assert_eq!(judge(&story).found, 0);
}
