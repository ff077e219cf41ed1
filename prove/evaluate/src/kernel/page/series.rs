//! A figure by processor speed.

use luc_stats::median;

use super::super::cells::{Load, NOT_LOADED, SEEDS, SPEEDS, Sheet, Speed};
use super::super::results::Results;

/// All speeds, slowest first.
pub(super) fn speeds() -> impl Iterator<Item = Speed> {
    let mut speeds = SPEEDS;
    speeds.sort_by_key(|speed| speed.mips());
    speeds.into_iter()
}

/// Values at some speeds, slowest first.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series(Vec<(Speed, f64)>);

/// Throughput that falls when the processor gets faster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fall {
    pub(super) from: Speed,
    pub(super) to: Speed,
    /// Of what there was; negative: it rises.
    pub(super) share: f64,
}

impl Series {
    /// The rates of a setting.
    pub(super) fn of(results: &Results, load: Load, setting: &str) -> Self {
        let rate = |speed| {
            let cell = results.cell(Sheet::Sweep, load, speed, setting)?;
            Some((speed, cell.rate))
        };
        Self(speeds().filter_map(rate).collect())
    }

    /// The rates of a setting: at each speed the median of the sweep's and those with other seeds, as far as they are
    /// there.
    pub(super) fn of_seeds(results: &Results, load: Load, setting: &str) -> Self {
        let rate = |speed| {
            Some((
                speed,
                median(&rates_of_seeds(results, load, speed, setting))?,
            ))
        };
        Self(speeds().filter_map(rate).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// At each speed that both have, this over `other`.
    pub(super) fn over(&self, other: &Self) -> Self {
        let ratio = |(speed, value): &(Speed, f64)| {
            let (_, base) = other.0.iter().find(|(at, _)| at == speed)?;
            Some((*speed, value / base))
        };
        Self(self.0.iter().filter_map(ratio).collect())
    }

    /// At each speed the greatest of `all`.
    pub(super) fn greatest(all: &[Self]) -> Self {
        let at = |speed| {
            let values = all
                .iter()
                .filter_map(|series| series.0.iter().find(|(at, _)| *at == speed));
            let greatest = values.map(|(_, value)| *value).reduce(f64::max)?;
            Some((speed, greatest))
        };
        Self(speeds().filter_map(at).collect())
    }

    /// The least and the greatest value, with their speeds.
    pub(super) fn range(&self) -> Option<((Speed, f64), (Speed, f64))> {
        let least = self.0.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let most = self.0.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some((*least, *most))
    }

    /// The step to the next faster speed at which most is lost.
    pub(super) fn greatest_fall(&self) -> Option<Fall> {
        let step = |pair: &[(Speed, f64)]| Fall {
            from: pair[0].0,
            to: pair[1].0,
            share: 1.0 - pair[1].1 / pair[0].1,
        };
        let falls = self.0.windows(2).map(step);
        falls.max_by(|a, b| a.share.total_cmp(&b.share))
    }
}

/// The rates of a setting with each seed, as far as they are there.
pub(super) fn rates_of_seeds(
    results: &Results,
    load: Load,
    speed: Speed,
    setting: &str,
) -> Vec<f64> {
    rates_by_seed(results, load, speed, setting)
        .flatten()
        .collect()
}

/// The rate of a setting with each seed. Without the module the sweep's seed is among the rivals.
pub(super) fn rates_by_seed(
    results: &Results,
    load: Load,
    speed: Speed,
    setting: &str,
) -> impl Iterator<Item = Option<f64>> {
    let first = match setting {
        NOT_LOADED => results.cell(Sheet::Rivals, load, speed, "ext4"),
        _ => results.cell(Sheet::Sweep, load, speed, setting),
    };
    let others = SEEDS.map(|seed| results.cell(Sheet::Seed(seed), load, speed, setting));
    std::iter::once(first)
        .chain(others)
        .map(|cell| Some(cell?.rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[f64]) -> Series {
        Series(speeds().zip(values.iter().copied()).collect())
    }

    #[test]
    fn the_greatest_fall_is_found() {
        let fall = series(&[100.0, 110.0, 88.0, 90.0]).greatest_fall();
        let fall = fall.expect("four speeds");
        assert!((fall.share - 0.2).abs() < 1e-9);
        assert!(fall.from.mips() < fall.to.mips());
        let rising = series(&[1.0, 2.0]).greatest_fall().expect("two speeds");
        assert!(rising.share < 0.0);
        assert_eq!(series(&[1.0]).greatest_fall(), None);
    }

    #[test]
    fn ratios_and_their_range() {
        let ratio = series(&[2.0, 9.0]).over(&series(&[1.0, 3.0, 5.0]));
        let (least, most) = ratio.range().expect("two");
        assert!((least.1 - 2.0).abs() < 1e-9 && (most.1 - 3.0).abs() < 1e-9);
        let greatest = Series::greatest(&[series(&[1.0, 5.0]), series(&[2.0, 4.0])]);
        assert_eq!(greatest, series(&[2.0, 5.0]));
        assert_eq!(series(&[]).range(), None);
    }
}
