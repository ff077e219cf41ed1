//! Runs by setting, and their medians and ratios.

use luc_harness::report::{self, number};
use luc_stats::median;

/// All runs under one setting, by places of the files.
#[derive(Debug, Clone)]
pub(super) struct Row<R> {
    pub(super) name: String,
    pub(super) is_ours: bool,
    pub(super) runs: Vec<R>,
}

impl<R> Row<R> {
    pub(super) fn figures(&self, of: impl Fn(&R) -> f64) -> Vec<f64> {
        self.runs.iter().map(of).collect()
    }

    /// Median of a figure; `None` without runs.
    pub(super) fn median(&self, of: impl Fn(&R) -> f64) -> Option<f64> {
        median(&self.figures(of))
    }

    /// Median of a comparison with another setting, run by run. `None` if a run lacks it.
    pub(super) fn against(&self, other: &Self, of: impl Fn(&R, &R) -> Option<f64>) -> Option<f64> {
        let pairs = self.runs.iter().zip(&other.runs);
        let all: Option<Vec<f64>> = pairs.map(|(own, other)| of(own, other)).collect();
        median(&all?)
    }

    /// Median of a figure over another setting's, run by run.
    pub(super) fn ratio(&self, other: &Self, of: impl Fn(&R) -> f64) -> Option<f64> {
        self.against(other, |own, other| Some(of(own) / of(other)))
    }
}

/// The rows of a table, in the order in which their settings came.
#[derive(Debug, Clone)]
pub(super) struct Rows<R>(Vec<Row<R>>);

impl<R> Rows<R> {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn add(&mut self, name: &str, is_ours: bool, run: R) {
        match self.0.iter_mut().find(|row| row.name == name) {
            Some(row) => row.runs.push(run),
            None => self.0.push(Row { name: name.to_owned(), is_ours, runs: vec![run] }),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Row<R>> {
        self.0.iter()
    }

    pub(super) fn get(&self, name: &str) -> Option<&Row<R>> {
        self.iter().find(|row| row.name == name)
    }

    pub(super) fn rivals(&self) -> impl Iterator<Item = &Row<R>> {
        self.iter().filter(|row| !row.is_ours)
    }

    pub(super) fn ours(&self) -> impl Iterator<Item = &Row<R>> {
        self.iter().filter(|row| row.is_ours)
    }
}

/// Median of runs with its interval or range; of one run its figure.
pub(super) fn spread(values: &[f64]) -> String {
    match values {
        [value] => number(*value),
        values => report::spread(values),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_the_same_places() {
        let mut rows = Rows::new();
        for (name, is_ours, run) in [
            ("a", false, 1.0),
            ("b", true, 4.0),
            ("a", false, 10.0),
            ("b", true, 20.0),
            ("a", false, 2.0),
            ("b", true, 6.0),
        ] {
            rows.add(name, is_ours, run);
        }
        let (a, b) = (rows.get("a").expect("a"), rows.get("b").expect("b"));
        assert_eq!(b.ratio(a, |run| *run), Some(3.0));
        assert_eq!(a.median(|run| *run), Some(2.0));
        assert_eq!(b.against(a, |own, _| (*own < 20.0).then_some(1.0)), None);
        assert_eq!(rows.rivals().count() + rows.ours().count(), 2);
        assert_eq!(spread(&[1.5]), "1.50");
    }
}
