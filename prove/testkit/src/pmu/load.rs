//! A load: the number of times that each event happens in each step.

use luc_counters::HardwareEvent;
use luc_stats::seeded_random;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

/// Exact counts of events, step by step.
#[derive(Debug, Clone)]
pub struct Load {
    events: Vec<HardwareEvent>,
    /// By event, then by step.
    counts: Vec<Vec<u64>>,
}

/// Changes of a load's kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Phases {
    /// One kind all the time.
    None,
    /// Random kinds, each for an exponentially distributed number of steps.
    Random { mean_steps: f64, kinds: usize },
    /// Two kinds in turn.
    Periodic { steps: usize },
}

/// Variation of a load within a phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// Coefficient of variation of a step's counts.
    pub variation: f64,
    /// Share of the steps in which an event happens at all. Its rate there is higher by as much.
    pub busy_share: f64,
}

impl Load {
    /// Makes a load of these events without steps.
    #[must_use]
    pub fn new(events: Vec<HardwareEvent>) -> Self {
        let counts = vec![Vec::new(); events.len()];
        Self { events, counts }
    }

    /// Adds a step. `count` returns the count of an event by its index.
    pub fn add(&mut self, mut count: impl FnMut(usize) -> u64) {
        for (event, counts) in self.counts.iter_mut().enumerate() {
            counts.push(count(event));
        }
    }

    /// Makes a load of `steps` steps. `rates` is the mean count of an event in a step of a kind: `rates(kind, event)`.
    #[must_use]
    pub fn phased(
        events: Vec<HardwareEvent>,
        steps: usize,
        phases: Phases,
        noise: Noise,
        random: &mut ChaCha8Rng,
        rates: impl Fn(usize, usize) -> f64,
    ) -> Self {
        let mut load = Self::new(events);
        let kinds = phases.by_step(steps, random);
        for kind in kinds {
            load.add(|event| {
                if noise.busy_share < 1.0 && random.random::<f64>() >= noise.busy_share {
                    return 0;
                }
                let mean = rates(kind, event) / noise.busy_share;
                if noise.variation <= 0.0 {
                    return mean.round() as u64;
                }
                let shape = noise.variation.powi(-2);
                seeded_random::gamma(random, mean, shape).round() as u64
            });
        }
        load
    }

    #[must_use]
    pub fn events(&self) -> &[HardwareEvent] {
        &self.events
    }

    #[must_use]
    pub fn steps(&self) -> usize {
        self.counts.first().map_or(0, Vec::len)
    }

    /// Returns an event's count in a step; 0 beyond the load.
    #[must_use]
    pub fn count(&self, event: usize, step: usize) -> u64 {
        let counts = self.counts.get(event);
        counts.and_then(|counts| counts.get(step)).copied().unwrap_or(0)
    }

    /// Returns an event's count in all steps.
    #[must_use]
    pub fn truth(&self, event: usize) -> u64 {
        self.counts.get(event).map_or(0, |counts| counts.iter().sum())
    }
}

impl Phases {
    /// Draws the kind of each step.
    pub fn by_step(self, steps: usize, random: &mut ChaCha8Rng) -> Vec<usize> {
        match self {
            Self::None => vec![0; steps],
            Self::Periodic { steps: period } => {
                let period = period.max(1);
                (0..steps).map(|step| usize::from(step % period >= period / 2)).collect()
            }
            Self::Random { mean_steps, kinds } => {
                let mut all = Vec::with_capacity(steps);
                while all.len() < steps {
                    let kind = random.random_range(0..kinds.max(1));
                    // 1 less a draw from [0, 1) is never 0.
                    let length = -mean_steps * (1.0 - random.random::<f64>()).ln();
                    let length = (length.ceil() as usize).clamp(1, steps - all.len());
                    all.resize(all.len() + length, kind);
                }
                all
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use luc_counters::CountMode;

    use super::*;

    #[test]
    fn rates_are_kept_whatever_the_noise() {
        for (variation, busy_share) in [(0.0, 1.0), (0.5, 1.0), (0.2, 0.1)] {
            let noise = Noise { variation, busy_share };
            let events = vec![HardwareEvent::new("cycles", CountMode::Total)];
            let mut random = seeded_random::stream(3, 0);
            let load =
                Load::phased(events, 50_000, Phases::None, noise, &mut random, |_, _| 1000.0);
            let mean = load.truth(0) as f64 / 50_000.0;
            assert!((mean / 1000.0 - 1.0).abs() < 0.05, "{noise:?}: {mean}");
        }
    }

    #[test]
    fn phases_last_as_long_as_they_shall() {
        let mut random = seeded_random::stream(3, 0);
        let phases = Phases::Random { mean_steps: 100.0, kinds: 4 };
        let kinds = phases.by_step(400_000, &mut random);
        let changes = kinds.windows(2).filter(|pair| pair[0] != pair[1]).count();
        // A quarter of the new phases is of the kind of the one before.
        let mean = 400_000.0 / changes as f64;
        assert!((mean / (100.5 / 0.75) - 1.0).abs() < 0.05, "{mean}");
        let periodic = Phases::Periodic { steps: 4 }.by_step(8, &mut random);
        assert_eq!(periodic, [0, 0, 1, 1, 0, 0, 1, 1]);
    }
}
