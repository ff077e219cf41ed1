//! What was measured of a server, as candidates to select from.

use luc_stats::{median, paired_ratios};
use luc_sweep::selection::{Candidate, Selection, Terms, select};

use super::super::guests::Results;
use super::cells::{CONFIGS, Config, DEFAULT, Group, LOADS, Load, SEEDS};
use super::guest::Cell;

/// A server's candidates and what was selected from them.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) load: Load,
    pub(super) candidates: Vec<Candidate>,
    /// `None` with too few rounds.
    pub(super) selection: Option<Selection>,
}

/// A ratio, round by round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ratio {
    pub(super) median: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Figures {
    /// Of each server of which something is there.
    pub(super) fn all(results: &Results<Cell>) -> Vec<Self> {
        let figures = LOADS.map(|load| Self::of(results, load));
        let measured = |figures: &Self| !figures.candidates.is_empty();
        figures.into_iter().filter(measured).collect()
    }

    fn of(results: &Results<Cell>, load: Load) -> Self {
        let candidates = CONFIGS.into_iter().filter_map(|config| {
            // By round: after the first that is missing the others would be taken for another.
            let rates: Vec<f64> = SEEDS
                .iter()
                .map_while(|&seed| rate(results, load, seed, config))
                .collect();
            (!rates.is_empty()).then(|| candidate(config, rates))
        });
        Self::from(load, candidates.collect())
    }

    /// Of candidates.
    pub(super) fn from(load: Load, candidates: Vec<Candidate>) -> Self {
        let selection = select(&candidates, Terms::default()).ok();
        Self {
            load,
            candidates,
            selection,
        }
    }

    /// A candidate.
    pub(super) fn find(&self, file_system: &str, options: &str) -> Option<&Candidate> {
        self.candidates
            .iter()
            .find(|candidate| candidate.file_system == file_system && candidate.options == options)
    }

    /// What options give over the file system's default, round by round.
    pub(super) fn gain(&self, file_system: &str, options: &str) -> Option<Ratio> {
        let with = self.find(file_system, options)?;
        ratio(with, self.find(file_system, DEFAULT)?)
    }

    /// The safe candidate with the highest median.
    pub(super) fn best(&self) -> Option<&Candidate> {
        let safe = self.candidates.iter().filter(|one| one.danger.is_none());
        safe.max_by(|a, b| middle(a).total_cmp(&middle(b)))
    }

    /// Safe candidates that are the best or not shown to be worse.
    pub(super) fn among_the_best(&self) -> Vec<&Candidate> {
        let Some(selection) = &self.selection else {
            return Vec::new();
        };
        let safe = |at: &usize| self.candidates[*at].danger.is_none();
        (0..self.candidates.len())
            .filter(safe)
            .filter(|&at| selection.rate.is_among_the_best(at))
            .map(|at| &self.candidates[at])
            .collect()
    }

    /// The least and the greatest of what the best gives over the safe defaults of `file_systems`, itself left out.
    pub(super) fn over_defaults(&self, file_systems: &[&str]) -> Option<(f64, f64)> {
        let best = self.best()?;
        let defaults = self.candidates.iter().filter(|one| {
            one.is_default && one.name() != best.name() && file_systems.contains(&&*one.file_system)
        });
        let ratios = defaults.filter_map(|default| Some(ratio(best, default)?.median));
        ratios.fold(None, |range: Option<(f64, f64)>, ratio| {
            let (low, high) = range.unwrap_or((ratio, ratio));
            Some((low.min(ratio), high.max(ratio)))
        })
    }
}

/// The median of a candidate's rounds.
pub(super) fn middle(candidate: &Candidate) -> f64 {
    median(&candidate.rates).unwrap_or(f64::NEG_INFINITY)
}

/// One over another in the rounds that both have.
pub(super) fn ratio(with: &Candidate, without: &Candidate) -> Option<Ratio> {
    let rounds = with.rates.len().min(without.rates.len());
    let ratios = paired_ratios(&with.rates[..rounds], &without.rates[..rounds]).ok()?;
    Some(Ratio {
        median: median(&ratios)?,
        low: ratios.iter().copied().fold(f64::INFINITY, f64::min),
        high: ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    })
}

fn rate(results: &Results<Cell>, load: Load, seed: u64, config: Config) -> Option<f64> {
    let groups = Group::of(load, seed);
    let cells = groups
        .iter()
        .filter_map(|group| results.cells(&group.name()));
    let mut found = cells
        .flatten()
        .filter(|cell| cell.file_system == config.file_system && cell.options == config.options);
    Some(found.next()?.rate)
}

fn candidate(config: Config, rates: Vec<f64>) -> Candidate {
    Candidate {
        file_system: config.file_system.to_owned(),
        options: config.options.to_owned(),
        is_default: config.is_default(),
        danger: config.danger.map(str::to_owned),
        rates,
        per_joule: Vec::new(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Figures of a server with the rates of `(file system, options, rate)`, four rounds a hair apart.
    pub(in super::super) fn figures(load: Load, rates: &[(&str, &str, f64)]) -> Figures {
        let candidates = rates.iter().map(|(file_system, options, rate)| {
            let config = CONFIGS
                .into_iter()
                .find(|config| config.file_system == *file_system && config.options == *options)
                .expect("known");
            candidate(
                config,
                [1.0, 1.0001, 0.9999, 1.0].map(|by| by * rate).to_vec(),
            )
        });
        Figures::from(load, candidates.collect())
    }

    #[test]
    fn the_best_is_safe_and_compared_with_defaults() {
        let found = figures(
            LOADS[0],
            &[
                ("ext2", DEFAULT, 500.0),
                ("ext3", DEFAULT, 100.0),
                ("xfs", DEFAULT, 160.0),
                ("xfs", "1K inodes", 200.0),
            ],
        );
        assert_eq!(
            found.best().map(Candidate::name).as_deref(),
            Some("xfs 1K inodes")
        );
        let (low, high) = found.over_defaults(&["ext3", "xfs"]).expect("two defaults");
        assert!((low - 1.25).abs() < 1e-3 && (high - 2.0).abs() < 1e-3);
        let gain = found.gain("xfs", "1K inodes").expect("both there");
        assert!((gain.median - 1.25).abs() < 1e-3, "{gain:?}");
        assert_eq!(found.gain("ext3", "noatime"), None);
        let best: Vec<String> = found
            .among_the_best()
            .iter()
            .map(|one| one.name())
            .collect();
        assert_eq!(best, ["xfs 1K inodes"]);
    }
}
