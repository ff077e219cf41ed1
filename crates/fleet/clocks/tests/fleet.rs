//! Many hosts, from messages to the order of events.

use std::cmp::Ordering;

use luc_fleet_clocks::{
    ClockError, EventOrder, FitOptions, FleetClocks, HostEvent, HostId, HostPair, PairPoints, fit,
};
use luc_stats::seeded_random;
use rand::RngExt;

const SECOND: i64 = 1_000_000_000;

/// Returns a host's clock at a true time: months apart, some µs/s of drift, and a bend.
fn clock(host: i64, at_ns: i64) -> i64 {
    let seconds = at_ns as f64 * 1e-9;
    let drift = (host as f64 * 9e3) * seconds + (seconds / 7.0 + host as f64).sin() * 30e3;
    host * 3_000_000 * SECOND + at_ns + drift as i64
}

fn pair(a: i64, b: i64, asymmetry_ns: i64, until_ns: i64) -> HostPair {
    let mut random = seeded_random::stream(1, (a * 100 + b) as u64);
    let mut points = PairPoints::default();
    for at_ns in (0..until_ns).step_by(2_000_000) {
        let delays = [0, asymmetry_ns].map(|more| 10_000 + more + random.random_range(0..20_000));
        points.add_forward(clock(a, at_ns), clock(b, at_ns + delays[0])).expect("in range");
        points.add_backward(clock(b, at_ns), clock(a, at_ns + delays[1])).expect("in range");
    }
    HostPair {
        a: HostId(a as u32),
        b: HostId(b as u32),
        fit: fit(&points, &FitOptions::default()).expect("a fit"),
    }
}

fn event(host: i64, at_ns: i64) -> HostEvent {
    HostEvent { host: HostId(host as u32), at_ns: clock(host, at_ns) }
}

#[test]
fn the_truth_is_within_the_bounds_of_all_hosts() {
    let pairs = vec![
        pair(0, 1, 0, 8 * SECOND),
        pair(2, 1, 3_000, 8 * SECOND),
        pair(2, 0, -3_000, 8 * SECOND),
        pair(3, 2, 1_000, 8 * SECOND),
        // Two that talk with each other only.
        pair(5, 4, 0, 8 * SECOND),
    ];
    let fleet = FleetClocks::new(HostId(0), pairs).expect("a fleet");
    assert_eq!(fleet.disconnected().collect::<Vec<_>>(), [HostId(4), HostId(5)]);
    for host in 0..4 {
        for at_ns in (SECOND..7 * SECOND).step_by(33_333_333) {
            let placed = fleet.global_ns(event(host, at_ns)).expect("known");
            assert!(placed.bounds.contains(clock(0, at_ns)), "{host} {at_ns} {placed:?}");
            let half = placed.bounds.half_width_ns().expect("both bounds");
            assert!(half < if host == 3 { 25_000.0 } else { 14_000.0 }, "{host}: {half}");
            let wrong = placed.at_ns.expect("both bounds") - clock(0, at_ns);
            assert!(wrong.abs() < 3_500, "{host}: {wrong}");
        }
    }
    assert_eq!(fleet.global_ns(event(9, 0)), Err(ClockError::UnknownHost(HostId(9))));
    let nowhere = fleet.global_ns(event(4, SECOND)).expect("known");
    assert_eq!(nowhere.at_ns, None);
}

#[test]
fn order_of_events() {
    let fleet =
        FleetClocks::new(HostId(0), vec![pair(0, 1, 0, 4 * SECOND), pair(1, 2, 0, 4 * SECOND)])
            .expect("a fleet");
    let order = |a, b| fleet.order(a, b).expect("known hosts");
    let at = 2 * SECOND;
    assert_eq!(order(event(1, at), event(1, at)), EventOrder::Certain(Ordering::Equal));
    for (a, b) in [(0, 1), (1, 0), (1, 2), (2, 0)] {
        assert_eq!(order(event(a, at), event(b, at + 60_000)), EventOrder::Certain(Ordering::Less));
        assert_eq!(
            order(event(a, at + 60_000), event(b, at)),
            EventOrder::Certain(Ordering::Greater)
        );
        assert_eq!(order(event(a, at), event(b, at + 100)), EventOrder::Unknown);
    }
    assert_eq!(order(event(0, at), event(1, at + 8_000)), EventOrder::Likely(Ordering::Less));
    assert_eq!(order(event(1, at + 8_000), event(0, at)), EventOrder::Likely(Ordering::Greater));
    // 1 and 2 talk with each other: what they say is narrower than the way by the reference.
    assert_eq!(order(event(1, at), event(2, at + 14_000)), EventOrder::Certain(Ordering::Less));
}

#[test]
fn a_clock_that_jumps_is_followed() {
    let jump_ns = 2 * SECOND + 1_234_567;
    let jumped = |at_ns: i64| clock(1, at_ns) + if at_ns >= jump_ns { 5_000_000 } else { 0 };
    let mut points = PairPoints::default();
    for at_ns in (0..4 * SECOND).step_by(2_000_000) {
        points.add_forward(clock(0, at_ns), jumped(at_ns + 10_000)).expect("in range");
        points.add_backward(jumped(at_ns), clock(0, at_ns + 10_000)).expect("in range");
    }
    let found = fit(&points, &FitOptions::default()).expect("a fit");
    assert_eq!(found.jumps().len(), 1);
    let pair = HostPair { a: HostId(0), b: HostId(1), fit: found };
    let fleet = FleetClocks::new(HostId(0), vec![pair]).expect("a fleet");
    for at_ns in [SECOND, jump_ns - SECOND / 2, jump_ns + SECOND / 2, 3 * SECOND] {
        let event = HostEvent { host: HostId(1), at_ns: jumped(at_ns) };
        let placed = fleet.global_ns(event).expect("known");
        assert!(placed.bounds.contains(clock(0, at_ns)), "{placed:?}");
        assert!(placed.bounds.half_width_ns().is_some_and(|half| half < 11_000.0), "{placed:?}");
    }
}

#[test]
fn pairs_are_given_once() {
    let twice = vec![pair(0, 1, 0, SECOND), pair(1, 0, 0, SECOND)];
    let refused = FleetClocks::new(HostId(0), twice);
    assert_eq!(refused.err(), Some(ClockError::BadPair(HostId(1), HostId(0))));
}
