//! One partition's index, in memory, and what can be asked of it.

use luc_twin_truth::MAX_HITS;
use tantivy::collector::TopDocs;
use tantivy::directory::RamDirectory;
use tantivy::query::{Bm25StatisticsProvider, BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{
    Field, IndexRecordOption, STORED, Schema, TextFieldIndexing, TextOptions, Value as _,
};
use tantivy::{
    DocAddress, DocId, Index, ReloadPolicy, Score, Searcher, SegmentReader, TantivyDocument, Term,
};

use crate::corpus::{Corpus, Statistics};
use crate::error::TwinError;
use crate::hit::Hit;

/// What the index writer may fill before it writes; the corpus is far smaller.
const WRITER_BYTES: usize = 64 << 20;
/// Splits at white space.
const TOKENIZER: &str = "whitespace";
/// Bytes of a text before and after the first word of the query.
const CONTEXT_BYTES: usize = 40;

/// A partition's index. It has no threads of its own.
#[derive(Debug)]
pub struct Engine {
    searcher: Searcher,
    field: Field,
    statistics: Statistics,
    /// The number in the corpus of each document here.
    documents: Vec<u32>,
}

impl Engine {
    /// Makes the index of the documents that `partition` owns.
    ///
    /// # Errors
    /// [`TwinError::Option`] for a corpus that cannot be; [`TwinError::Engine`].
    pub fn build(corpus: &Corpus, partition: usize) -> Result<Self, TwinError> {
        corpus.check()?;
        let mut schema = Schema::builder();
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(TOKENIZER)
            .set_index_option(IndexRecordOption::WithFreqs);
        let options = TextOptions::default().set_indexing_options(indexing) | STORED;
        let field = schema.add_text_field("text", options);
        let mut writer = Index::builder()
            .schema(schema.build())
            .single_segment_index_writer(RamDirectory::create(), WRITER_BYTES)?;
        let documents: Vec<u32> =
            (0..corpus.documents).filter(|&document| corpus.owner(document) == partition).collect();
        for &document in &documents {
            let mut row = TantivyDocument::new();
            row.add_text(field, text(&corpus.document(document)));
            writer.add_document(row)?;
        }
        let index = writer.finalize()?;
        // With another policy the reader has a thread that watches for commits.
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        Ok(Self {
            searcher: reader.searcher(),
            field,
            statistics: Statistics::of(corpus),
            documents,
        })
    }

    /// How many documents it has.
    #[must_use]
    pub fn documents(&self) -> usize {
        self.documents.len()
    }

    /// The best documents that have one of the words, best first, scored by BM25 with the statistics of the whole
    /// corpus: a document has the same score in whichever partition it is.
    ///
    /// # Errors
    /// [`TwinError::Engine`].
    pub fn search(&self, words: &[u32], most: usize) -> Result<Vec<Hit>, TwinError> {
        let clause = |word: &u32| -> (Occur, Box<dyn Query>) {
            let term = Term::from_field_text(self.field, &word_text(*word));
            let query = TermQuery::new(term, IndexRecordOption::WithFreqs);
            (Occur::Should, Box::new(query))
        };
        let query = BooleanQuery::new(words.iter().map(clause).collect());
        // What skips blocks of documents by their highest score takes that for the partition's own statistics, and
        // could skip too many. A score that goes through a function skips none.
        let collector = TopDocs::with_limit(most.clamp(1, MAX_HITS))
            .tweak_score(|_: &SegmentReader| |_: DocId, score: Score| score);
        let found = self.searcher.search_with_statistics_provider(&query, &collector, self)?;
        let hit = |(score, at): (Score, DocAddress)| {
            Some(Hit {
                document: *self.documents.get(at.doc_id as usize)?,
                score_bits: score.to_bits(),
            })
        };
        Ok(found.into_iter().filter_map(hit).collect())
    }

    /// A part of each document around the first of the words that is in it; nothing for documents of others.
    ///
    /// # Errors
    /// [`TwinError::Engine`].
    pub fn snippets(&self, words: &[u32], documents: &[u32]) -> Result<Vec<Vec<u8>>, TwinError> {
        let each = documents.iter();
        each.map(|document| self.snippet(words, *document)).collect()
    }

    fn snippet(&self, words: &[u32], document: u32) -> Result<Vec<u8>, TwinError> {
        let Ok(at) = self.documents.binary_search(&document) else {
            return Ok(Vec::new());
        };
        let row: TantivyDocument = self.searcher.doc(DocAddress::new(0, at as u32))?;
        let text = row.get_first(self.field).and_then(|value| value.as_str());
        let text = text.unwrap_or_default();
        let at = words.iter().filter_map(|word| find(text, *word)).min();
        let at = at.unwrap_or_default();
        let range = at.saturating_sub(CONTEXT_BYTES)..text.len().min(at + CONTEXT_BYTES);
        Ok(text.as_bytes()[range].to_vec())
    }
}

impl Bm25StatisticsProvider for Engine {
    fn total_num_tokens(&self, _field: Field) -> tantivy::Result<u64> {
        Ok(self.statistics.words)
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.statistics.documents)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let value = term.value();
        let word = value.as_str().and_then(word_number);
        let frequency = word.and_then(|word| self.statistics.frequencies.get(word));
        Ok(frequency.copied().unwrap_or_default().into())
    }
}

fn word_text(word: u32) -> String {
    format!("w{word}")
}

fn word_number(text: &str) -> Option<usize> {
    text.strip_prefix('w')?.parse().ok()
}

fn text(words: &[u32]) -> String {
    let words: Vec<String> = words.iter().map(|word| word_text(*word)).collect();
    words.join(" ")
}

/// Where a word begins in a text.
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
                let expected = one.search(&words, 10).expect("searched");
                is_any_found |= !expected.is_empty();
                let found: Vec<Vec<Hit>> =
                    parts.iter().map(|part| part.search(&words, 10).expect("searched")).collect();
                let merged = merge(&found, 10);
                let hits: Vec<Hit> = merged.iter().map(|(_, hit)| *hit).collect();
                assert_eq!(hits, expected, "seed {seed}, {words:?}");
                for (partition, hit) in merged {
                    let [here, all] = [&parts[partition], &one]
                        .map(|part| part.snippets(&words, &[hit.document]).expect("stored"));
                    assert_eq!(here, all);
                    let text = String::from_utf8_lossy(&here[0]).into_owned();
                    assert!(words.iter().any(|word| find(&text, *word).is_some()), "{text}");
                }
            }
            assert!(is_any_found);
        }
    }

    #[test]
    fn nobody_has_snippets_of_others() {
        let corpus = Corpus { seed: 1, documents: 100, vocabulary: 100, weights: vec![1, 1] };
        let engine = Engine::build(&corpus, 0).expect("built");
        let other = (0..100).find(|document| corpus.owner(*document) == 1).expect("of the other");
        let none: Vec<Vec<u8>> = vec![vec![], vec![]];
        assert_eq!(engine.snippets(&[0], &[other, 1_000]).expect("none"), none);
    }
}
