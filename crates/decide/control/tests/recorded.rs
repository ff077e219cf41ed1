//! Replays ends of commits that the gate recorded. They are of services on a disk whose flush takes 6 ms, from their
//! first call on.

use luc_control::auto_gate::{AutoGate, GatePhase, GateReason};
use luc_control::commit_end::CommitEnd;

/// End of a commit, as a line of a file records it.
struct End {
    /// Time since the previous end.
    since_us: u64,
    /// Latency of its first caller's call.
    call_us: u64,
    /// Number of callers that the gate released together.
    released: u32,
    /// Number of calls served until then.
    served: u64,
    /// Number of callers in the last window.
    participants: u32,
}

fn parse(text: &str) -> Vec<End> {
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let end = |row: &str| -> End {
        let numbers: Vec<u64> =
            row.split(' ').map(|word| word.parse().expect("a number")).collect();
        let &[since_us, call_us, released, served, participants] = &numbers[..] else {
            panic!("five columns: {row}");
        };
        End {
            since_us,
            call_us,
            released: released as u32,
            served,
            participants: participants as u32,
        }
    };
    rows.map(end).collect()
}

/// Replays these ends through a controller. The arrivals within a round were not recorded. They are assumed 150 µs
/// apart.
fn replay(ends: &[End]) -> AutoGate {
    let mut auto = AutoGate::default();
    let mut end_ns = 1_000_000_000;
    for end in ends {
        end_ns += end.since_us * 1_000;
        let arrivals_ns: Vec<u32> = (1..=end.released).map(|order| order * 150_000).collect();
        auto.on_epoch(&CommitEnd {
            end_ns,
            completions: end.served,
            own_completions: end.served,
            participants: end.participants,
            commit_ns: end.call_us * 1_000,
            released: end.released,
            arrivals_ns: &arrivals_ns,
            ..CommitEnd::default()
        });
    }
    auto
}

/// Eight Redis servers, each with a client that writes key after key. At first four of them wait while the commit of
/// the other four runs. Held by the gate, all eight share each commit.
const REDIS: &str = include_str!("recorded/redis.txt");

/// Eight SQLite writers whose calls are notified. When holding begins, the last earlier callers return. Three small
/// rounds pass until all are in step.
const SQLITE: &str = include_str!("recorded/sqlite.txt");

/// RabbitMQ as it starts: a call now and then, and later one after the other, of several callers.
const RABBITMQ_STARTS: &str = include_str!("recorded/rabbitmq-starts.txt");

#[test]
fn callers_that_do_nothing_else_than_call_are_held_on_after_one_trial() {
    let auto = replay(&parse(REDIS));
    assert_eq!(auto.phase(), GatePhase::Engaged, "{:?}", auto.gain());
    assert_eq!(auto.trials(), (1, 1));
}

/// The same gain of callers that had less to do before: half of their time passed between calls.
#[test]
fn callers_that_had_time_left_are_let_go_to_confirm_a_gain() {
    let mut ends = parse(REDIS);
    for end in &mut ends {
        end.call_us /= if end.released == 0 { 2 } else { 1 };
    }
    let auto = replay(&ends);
    assert_eq!(auto.phase(), GatePhase::Check);
    assert_eq!(auto.trials(), (1, 0));
}

/// The disk was busy otherwise before, so that calls took four times as long. Four of the callers have gone.
#[test]
fn calls_that_took_longer_than_two_commits_confirm_nothing() {
    let mut ends = parse(REDIS);
    for (index, end) in (0..).zip(&mut ends) {
        if end.released == 0 {
            end.since_us *= 4;
            end.call_us *= 4;
        } else {
            end.released = 4;
            end.served = 43 + 4 * (index - 11);
        }
    }
    let auto = replay(&ends);
    assert_eq!(auto.phase(), GatePhase::Check, "{:?}", auto.gain());
}

#[test]
fn returns_of_callers_that_were_not_held_are_no_loss() {
    let auto = replay(&parse(SQLITE));
    assert_eq!(auto.phase(), GatePhase::Check, "{:?}", auto.gain());
    assert!(auto.gain().0 > 1.25, "{:?}", auto.gain());
    assert_eq!(auto.trials(), (1, 0));
}

#[test]
fn a_service_that_starts_makes_no_trial() {
    let auto = replay(&parse(RABBITMQ_STARTS));
    assert_eq!(auto.reason(), GateReason::TooFarApart);
    assert_eq!(auto.trials(), (0, 0));
}
