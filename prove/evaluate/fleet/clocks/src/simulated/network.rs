//! Simulated messages between two hosts.

use luc_fleet_clocks::{ClockError, MessageThinner, OffsetPoint, PairDirection, PairPoints};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Exp1, Pareto};

/// Shape of the Pareto part of a delay.
const SHAPE: f64 = 1.5;

/// Distribution of the delays of messages in one direction.
#[derive(Clone, Copy)]
pub(super) struct Delays {
    pub(super) least: f64,
    /// Mean of an exponential part, ns.
    pub(super) queue: f64,
    /// Share that waits longer, by a Pareto distribution.
    pub(super) slow_share: f64,
    pub(super) slow: f64,
}

impl Delays {
    fn draw(self, random: &mut ChaCha8Rng) -> f64 {
        let queued: f64 = random.sample(Exp1);
        let mut delay = self.least + self.queue * queued;
        if random.random_bool(self.slow_share) {
            delay += random.sample(Pareto::new(self.slow, SHAPE).expect("a scale above 0"));
        }
        delay
    }
}

/// Delays there and back.
#[derive(Clone, Copy)]
pub(super) struct Ways {
    pub(super) there: Delays,
    pub(super) back: Delays,
}

impl Ways {
    /// Half the smallest round trip, ns: nobody can guarantee more.
    pub(super) fn half_round_trip(self) -> f64 {
        f64::midpoint(self.there.least, self.back.least)
    }

    /// Half the difference of both ways, ns: nobody can see it.
    pub(super) fn half_asymmetry(self) -> f64 {
        (self.there.least - self.back.least) / 2.0
    }
}

/// Sends messages at random times, `per_s` each way in a second. `read` reads both clocks at true times.
pub(super) fn record(
    random: &mut ChaCha8Rng,
    (seconds, per_s): (f64, f64),
    ways: Ways,
    [a, b]: [&dyn Fn(f64) -> i64; 2],
) -> Result<PairPoints, ClockError> {
    let mut points = PairPoints::default();
    let end = seconds * 1e9;
    for (is_forward, delays) in [(true, ways.there), (false, ways.back)] {
        let mut at = 0.0;
        loop {
            let pause: f64 = random.sample(Exp1);
            at += pause / per_s * 1e9;
            if at >= end {
                break;
            }
            let received = at + delays.draw(random);
            if received >= end {
                continue;
            }
            if is_forward {
                points.add_forward(a(at), b(received))?;
            } else {
                points.add_backward(b(at), a(received))?;
            }
        }
    }
    Ok(points)
}

/// Returns the messages that a recorder keeps.
pub(super) fn thinned(points: &PairPoints) -> PairPoints {
    let thin = |direction, points: &[OffsetPoint]| {
        let mut points = points.to_vec();
        points.sort_unstable();
        let mut thinner = MessageThinner::new(direction);
        let mut kept: Vec<OffsetPoint> =
            points.into_iter().filter_map(|point| thinner.add(point)).collect();
        kept.extend(thinner.finish());
        kept
    };
    PairPoints {
        forward: thin(PairDirection::Forward, &points.forward),
        backward: thin(PairDirection::Backward, &points.backward),
    }
}
