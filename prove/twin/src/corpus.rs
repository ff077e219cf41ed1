//! The generated corpus: documents whose words follow Zipf's law, and queries for them.
//!
//! Each document follows from the seed and its number alone. So every process can make any part of the corpus, and
//! knows the statistics of the whole.

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rand_distr::Zipf;

use crate::error::TwinError;

/// Range of the number of words of a document.
const DOCUMENT_WORDS: [usize; 2] = [20, 120];
/// The exponent of Zipf's law: natural languages have about 1.
const ZIPF_EXPONENT: f64 = 1.0;
/// Streams of the random numbers.
const DOCUMENT_STREAM: u64 = 1 << 40;
const OWNER_STREAM: u64 = 2 << 40;
const QUERY_STREAM: u64 = 3 << 40;

#[derive(Debug, Clone, PartialEq)]
pub struct Corpus {
    /// Seed of all documents and queries.
    pub seed: u64,
    pub documents: u32,
    pub vocabulary: u32,
    pub weights: Vec<u32>,
}

impl Corpus {
    /// # Errors
    /// [`TwinError::Option`] for a corpus without documents, words or partitions.
    pub fn check(&self) -> Result<(), TwinError> {
        let is_possible = self.documents > 0
            && self.vocabulary > 0
            && !self.weights.is_empty()
            && self.weights.iter().all(|weight| *weight > 0);
        if is_possible {
            return Ok(());
        }
        Err(TwinError::Option {
            what: format!(
                "a corpus of {} documents of {} words in partitions of weights {:?}",
                self.documents, self.vocabulary, self.weights
            ),
            why: "each must be at least 1".into(),
        })
    }

    /// Returns the words of a document as ranks: 0 is the most frequent word.
    #[must_use]
    pub fn document(&self, document: u32) -> Vec<u32> {
        let mut random = self.random(DOCUMENT_STREAM + u64::from(document));
        let count = random.random_range(DOCUMENT_WORDS[0]..=DOCUMENT_WORDS[1]);
        (0..count).map(|_| self.word(&mut random)).collect()
    }

    /// Returns the partition that has a document.
    #[must_use]
    pub fn owner(&self, document: u32) -> usize {
        let total = self.weights.iter().sum();
        let mut drawn = self.random(OWNER_STREAM + u64::from(document)).random_range(0..total);
        let owner = self.weights.iter().position(|&weight| {
            let is_here = drawn < weight;
            drawn = drawn.saturating_sub(weight);
            is_here
        });
        owner.unwrap_or_default()
    }

    /// Returns the words of a client's query: one, or two different ones.
    ///
    /// The sum of two scores does not depend on their order, so partitions give the same bits as the whole.
    #[must_use]
    pub fn query(&self, client: u32, sequence: u32) -> Vec<u32> {
        let number = (u64::from(client) << 24) + u64::from(sequence);
        let mut random = self.random(QUERY_STREAM + number);
        let mut words = vec![self.word(&mut random), self.word(&mut random)];
        words.dedup();
        words
    }

    fn word(&self, random: &mut ChaCha8Rng) -> u32 {
        let Ok(zipf) = Zipf::new(f64::from(self.vocabulary), ZIPF_EXPONENT) else {
            return 0; // `check` refuses an empty vocabulary.
        };
        let rank: f64 = random.sample(zipf);
        rank as u32 - 1
    }

    fn random(&self, stream: u64) -> ChaCha8Rng {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream(stream);
        random
    }
}

/// Statistics of the whole corpus, on which scores depend.
#[derive(Debug)]
pub(crate) struct Statistics {
    pub(crate) documents: u64,
    pub(crate) words: u64,
    /// Number of documents that have a word, by rank.
    pub(crate) frequencies: Vec<u32>,
}

impl Statistics {
    /// Counts all documents of a corpus.
    pub(crate) fn of(corpus: &Corpus) -> Self {
        let mut statistics = Self {
            documents: corpus.documents.into(),
            words: 0,
            frequencies: vec![0; corpus.vocabulary as usize],
        };
        for document in 0..corpus.documents {
            let mut words = corpus.document(document);
            statistics.words += words.len() as u64;
            words.sort_unstable();
            words.dedup();
            for word in words {
                if let Some(frequency) = statistics.frequencies.get_mut(word as usize) {
                    *frequency += 1;
                }
            }
        }
        statistics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus(seed: u64) -> Corpus {
        Corpus { seed, documents: 2_000, vocabulary: 5_000, weights: vec![1, 1, 6] }
    }

    #[test]
    fn words_follow_zipf_and_partitions_their_weights() {
        let corpus = corpus(7);
        let statistics = Statistics::of(&corpus);
        let often = |rank: usize| statistics.frequencies[rank];
        assert!(often(0) > 2 * often(20), "{} {}", often(0), often(20));
        assert!(often(20) > 2 * often(500), "{} {}", often(20), often(500));
        let mut owned = [0_u32; 3];
        for document in 0..corpus.documents {
            owned[corpus.owner(document)] += 1;
        }
        // 250, 250 and 1,500 are expected; the standard deviations are 15 and 19.
        assert!(owned[0].abs_diff(250) < 90 && owned[1].abs_diff(250) < 90);
    }

    #[test]
    fn a_seed_is_a_corpus() {
        let (one, same, other) = (corpus(1), corpus(1), corpus(2));
        let of = |corpus: &Corpus| (corpus.document(5), corpus.query(3, 4));
        assert_eq!(of(&one), of(&same));
        assert_ne!(of(&one), of(&other));
        assert_ne!(one.document(5), one.document(6));
    }

    #[test]
    fn an_empty_corpus_is_refused() {
        for broken in [
            Corpus { documents: 0, ..corpus(1) },
            Corpus { vocabulary: 0, ..corpus(1) },
            Corpus { weights: vec![], ..corpus(1) },
            Corpus { weights: vec![1, 0], ..corpus(1) },
        ] {
            let said = broken.check().expect_err("refused").to_string();
            assert!(said.contains("at least 1"), "{said}");
        }
    }
}
