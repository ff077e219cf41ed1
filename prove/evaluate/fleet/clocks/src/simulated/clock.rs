//! Simulated crystals, whose truth is known.

use luc_stats::seeded_random;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

/// Maximum curvature of a simulated clock, ns/s²: the result of the temperature and load steps below.
pub(super) const MAX_CURVATURE: f64 = 230.0;
/// Time for which the curvature is constant, s.
const CELL_S: f64 = 0.01;
/// Amplitude of the bend of a rate by temperature, ns/s: 3 ppm.
const BEND_PPB: f64 = 3000.0;
/// Maximum change of a rate by a load step, ns/s: 1 ppm.
const MAX_STEP_PPB: f64 = 1000.0;
/// Time in which a load step warms the crystal, s.
const WARMING_S: f64 = 20.0;
/// Random walk of the rate, ns/s in a second.
const WALK_PPB_PER_S: f64 = 10.0;

/// A host's clock as a function of the true time.
pub(super) struct Clock {
    origin_ns: i64,
    /// Lead in ns, rate and curvature at the begin of each cell.
    cells: Vec<(f64, f64, f64)>,
}

impl Clock {
    /// Makes a clock that runs for some seconds, on average faster than the truth by `rate` ns/s.
    pub(super) fn new(random: &mut ChaCha8Rng, seconds: f64, rate: f64) -> Self {
        let period_s: f64 = random.random_range(120.0..240.0);
        let phase = random.random_range(0.0..std::f64::consts::TAU);
        let turn = std::f64::consts::TAU / period_s;
        let mut at = (0.0, rate + BEND_PPB * phase.sin());
        let (mut walk, mut load, mut warm, mut next_load) = (0.0, 0.0, 0.0, 0.0);
        let count = (seconds / CELL_S).ceil() as usize + 1;
        let mut cells = Vec::with_capacity(count);
        for cell in 0..count {
            let time = (cell as f64 + 0.5) * CELL_S;
            if cell % 100 == 0 {
                walk = (seeded_random::normal(random) * WALK_PPB_PER_S)
                    .clamp(-2.0 * WALK_PPB_PER_S, 2.0 * WALK_PPB_PER_S);
            }
            if time >= next_load {
                load = random.random_range(0.0..MAX_STEP_PPB);
                next_load = time + random.random_range(20.0..40.0);
            }
            let warming = (load - warm) / WARMING_S;
            warm += warming * CELL_S;
            let curvature = BEND_PPB * turn * (turn * time + phase).cos() + warming + walk;
            let curvature = curvature.clamp(-MAX_CURVATURE, MAX_CURVATURE);
            cells.push((at.0, at.1, curvature));
            at.0 += at.1 * CELL_S + curvature / 2.0 * CELL_S * CELL_S;
            at.1 += curvature * CELL_S;
        }
        Self {
            // Hosts run for up to a year.
            origin_ns: random.random_range(0..31_000_000) * 1_000_000_000,
            cells,
        }
    }

    /// Lead over the truth, ns, without its origin.
    fn ahead(&self, true_ns: f64) -> f64 {
        let seconds = true_ns * 1e-9;
        let cell = ((seconds / CELL_S) as usize).min(self.cells.len() - 1);
        let (height, rate, curvature) = self.cells[cell];
        let since = seconds - cell as f64 * CELL_S;
        height + rate * since + curvature / 2.0 * since * since
    }

    /// Reading at a true time, in whole ns as clocks are read.
    pub(super) fn read(&self, true_ns: f64) -> i64 {
        self.origin_ns + (true_ns + self.ahead(true_ns)).floor() as i64
    }

    /// Lead of `other` at a true time, less the difference of their origins, ns.
    pub(super) fn until(&self, other: &Self, true_ns: f64) -> f64 {
        other.ahead(true_ns) - self.ahead(true_ns)
    }

    /// Difference of the origins, which `until` leaves out.
    pub(super) fn origin_until(&self, other: &Self) -> i64 {
        other.origin_ns - self.origin_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_bends_no_more_than_it_says() {
        let clock = Clock::new(&mut seeded_random::stream(1, 0), 60.0, 30_000.0);
        let step = 1e8;
        for at in 1..599 {
            let [before, here, after] =
                [-1.0, 0.0, 1.0].map(|side| clock.ahead((f64::from(at) + side) * step));
            let curvature = (before - 2.0 * here + after) / (step * 1e-9).powi(2);
            assert!(curvature.abs() <= MAX_CURVATURE + 0.01, "{at}: {curvature}");
        }
        let gained = clock.ahead(60e9) / 60.0;
        assert!((gained - 30_000.0).abs() < 8000.0, "{gained}");
    }
}
