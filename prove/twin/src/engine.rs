//! One partition's index, in memory.

use std::collections::BinaryHeap;

use luc_twin_truth::MAX_HITS;

use crate::corpus::{Corpus, Statistics};
use crate::error::TwinError;
use crate::hit::Hit;
use crate::postings::{Posting, Postings};

/// Parameters of BM25: saturation by a word's count, and penalty for a document's length.
const BM25_K1: f32 = 1.2;
const BM25_B: f32 = 0.75;
/// Bytes of a snippet before and after the first word of the query.
const CONTEXT_BYTES: usize = 40;

/// Index of a partition. It has no threads of its own.
#[derive(Debug)]
pub struct Engine {
    statistics: Statistics,
    /// The documents of each word, by its rank.
    postings: Vec<Postings>,
    /// The documents, in the order of the corpus.
    documents: Vec<Document>,
}

#[derive(Debug)]
struct Document {
    number: u32,
    length: u32,
    text: String,
}

impl Engine {
    /// Makes the index of the documents that `partition` owns.
    ///
    /// # Errors
    /// [`TwinError::Option`] for a corpus that cannot be.
    pub fn build(corpus: &Corpus, partition: usize) -> Result<Self, TwinError> {
        corpus.check()?;
        let mut postings = vec![Postings::default(); corpus.vocabulary as usize];
        let mut documents = Vec::new();
        for number in (0..corpus.documents).filter(|&number| corpus.owner(number) == partition) {
            let mut words = corpus.document(number);
            let (index, length) = (documents.len() as u32, words.len() as u32);
            documents.push(Document { number, length, text: text(&words) });
            words.sort_unstable();
            for same in words.chunk_by(|a, b| a == b) {
                let count = same.len() as u32;
                postings[same[0] as usize].push(Posting { index, count });
            }
        }
        Ok(Self { statistics: Statistics::of(corpus), postings, documents })
    }

    /// Number of documents in the partition.
    #[must_use]
    pub fn documents(&self) -> usize {
        self.documents.len()
    }

    /// Returns the best documents that have one of the words, best first.
    ///
    /// They are scored by BM25 with the statistics of the whole corpus. So a document has the same score in every
    /// partition.
    #[must_use]
    pub fn search(&self, words: &[u32], most: usize) -> Vec<Hit> {
        let most = most.clamp(1, MAX_HITS);
        let list = |word: &u32| {
            let postings = self.postings.get(*word as usize)?;
            Some((self.weight(*word), postings.iter().peekable()))
        };
        let mut lists: Vec<_> = words.iter().filter_map(list).collect();
        // The worst of the best so far is the heap's greatest.
        let mut best = BinaryHeap::with_capacity(most + 1);
        while let Some(index) =
            lists.iter_mut().filter_map(|(_, list)| Some(list.peek()?.index)).min()
        {
            let document = &self.documents[index as usize];
            let norm = self.norm(document);
            let mut score = 0.0;
            for (weight, list) in &mut lists {
                if let Some(posting) = list.next_if(|posting| posting.index == index) {
                    score += term_score(*weight, posting.count, norm);
                }
            }
            best.push(Hit { document: document.number, score_bits: score.to_bits() });
            if best.len() > most {
                best.pop();
            }
        }
        best.into_sorted_vec()
    }

    /// Returns a word's weight: rare words of the corpus weigh more.
    fn weight(&self, word: u32) -> f32 {
        let frequency = self.statistics.frequencies.get(word as usize);
        let having = frequency.copied().unwrap_or_default() as f32;
        let lacking = self.statistics.documents as f32 - having;
        (1.0 + (lacking + 0.5) / (having + 0.5)).ln() * (1.0 + BM25_K1)
    }

    fn norm(&self, document: &Document) -> f32 {
        let mean_length = self.statistics.words as f32 / self.statistics.documents as f32;
        BM25_K1 * (1.0 - BM25_B + BM25_B * document.length as f32 / mean_length)
    }

    /// Returns a part of each document around the first of the words that is in it. It is empty for documents of other
    /// partitions.
    #[must_use]
    pub fn snippets(&self, words: &[u32], documents: &[u32]) -> Vec<Vec<u8>> {
        documents.iter().map(|document| self.snippet(words, *document)).collect()
    }

    fn snippet(&self, words: &[u32], number: u32) -> Vec<u8> {
        let Ok(at) = self.documents.binary_search_by_key(&number, |document| document.number)
        else {
            return Vec::new();
        };
        let text = &self.documents[at].text;
        let at = words.iter().filter_map(|word| find(text, *word)).min().unwrap_or_default();
        let range = at.saturating_sub(CONTEXT_BYTES)..text.len().min(at + CONTEXT_BYTES);
        text.as_bytes()[range].to_vec()
    }
}

/// A word's part of a document's score.
fn term_score(weight: f32, count: u32, norm: f32) -> f32 {
    weight * count as f32 / (count as f32 + norm)
}

fn word_text(word: u32) -> String {
    format!("w{word}")
}

fn text(words: &[u32]) -> String {
    let words: Vec<String> = words.iter().map(|word| word_text(*word)).collect();
    words.join(" ")
}

/// Offset of a word in a text.
fn find(text: &str, word: u32) -> Option<usize> {
    let word = word_text(word);
    let mut at = 0;
    for part in text.split(' ') {
        if part == word {
            return Some(at);
        }
        at += part.len() + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hit::merge;

    #[test]
    fn partitions_together_answer_as_one_index() {
        for (seed, weights) in [(1, vec![1, 1]), (2, vec![1, 1, 1]), (3, vec![1, 7])] {
            let whole = Corpus { seed, documents: 3_000, vocabulary: 4_000, weights: vec![1] };
            let count = weights.len();
            let parted = Corpus { weights, ..whole.clone() };
            let one = Engine::build(&whole, 0).expect("built");
            let parts: Vec<Engine> = (0..count)
                .map(|partition| Engine::build(&parted, partition).expect("built"))
                .collect();
            assert_eq!(parts.iter().map(Engine::documents).sum::<usize>(), 3_000);
            let mut is_any_found = false;
            for sequence in 0..300 {
                let words = whole.query(0, sequence);
                let expected = one.search(&words, 10);
                is_any_found |= !expected.is_empty();
                let found: Vec<Vec<Hit>> =
                    parts.iter().map(|part| part.search(&words, 10)).collect();
                let merged = merge(&found, 10);
                let hits: Vec<Hit> = merged.iter().map(|(_, hit)| *hit).collect();
                assert_eq!(hits, expected, "seed {seed}, {words:?}");
                for (partition, hit) in merged {
                    let [here, all] = [&parts[partition], &one]
                        .map(|part| part.snippets(&words, &[hit.document]));
                    assert_eq!(here, all);
                    let text = String::from_utf8_lossy(&here[0]).into_owned();
                    assert!(words.iter().any(|word| find(&text, *word).is_some()), "{text}");
                }
            }
            assert!(is_any_found);
        }
    }

    #[test]
    fn a_search_finds_what_scoring_each_document_finds() {
        let corpus = Corpus { seed: 4, documents: 500, vocabulary: 300, weights: vec![1] };
        let engine = Engine::build(&corpus, 0).expect("built");
        let documents: Vec<Vec<u32>> = (0..500).map(|number| corpus.document(number)).collect();
        for words in (0..200).map(|sequence| corpus.query(0, sequence)).chain([vec![], vec![300]]) {
            let hit = |number: u32| {
                let of_document = &documents[number as usize];
                let norm = engine.norm(&engine.documents[number as usize]);
                let term = |word: &u32| {
                    let count = of_document.iter().filter(|other| *other == word).count();
                    (count > 0).then(|| term_score(engine.weight(*word), count as u32, norm))
                };
                let terms: Vec<f32> = words.iter().filter_map(term).collect();
                let score_bits = terms.iter().fold(0.0, |sum, term| sum + term).to_bits();
                (!terms.is_empty()).then_some(Hit { document: number, score_bits })
            };
            let mut expected: Vec<Hit> = (0..500).filter_map(hit).collect();
            expected.sort_unstable();
            expected.truncate(7);
            assert_eq!(engine.search(&words, 7), expected, "{words:?}");
        }
        // The rarer word weighs more, and less so in a longer document.
        assert!(
            engine.weight(200) > engine.weight(0)
                && term_score(1.0, 1, 0.5) > term_score(1.0, 1, 2.0)
        );
    }

    #[test]
    fn nobody_has_snippets_of_others() {
        let corpus = Corpus { seed: 1, documents: 100, vocabulary: 100, weights: vec![1, 1] };
        let engine = Engine::build(&corpus, 0).expect("built");
        let other = (0..100).find(|document| corpus.owner(*document) == 1).expect("of the other");
        let none: Vec<Vec<u8>> = vec![vec![], vec![]];
        assert_eq!(engine.snippets(&[0], &[other, 1_000]), none);
    }
}
