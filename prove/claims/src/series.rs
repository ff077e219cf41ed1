//! Repeats of a figure along an axis, with which claims compute; and the choice of points.

use std::collections::BTreeMap;

use luc_harness::report::{between, number};
use luc_stats::{MedianInterval, median, median_interval};

/// Values of axes, by their names.
pub(super) type Selection = BTreeMap<String, String>;

pub(super) const VALUE: &str = "value";

/// Round and figure of a repeat.
pub(super) type Repeat = (usize, f64);

/// Repeats of a figure at each value of the page's axis, the least value first. A page without an axis has one value,
/// 0.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Series(pub(super) Vec<(u64, Vec<Repeat>)>);

/// A fall of the median when the axis grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fall {
    pub(super) from: u64,
    pub(super) to: u64,
    /// Fall as a share of the greater median; negative: a rise.
    pub(super) share: f64,
    /// Whether every repeat at `to` is below every one at `from`.
    pub(super) is_sure: bool,
}

impl Series {
    pub(super) fn map(&self, change: impl Fn(f64) -> f64) -> Self {
        let at = |(along, repeats): &(u64, Vec<Repeat>)| {
            let repeats = repeats.iter().map(|(round, value)| (*round, change(*value)));
            (*along, repeats.collect())
        };
        Self(self.0.iter().map(at).collect())
    }

    /// Combines repeats of the same round at the same value of the axis.
    pub(super) fn combine(&self, other: &Self, with: impl Fn(f64, f64) -> f64) -> Self {
        let at = |(along, repeats): &(u64, Vec<Repeat>)| {
            let others = other.at(*along)?;
            let pair = |(round, value): &Repeat| {
                let (_, other) = others.iter().find(|(at, _)| at == round)?;
                Some((*round, with(*value, *other)))
            };
            let pairs: Vec<Repeat> = repeats.iter().filter_map(pair).collect();
            (!pairs.is_empty()).then_some((*along, pairs))
        };
        Self(self.0.iter().filter_map(at).collect())
    }

    /// Returns the repeats at a value of the axis.
    pub(super) fn at(&self, along: u64) -> Option<&[Repeat]> {
        let found = self.0.iter().find(|(at, _)| *at == along);
        found.map(|(_, repeats)| repeats.as_slice())
    }

    /// Returns the series at one value of the axis.
    pub(super) fn only(&self, along: u64) -> Self {
        let is_it = |(at, _): &&(u64, Vec<Repeat>)| *at == along;
        Self(self.0.iter().filter(is_it).cloned().collect())
    }

    /// Returns the median at each value of the axis.
    pub(super) fn medians(&self) -> Vec<(u64, f64)> {
        let median =
            |(along, repeats): &(u64, Vec<Repeat>)| Some((*along, median(&values(repeats))?));
        self.0.iter().filter_map(median).collect()
    }

    /// Returns every repeat at every value of the axis.
    pub(super) fn values(&self) -> Vec<f64> {
        self.0.iter().flat_map(|(_, repeats)| values(repeats)).collect()
    }

    /// Divides each value of the axis by the first, round by round.
    pub(super) fn over_first(&self) -> Self {
        let Some((_, first)) = self.0.first() else {
            return Self::default();
        };
        let each = self.0.iter().map(|(along, _)| (*along, first.clone()));
        self.combine(&Self(each.collect()), |value, first| value / first)
    }

    /// Takes the series with the greatest median at each value of the axis.
    pub(super) fn best(all: &[&Self]) -> Self {
        let mut alongs: Vec<u64> =
            all.iter().flat_map(|one| one.0.iter().map(|(at, _)| *at)).collect();
        alongs.sort_unstable();
        alongs.dedup();
        let best = |along: u64| {
            let there = all.iter().filter_map(|one| one.at(along));
            let middle = |repeats: &[Repeat]| median(&values(repeats)).unwrap_or(f64::NEG_INFINITY);
            let best = there.max_by(|a, b| middle(a).total_cmp(&middle(b)))?;
            Some((along, best.to_vec()))
        };
        Self(alongs.into_iter().filter_map(best).collect())
    }

    /// Returns the greatest fall from any value of the axis to a greater one; with `steps` to the next one only.
    pub(super) fn greatest_fall(&self, steps: bool) -> Option<Fall> {
        let medians = self.medians();
        let pairs = medians.iter().enumerate().flat_map(|(at, from)| {
            let to = if steps { at + 2 } else { medians.len() };
            medians[at + 1..to.min(medians.len())].iter().map(move |to| (from, to))
        });
        let fall = |((from, before), (to, after)): (&(u64, f64), &(u64, f64))| {
            let ends = |along| self.only(along).values();
            let least = ends(*from).into_iter().reduce(f64::min);
            let most = ends(*to).into_iter().reduce(f64::max);
            Fall { from: *from, to: *to, share: 1.0 - after / before, is_sure: most < least }
        };
        pairs.map(fall).max_by(|a, b| a.share.total_cmp(&b.share))
    }

    /// Returns the least and the greatest median, with their values of the axis.
    pub(super) fn range(&self) -> Option<((u64, f64), (u64, f64))> {
        let medians = self.medians();
        let least = medians.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let most = medians.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some((*least, *most))
    }

    /// Returns the median of all repeats with its 95 % interval, or with fewer than six repeats their range.
    pub(super) fn interval(&self) -> Option<MedianInterval> {
        let values = self.values();
        median_interval(&values).or_else(|| {
            Some(MedianInterval {
                median: median(&values)?,
                low: values.iter().copied().reduce(f64::min)?,
                high: values.iter().copied().reduce(f64::max)?,
            })
        })
    }

    /// Formats the series for a table: `12.3 (11.9 to 12.8)`, or of few repeats `12.3 (range 11.9 to 12.8)`.
    pub(super) fn text(&self) -> String {
        let Some(MedianInterval { median, low, high }) = self.interval() else {
            return "-".to_owned();
        };
        let [middle, low, high] = [median, low, high].map(number);
        let is_range = median_interval(&self.values()).is_none();
        if low == high { middle } else { between(&middle, &low, &high, is_range) }
    }
}

fn values(repeats: &[Repeat]) -> Vec<f64> {
    repeats.iter().map(|(_, value)| *value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(rates: &[(u64, [f64; 2])]) -> Series {
        let at = |(along, [a, b]): &(u64, [f64; 2])| (*along, vec![(0, *a), (1, *b)]);
        Series(rates.iter().map(at).collect())
    }

    #[test]
    fn a_fall_is_from_any_value_to_any_greater_one() {
        let found =
            series(&[(1, [9.0, 11.0]), (2, [12.0, 12.0]), (3, [9.0, 9.0]), (4, [5.0, 7.0])]);
        let fall = found.greatest_fall(false).expect("a fall");
        assert_eq!((fall.from, fall.to, fall.is_sure), (2, 4, true));
        assert!((fall.share - 0.5).abs() < 1e-9);
        let step = found.greatest_fall(true).expect("a fall");
        assert_eq!((step.from, step.to), (3, 4));
        let rising = series(&[(1, [1.0, 1.0]), (2, [2.0, 2.0])]);
        assert!(rising.greatest_fall(false).is_some_and(|fall| fall.share < 0.0));
        assert_eq!(Series::default().greatest_fall(true), None);
    }

    #[test]
    fn ratios_are_of_the_same_round() {
        let found = series(&[(1, [10.0, 20.0]), (2, [20.0, 20.0])]);
        assert_eq!(found.over_first(), series(&[(1, [1.0, 1.0]), (2, [2.0, 1.0])]));
        let other = Series(vec![(2, vec![(1, 5.0)])]);
        let ratio = found.combine(&other, |a, b| a / b);
        assert_eq!(ratio, Series(vec![(2, vec![(1, 4.0)])]));
        assert_eq!(ratio.range(), Some(((2, 4.0), (2, 4.0))));
    }

    #[test]
    fn the_best_is_chosen_at_each_value() {
        let [a, b] = [series(&[(1, [1.0, 1.0]), (2, [5.0, 5.0])]), series(&[(1, [2.0, 2.0])])];
        let best = Series::best(&[&a, &b]);
        assert_eq!(best.medians(), [(1, 2.0), (2, 5.0)]);
    }

    #[test]
    fn few_repeats_show_their_range_and_many_an_interval() {
        let of = |values: &[f64]| Series(vec![(0, values.iter().copied().enumerate().collect())]);
        assert_eq!(of(&[3.0, 1.0, 2.0]).text(), "2.00 (range 1.00 to 3.00)");
        assert_eq!(of(&[2.0, 2.0]).text(), "2.00");
        assert_eq!(of(&[]).text(), "-");
        let many: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(of(&many).text(), "10.5 (6.00 to 15.0)");
    }
}
