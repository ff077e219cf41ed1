//! The controller on ends of commits as the gate has recorded them of services on a disk whose flush takes 6 ms, from their
//! first call on.

use luc_control::auto::{Auto, Phase, Reason};
use luc_control::epoch::{Epoch, Others};

/// The end of a commit: the time since the end before, and how long its first caller's call took, in microseconds; callers
/// released together; calls served until then; callers of the last window.
type End = (u64, u64, u32, u64, u32);

/// A controller after these ends. When the callers of a round came was not recorded; a later one came 150 µs after the one
/// before.
fn replay(ends: &[End]) -> Auto {
    let mut auto = Auto::default();
    let mut end_ns = 1_000_000_000;
    for &(since_us, call_us, released, served, participants) in ends {
        end_ns += since_us * 1_000;
        let arrivals_ns: Vec<u32> = (1..=released).map(|order| order * 150_000).collect();
        auto.on_epoch(&Epoch {
            end_ns,
            completions: served,
            own_completions: served,
            others: Others::default(),
            newcomers: 0,
            participants,
            commit_ns: call_us * 1_000,
            released,
            exact: false,
            arrivals_ns: &arrivals_ns,
        });
    }
    auto
}

/// Eight Redis servers, each with a client that writes key after key: two groups of four, which wait for each other's
/// commits, and then one of eight.
const REDIS: [End; 21] = [
    (0, 25_160, 0, 1, 0),
    (12_437, 31_374, 0, 2, 0),
    (12_609, 24_856, 0, 8, 0),
    (12_445, 24_785, 0, 10, 8),
    (12_459, 24_486, 0, 16, 8),
    (12_534, 24_560, 0, 17, 8),
    (27_410, 13_243, 0, 21, 8),
    (12_294, 23_648, 0, 22, 8),
    (12_640, 24_698, 0, 29, 8),
    (12_316, 24_292, 0, 30, 8),
    (12_699, 24_778, 0, 37, 8),
    (12_347, 24_628, 0, 38, 8),
    (13_327, 12_360, 8, 46, 8),
    (13_604, 12_339, 8, 54, 8),
    (13_402, 12_330, 8, 62, 8),
    (13_311, 12_356, 8, 70, 8),
    (13_315, 12_335, 8, 78, 8),
    (13_323, 12_390, 8, 86, 8),
    (13_421, 12_345, 8, 94, 8),
    (13_583, 12_358, 8, 102, 8),
    (13_557, 12_322, 8, 111, 8),
];

/// RabbitMQ as it starts: now and then a call, and then one after the other, of several callers.
const RABBITMQ_STARTS: [End; 42] = [
    (0, 12_424, 0, 1, 0),
    (55_792, 12_429, 0, 2, 0),
    (73_441, 12_430, 0, 3, 0),
    (16_422, 12_454, 0, 4, 2),
    (114_520, 12_411, 0, 5, 2),
    (353_962, 12_361, 0, 6, 2),
    (31_020, 12_402, 0, 7, 2),
    (637_494, 12_414, 0, 8, 2),
    (13_517, 12_383, 0, 9, 2),
    (18_334, 12_387, 0, 10, 2),
    (14_063, 12_379, 0, 11, 2),
    (13_981, 12_439, 0, 12, 2),
    (14_204, 12_490, 0, 13, 2),
    (13_563, 12_366, 0, 14, 2),
    (12_480, 12_919, 0, 15, 2),
    (12_331, 23_185, 0, 16, 2),
    (13_514, 12_390, 0, 17, 2),
    (13_483, 12_477, 0, 18, 2),
    (13_561, 12_475, 0, 19, 2),
    (13_663, 12_469, 0, 20, 2),
    (13_682, 12_362, 0, 21, 2),
    (13_397, 12_392, 0, 22, 2),
    (14_148, 12_451, 0, 23, 2),
    (13_879, 12_511, 0, 24, 1),
    (13_525, 12_415, 0, 25, 1),
    (14_089, 12_440, 0, 26, 1),
    (14_134, 12_485, 0, 27, 1),
    (13_675, 12_437, 0, 28, 1),
    (13_686, 12_450, 0, 29, 1),
    (13_801, 12_454, 0, 30, 1),
    (13_619, 12_405, 0, 31, 1),
    (19_266, 12_500, 0, 32, 1),
    (47_401, 12_443, 0, 33, 1),
    (28_563, 12_454, 0, 34, 1),
    (14_351, 12_484, 0, 35, 1),
    (13_719, 12_485, 0, 36, 2),
    (14_152, 12_398, 0, 37, 2),
    (14_504, 12_392, 0, 38, 2),
    (13_124, 12_505, 0, 39, 2),
    (13_314, 12_580, 0, 40, 2),
    (39_183, 12_416, 0, 41, 2),
    (14_602, 12_384, 0, 42, 2),
];

#[test]
fn callers_that_do_nothing_else_than_call_are_held_on_after_one_trial() {
    let auto = replay(&REDIS);
    assert_eq!(auto.phase(), Phase::Engaged, "{:?}", auto.gain());
    assert_eq!(auto.trials(), (1, 1));
}

/// The same gain of callers that have had less to do before: half of their time passed between calls.
#[test]
fn callers_that_had_time_left_are_let_go_to_confirm_a_gain() {
    let mut ends = REDIS;
    for (_, call_us, released, ..) in &mut ends {
        *call_us /= if *released == 0 { 2 } else { 1 };
    }
    let auto = replay(&ends);
    assert_eq!(auto.phase(), Phase::Check);
    assert_eq!(auto.trials(), (1, 0));
}

/// The disk was busy otherwise before, so that calls took four times as long, and four of the callers have gone.
#[test]
fn calls_that_took_longer_than_two_commits_confirm_nothing() {
    let mut ends = REDIS;
    for (index, (since_us, call_us, released, served, _)) in ends.iter_mut().enumerate() {
        if *released == 0 {
            *since_us *= 4;
            *call_us *= 4;
        } else {
            *released = 4;
            *served = 38 + 4 * (index as u64 - 11);
        }
    }
    let auto = replay(&ends);
    assert_eq!(auto.phase(), Phase::Check, "{:?}", auto.gain());
}

#[test]
fn a_service_that_starts_makes_no_trial() {
    let auto = replay(&RABBITMQ_STARTS);
    assert_eq!(auto.reason(), Reason::TooFarApart);
    assert_eq!(auto.trials(), (0, 0));
}
