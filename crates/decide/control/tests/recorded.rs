//! Replays ends of commits that the gate recorded. They are of services on a disk whose flush takes 6 ms, from their
//! first call on.

use luc_control::auto::{Auto, Phase, Reason};
use luc_control::epoch::{Epoch, Others};

/// End of a commit: time since the previous end, latency of its first caller's call, callers released together, calls
/// served until then, callers in the last window. Times are in microseconds.
type End = (u64, u64, u32, u64, u32);

/// Replays these ends through a controller. The arrivals within a round were not recorded. They are assumed 150 µs
/// apart.
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
            most_at_once: 0,
            latencies_ns: 0,
            participants,
            commit_ns: call_us * 1_000,
            released,
            exact: false,
            arrivals_ns: &arrivals_ns,
        });
    }
    auto
}

/// Eight Redis servers, each with a client that writes key after key. At first two groups of four wait for each other's
/// commits, then one group of eight.
const REDIS: [End; 22] = [
    (0, 24_463, 0, 1, 0),
    (12_531, 24_633, 0, 5, 0),
    (12_378, 24_629, 0, 7, 0),
    (12_266, 24_417, 0, 13, 8),
    (12_346, 24_483, 0, 15, 8),
    (28_104, 15_581, 0, 19, 8),
    (12_691, 23_208, 0, 22, 8),
    (12_387, 24_677, 0, 27, 8),
    (12_539, 24_628, 0, 30, 8),
    (12_781, 25_024, 0, 35, 8),
    (12_624, 24_941, 0, 38, 8),
    (12_635, 24_898, 0, 43, 8),
    (12_902, 12_315, 8, 47, 8),
    (13_591, 12_303, 8, 56, 8),
    (13_310, 12_334, 8, 63, 8),
    (13_359, 12_274, 8, 71, 8),
    (13_315, 12_291, 8, 79, 8),
    (13_254, 12_276, 8, 87, 8),
    (13_201, 12_282, 8, 95, 8),
    (13_359, 12_294, 8, 103, 8),
    (13_547, 12_343, 8, 112, 8),
    (13_418, 12_305, 8, 119, 8),
];

/// Eight SQLite writers whose calls are notified. When holding begins, the last earlier callers return. Three small
/// rounds pass until all are in step.
const SQLITE: [End; 23] = [
    (0, 12_372, 0, 1, 0),
    (6_261, 6_261, 0, 7, 0),
    (24_533, 30_697, 0, 10, 0),
    (6_317, 6_317, 0, 18, 8),
    (6_316, 12_539, 0, 19, 8),
    (6_177, 18_487, 0, 22, 8),
    (12_567, 30_853, 0, 25, 8),
    (12_583, 31_322, 0, 26, 8),
    (6_601, 6_502, 0, 30, 8),
    (12_625, 19_173, 0, 35, 8),
    (12_344, 12_333, 0, 39, 8),
    (6_322, 6_318, 0, 40, 8),
    (12_196, 30_782, 0, 46, 8),
    (6_110, 7_168, 7, 47, 8),
    (30_979, 23_794, 3, 51, 8),
    (6_092, 13_747, 1, 51, 8),
    (12_379, 12_281, 8, 59, 8),
    (39_182, 18_909, 8, 67, 8),
    (12_892, 12_518, 8, 75, 8),
    (12_989, 12_602, 8, 83, 8),
    (12_997, 12_429, 8, 91, 8),
    (13_096, 12_706, 8, 99, 8),
    (13_178, 12_431, 8, 107, 8),
];

/// RabbitMQ as it starts: a call now and then, and later one after the other, of several callers.
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

/// The same gain of callers that had less to do before: half of their time passed between calls.
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

/// The disk was busy otherwise before, so that calls took four times as long. Four of the callers have gone.
#[test]
fn calls_that_took_longer_than_two_commits_confirm_nothing() {
    let mut ends = REDIS;
    for (index, (since_us, call_us, released, served, _)) in ends.iter_mut().enumerate() {
        if *released == 0 {
            *since_us *= 4;
            *call_us *= 4;
        } else {
            *released = 4;
            *served = 43 + 4 * (index as u64 - 11);
        }
    }
    let auto = replay(&ends);
    assert_eq!(auto.phase(), Phase::Check, "{:?}", auto.gain());
}

#[test]
fn returns_of_callers_that_were_not_held_are_no_loss() {
    let auto = replay(&SQLITE);
    assert_eq!(auto.phase(), Phase::Check, "{:?}", auto.gain());
    assert!(auto.gain().0 > 1.25, "{:?}", auto.gain());
    assert_eq!(auto.trials(), (1, 0));
}

#[test]
fn a_service_that_starts_makes_no_trial() {
    let auto = replay(&RABBITMQ_STARTS);
    assert_eq!(auto.reason(), Reason::TooFarApart);
    assert_eq!(auto.trials(), (0, 0));
}
