//! Tests reports on clocks against the truth.

use luc_fleet::clock_fit_report::PairReport;
use luc_fleet::text::ResultText;
use luc_fleet::{ExplanationOptions, JoinedTraces, explain, fit};

use crate::planted_hosts::{BEGIN_NS, PlantedClock, PlantedConnection, host, talk};

const A: PlantedClock =
    PlantedClock { offset_ns: 0, drift_ppb: -3_000, ntp_ppb: 12_000, jump: None };
const B: PlantedClock =
    PlantedClock { offset_ns: 777_000_000_123, drift_ppb: 17_000, ntp_ppb: -8_000, jump: None };

/// Two hosts that talk, and one that nobody talks to.
fn pair(b: &PlantedClock, seconds: i64) -> (JoinedTraces, PairReport) {
    let (mut one, mut two) = (host("one", &A, seconds), host("two", b, seconds));
    talk([&mut one, &mut two], [&A, b], 1, seconds);
    let joined = JoinedTraces::new(vec![one, two, host("alone", &A, seconds)]).expect("joined");
    let found = fit(&joined).expect("a fit");
    assert_eq!(found.pairs.len(), 1);
    assert_eq!(found.unrelated.len(), 1);
    assert_eq!(found.unrelated[0].host, "alone");
    (joined, found.pairs[0].clone())
}

#[test]
fn offset_and_drift_are_within_their_bounds() {
    let (joined, pair) = pair(&B, 10);
    let offset = pair.offset.expect("an offset");
    let shown_ns = A.monotonic_ns(BEGIN_NS).wrapping_add_signed(offset.at_ns);
    let at_ns = A.when_ns(shown_ns);
    let truth = B.raw_ns(at_ns) - A.raw_ns(at_ns);
    let (low_ns, high_ns) = offset.low_ns.zip(offset.high_ns).expect("both bounds");
    assert!(low_ns <= truth && truth <= high_ns, "{low_ns} {truth} {high_ns}");
    // Half the smallest round trip is 20 us; little comes to it.
    let widths = offset.half_width.expect("bounds");
    assert!(widths.median_ns < 21_000.0, "{widths:?}");
    assert!(widths.min_ns <= widths.median_ns && widths.median_ns <= widths.max_ns);
    let drift = offset.drift.expect("a drift");
    assert!((drift.ppm - 20.0).abs() <= drift.error_ppm, "{drift:?}");
    assert!(drift.error_ppm < 10.0, "{drift:?}");
    assert!(offset.jumps.is_empty() && !offset.is_strained);
    assert_eq!(fit(&joined).expect("a fit").contradiction, None);
    assert!(pair.packets_a_to_b > 1000 && pair.packets_b_to_a > 1000);
    let what = fit(&joined).expect("a fit");
    let text = ResultText { what: &what, colours: false }.to_string();
    for part in ["one and two: 1 connection", "alone: not known: no connection", "ppm"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_jump_is_found() {
    let jumps = PlantedClock { jump: Some((BEGIN_NS + 6_000_000_000, 3_000_000)), ..B };
    let (_, pair) = pair(&jumps, 10);
    let offset = pair.offset.expect("an offset");
    let [jump] = offset.jumps[..] else {
        panic!("{:?}", offset.jumps);
    };
    assert!((5_990_000_000..6_010_000_000).contains(&jump.after_ns), "{jump:?}");
    let by_ns = jump.by_ns.expect("a size");
    assert!((by_ns - 3_000_000).abs() < 100_000, "{jump:?}");
    let drift = offset.drift.expect("a drift");
    assert!((drift.ppm - 20.0).abs() <= drift.error_ppm, "{drift:?}");
}

#[test]
fn one_direction_gives_one_bound() {
    let (mut one, mut two) = (host("one", &A, 2), host("two", &B, 2));
    let mut connected = PlantedConnection::new(&mut one, &mut two, 1);
    for millisecond in 0..2000 {
        let at_ns = BEGIN_NS + millisecond * 1_000_000;
        let from = (&mut one, A.monotonic_ns(at_ns));
        connected.packet(from, (&mut two, B.monotonic_ns(at_ns + 20_000)), 0, 10);
    }
    let joined = JoinedTraces::new(vec![one, two]).expect("joined");
    let found = fit(&joined).expect("a fit");
    let offset = found.pairs[0].offset.as_ref().expect("an offset");
    assert_eq!((offset.low_ns, offset.offset_ns), (None, None));
    assert!(offset.high_ns.is_some() && offset.half_width.is_none() && offset.drift.is_none());
    assert!((offset.without_a_bound - 1.0).abs() < 1e-9);
    let text = ResultText { what: &found, colours: true }.to_string();
    assert!(text.contains("at most") && text.contains("100.0 % of the time"), "{text}");
    explain(&joined, ExplanationOptions::default()).expect("explained");
}

/// Around a circle of hosts the offsets must sum to nothing. Here one pair's packets tell of another clock.
#[test]
fn a_contradiction_among_three_is_said() {
    let clocks = [A, B, A];
    let [mut one, mut two, mut three] =
        [("one", 0), ("two", 1), ("three", 2)].map(|(name, at)| host(name, &clocks[at], 3));
    let off = PlantedClock { offset_ns: B.offset_ns + 500_000, ..B };
    talk([&mut one, &mut two], [&clocks[0], &clocks[1]], 1, 3);
    talk([&mut two, &mut three], [&off, &clocks[2]], 2, 3);
    talk([&mut one, &mut three], [&clocks[0], &clocks[2]], 3, 3);
    let joined = JoinedTraces::new(vec![one, two, three]).expect("joined");
    let found = fit(&joined).expect("a fit");
    assert_eq!(found.pairs.len(), 3);
    let said = found.contradiction.as_ref().expect("a contradiction");
    assert!(said.contains("around ") && said.contains("s after the trace of one began"), "{said}");
    let text = ResultText { what: &found, colours: false }.to_string();
    assert!(text.contains("times between hosts are not known: around"), "{text}");
    let explained = explain(&joined, ExplanationOptions::default()).expect("explained");
    assert_eq!(explained.contradiction, found.contradiction);
}
