//! Hits of a search, and their order.

use std::cmp::Ordering;

/// A document that a search found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// Number in the whole corpus.
    pub document: u32,
    /// Bits of its score, an `f32`.
    pub score_bits: u32,
}

impl Ord for Hit {
    /// Better hits first: by score, and of the same score the first of the corpus.
    fn cmp(&self, other: &Self) -> Ordering {
        let [mine, others] = [self, other].map(|hit| f32::from_bits(hit.score_bits));
        others.total_cmp(&mine).then(self.document.cmp(&other.document))
    }
}

impl PartialOrd for Hit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Merges the partitions' hits and returns the best `most`, best first, each with its partition.
#[must_use]
pub(crate) fn merge(found: &[Vec<Hit>], most: usize) -> Vec<(usize, Hit)> {
    let each = found.iter().enumerate();
    let mut all: Vec<(usize, Hit)> =
        each.flat_map(|(partition, hits)| hits.iter().map(move |hit| (partition, *hit))).collect();
    all.sort_by_key(|(_, hit)| *hit);
    all.truncate(most);
    all
}
