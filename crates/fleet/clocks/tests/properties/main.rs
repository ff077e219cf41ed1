//! Promises of a fit, on random clocks and messages.

mod simulated_offset;

use luc_fleet_clocks::{Bounds, FitOptions, MAX_TIME_NS, OffsetPoint, PairPoints, fit, one_line};
use proptest::prelude::*;
use simulated_offset::{SimulatedMessage, SimulatedOffset};

const KAPPA: f64 = 5000.0;
const SECOND: i64 = 1_000_000_000;

fn any_clocks() -> impl Strategy<Value = SimulatedOffset> {
    let curvatures =
        prop::collection::vec(prop_oneof![Just(-KAPPA), Just(KAPPA), -KAPPA..KAPPA], 1..12);
    (-1_000_000_000_000_i64..1_000_000_000_000, -50_000_f64..50_000.0, curvatures, 0.1_f64..4.0)
        .prop_map(|(offset_ns, rate, curvatures, part_s)| SimulatedOffset {
            offset_ns,
            rate,
            curvatures,
            part_s,
            jump: None,
        })
}

/// Up to 12 s of messages, bursts and silence; some cross the instant in no time.
fn messages(fewest: usize) -> impl Strategy<Value = Vec<SimulatedMessage>> {
    let delay = prop_oneof![Just(0_i64), 10_000_i64..12_000, 10_000_i64..2_000_000];
    let message =
        (0..12 * SECOND, delay, any::<bool>()).prop_map(|(sent_ns, delay_ns, is_forward)| {
            SimulatedMessage { sent_ns, delay_ns, is_forward }
        });
    prop::collection::vec(message, fewest..120)
}

fn options() -> impl Strategy<Value = FitOptions> {
    (0.5_f64..4.0, 0.05_f64..1.0).prop_map(|(window_s, step_s)| FitOptions {
        kappa_ns_per_s2: KAPPA,
        window_s,
        step_s,
        timestamp_error_ns: 0.0,
    })
}

fn is_in_order(bounds: Bounds) -> bool {
    bounds.low_ns().zip(bounds.high_ns()).is_none_or(|(low, high)| low <= high)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_truth_is_within_the_bounds(clocks in any_clocks(), messages in messages(1), options in options()) {
        let found = fit(&clocks.record(messages), &options).expect("a fit");
        prop_assert!(found.jumps().is_empty(), "{:?}", found.jumps());
        prop_assert!(!found.is_strained());
        for at_ns in (-2 * SECOND..14 * SECOND).step_by(37_000_000) {
            // Before 0 the simulated clocks have the first curvature and rate, too.
            let truth = clocks.offset_at(at_ns.max(0));
            let bounds = found.at(at_ns.max(0)).bounds;
            prop_assert!(bounds.contains(truth), "{at_ns}: {truth} {bounds:?}");
            prop_assert!(is_in_order(bounds));
        }
    }

    #[test]
    fn more_messages_never_widen_bounds(clocks in any_clocks(), messages in messages(2), options in options(),
                                        share in 0.1_f64..0.9) {
        let fewer = messages[..((messages.len() as f64 * share) as usize).max(1)].to_vec();
        let fewer = fit(&clocks.record(fewer), &options).expect("a fit");
        let all = fit(&clocks.record(messages), &options).expect("a fit");
        let (first, last) = fewer.span_ns();
        for at_ns in (first..=last).step_by(53_000_000) {
            let (wide, narrow) = (fewer.at(at_ns).bounds, all.at(at_ns).bounds);
            // 1 ns for rounding outwards.
            prop_assert!(wide.low_ns().is_none_or(|low| narrow.low_ns().is_some_and(|new| new >= low - 1)));
            prop_assert!(wide.high_ns().is_none_or(|high| narrow.high_ns().is_some_and(|new| new <= high + 1)));
        }
    }

    #[test]
    fn hosts_changed_negate_the_fit(clocks in any_clocks(), messages in messages(1), options in options()) {
        let points = clocks.record(messages);
        // By B's clock, which runs at another rate, the same curvature is another number.
        let on_b = FitOptions { kappa_ns_per_s2: KAPPA * 1.001, ..options };
        let there = fit(&points, &options).expect("a fit");
        let back = fit(&points.swapped(), &on_b).expect("a fit");
        for at_ns in (0..12 * SECOND).step_by(91_000_000) {
            let on_b = at_ns + clocks.offset_at(at_ns);
            let negated = back.at(on_b).bounds.negated();
            // Knots are elsewhere, so bounds are not the same; but both hold.
            prop_assert!(is_in_order(there.at(at_ns).bounds.and(negated)));
            prop_assert!(negated.contains(clocks.offset_at(at_ns) - 1) || negated.contains(clocks.offset_at(at_ns) + 1));
        }
    }

    #[test]
    fn directions_changed_negate_the_fit_exactly(clocks in any_clocks(), messages in messages(1), options in options()) {
        let points = clocks.record(messages);
        let negated = |points: &[OffsetPoint]| -> Vec<OffsetPoint> {
            points
                .iter()
                .map(|point| OffsetPoint::forward(point.at_ns(), point.at_ns() - point.offset_ns()).expect("in range"))
                .collect()
        };
        let mirrored = PairPoints { forward: negated(&points.backward), backward: negated(&points.forward) };
        let (one, other) = (fit(&points, &options).expect("a fit"), fit(&mirrored, &options).expect("a fit"));
        for at_ns in (0..12 * SECOND).step_by(91_000_000) {
            let (one, other) = (one.at(at_ns).bounds, other.at(at_ns).bounds.negated());
            let is_near = |a: Option<i64>, b: Option<i64>| match (a, b) {
                (Some(a), Some(b)) => (a - b).abs() <= 1,
                (a, b) => a == b,
            };
            prop_assert!(is_near(one.low_ns(), other.low_ns()) && is_near(one.high_ns(), other.high_ns()));
        }
    }

    #[test]
    fn a_jump_of_more_than_a_round_trip_is_found(clocks in any_clocks(), at_ns in 3 * SECOND..9 * SECOND,
                                                 size in 200_000_i64..1_000_000_000, is_back in any::<bool>()) {
        let mut clocks = clocks;
        clocks.jump = Some((at_ns, if is_back { -size } else { size }));
        let messages = (0..1200_i64).flat_map(|index| {
            [true, false].map(|is_forward| SimulatedMessage {
                sent_ns: index * 10_000_000 + i64::from(is_forward) * 3_000_000,
                delay_ns: 10_000 + index * 7919 % 30_000,
                is_forward,
            })
        });
        let found = fit(&clocks.record(messages), &FitOptions::default()).expect("a fit");
        prop_assert_eq!(found.jumps().len(), 1);
        let jump = found.jumps()[0];
        prop_assert!(jump.after_ns <= at_ns + 100_000 && at_ns <= jump.before_ns + 100_000, "{jump:?} {at_ns}");
        prop_assert!(jump.before_ns - jump.after_ns <= 60_000_000, "{jump:?}");
        for time_ns in (0..12 * SECOND).step_by(7_000_000) {
            let bounds = found.at(time_ns).bounds;
            prop_assert!(bounds.contains(clocks.offset_at(time_ns)), "{time_ns} {bounds:?}");
        }
    }

    #[test]
    fn nothing_panics(
        forward in prop::collection::vec((any::<i64>(), any::<i64>(), any::<bool>()), 0..40),
        backward in prop::collection::vec((any::<i64>(), any::<i64>(), any::<bool>()), 0..40),
        options in options(),
        times in prop::collection::vec(any::<i64>(), 10),
    ) {
        let near = |time_ns: i64, is_near: bool| if is_near { time_ns % (10 * SECOND) } else { time_ns / 4 };
        let mut points = PairPoints::default();
        for (a, b, is_near) in forward {
            points.add_forward(near(a, is_near), near(b, is_near)).expect("in range");
        }
        for (a, b, is_near) in backward {
            points.add_backward(near(a, is_near), near(b, is_near)).expect("in range");
        }
        let _ = one_line(&points);
        if let Ok(found) = fit(&points, &options) {
            for at_ns in times.into_iter().chain([i64::MIN, i64::MAX, 0]) {
                prop_assert!(is_in_order(found.at(at_ns).bounds));
            }
            for knot in found.knots() {
                prop_assert!(is_in_order(knot.estimate.bounds));
            }
        }
    }
}

#[test]
fn extremes_of_time() {
    let far = MAX_TIME_NS;
    let mut points = PairPoints::default();
    for (a, b) in [(-far, far), (far, -far), (far, far), (-far, -far), (0, 0), (0, far), (far, 0)] {
        points.add_forward(a, b).expect("in range");
        points.add_backward(a, b).expect("in range");
    }
    let found = fit(&points, &FitOptions::default());
    if let Ok(found) = found {
        assert!(is_in_order(found.at(0).bounds));
    }
    let _ = one_line(&points);
}

#[test]
fn messages_of_one_moment_that_contradict_each_other_are_left_out() {
    let clocks =
        SimulatedOffset { offset_ns: 0, rate: 0.0, curvatures: vec![0.0], part_s: 1.0, jump: None };
    let messages = (0..400_i64).flat_map(|index| {
        [true, false].map(|is_forward| SimulatedMessage {
            sent_ns: index * 10_000_000,
            delay_ns: 10_000,
            is_forward,
        })
    });
    let mut points = clocks.record(messages);
    points.add_forward(2_005_000_000, 2_005_000_000 - 900_000).expect("in range");
    points.add_backward(2_005_000_000 + 900_000, 2_005_000_000).expect("in range");
    let found = fit(&points, &FitOptions::default()).expect("a fit");
    assert!(!found.jumps().is_empty());
    for at_ns in [1_000_000_000, 3_000_000_000] {
        let bounds = found.at(at_ns).bounds;
        assert!(
            bounds.contains(0) && bounds.half_width_ns().is_some_and(|half| half < 11_000.0),
            "{bounds:?}"
        );
    }
}

#[test]
fn one_direction_bounds_one_side() {
    let mut points = PairPoints::default();
    for index in 0..100_i64 {
        points.add_forward(index * 10_000_000, index * 10_000_000 + 500_000).expect("in range");
    }
    let found = fit(&points, &FitOptions::default()).expect("a fit");
    let known = found.at(500_000_000);
    assert_eq!(known.offset_ns, None);
    assert!(
        matches!(known.bounds, Bounds::AtMost(high) if (500_000..500_010).contains(&high)),
        "{known:?}"
    );
    assert_eq!(found.at(100 * SECOND).bounds, Bounds::Unknown);
}
