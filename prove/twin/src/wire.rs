//! The messages, and their encoding.
//!
//! A message is its length without this field (4 bytes), the request's id (8), the parent request's id (8; 0 if
//! none), its kind (1), and its body. All numbers are little endian. The ids serve the truth alone: a tool under test
//! never looks at them.

use luc_twin_truth::{MAX_HITS, MessageKind};

use crate::hit::Hit;

pub(crate) const LENGTH_BYTES: usize = 4;
/// Bytes between the length and the body.
const HEAD_BYTES: usize = 8 + 8 + 1;
/// Maximum length of a message, without its length field.
const MAX_BYTES: usize = 1 << 20;
/// Maximum number of words in a query.
const MAX_WORDS: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Id of the request; its answer has the same.
    pub(crate) request: u64,
    /// Id of the request that this one is part of; 0 for a client's.
    pub(crate) parent: u64,
    pub(crate) body: MessageBody,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MessageBody {
    /// Client to front end: asks for the best `hits` documents for these words.
    Query { words: Vec<u32>, hits: u8 },
    /// Front end to client: the documents, best first, each with its snippet.
    Answer { hits: Vec<Hit>, snippets: Vec<Vec<u8>> },
    /// Front end to back end: the same query for its partition.
    Search { words: Vec<u32>, hits: u8 },
    /// Back end to front end: the best documents of the partition.
    Found { hits: Vec<Hit> },
    /// Front end to back end: asks for snippets of some of its documents.
    Snippets { words: Vec<u32>, documents: Vec<u32> },
    /// Back end to front end: snippets in the order of the documents.
    Texts { snippets: Vec<Vec<u8>> },
}

impl MessageBody {
    pub(crate) fn kind(&self) -> MessageKind {
        match self {
            Self::Query { .. } => MessageKind::Query,
            Self::Answer { .. } => MessageKind::Answer,
            Self::Search { .. } => MessageKind::Search,
            Self::Found { .. } => MessageKind::Found,
            Self::Snippets { .. } => MessageKind::Snippets,
            Self::Texts { .. } => MessageKind::Texts,
        }
    }
}

impl Frame {
    /// Encodes the message, with its length before it.
    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.clear();
        bytes.extend([0; LENGTH_BYTES]);
        bytes.extend(self.request.to_le_bytes());
        bytes.extend(self.parent.to_le_bytes());
        bytes.push(code(self.body.kind()));
        match &self.body {
            MessageBody::Query { words, hits } | MessageBody::Search { words, hits } => {
                bytes.push(*hits);
                put_numbers(bytes, words);
            }
            MessageBody::Answer { hits, snippets } => {
                put_hits(bytes, hits);
                put_texts(bytes, snippets);
            }
            MessageBody::Found { hits } => put_hits(bytes, hits),
            MessageBody::Snippets { words, documents } => {
                put_numbers(bytes, words);
                put_numbers(bytes, documents);
            }
            MessageBody::Texts { snippets } => put_texts(bytes, snippets),
        }
        let length = bytes.len() - LENGTH_BYTES;
        debug_assert!(length <= MAX_BYTES, "the texts are short");
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        bytes[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    }

    /// Decodes a message from the bytes after its length.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let mut rest = Rest(bytes);
        let (request, parent) = (rest.u64()?, rest.u64()?);
        let body = match rest.u8()? {
            1 => {
                let hits = rest.u8()?;
                let words = rest.numbers(MAX_WORDS)?;
                MessageBody::Query { words, hits }
            }
            2 => MessageBody::Answer { hits: rest.hits()?, snippets: rest.texts()? },
            3 => {
                let hits = rest.u8()?;
                let words = rest.numbers(MAX_WORDS)?;
                MessageBody::Search { words, hits }
            }
            4 => MessageBody::Found { hits: rest.hits()? },
            5 => MessageBody::Snippets {
                words: rest.numbers(MAX_WORDS)?,
                documents: rest.numbers(MAX_HITS)?,
            },
            6 => MessageBody::Texts { snippets: rest.texts()? },
            _ => return Err("an unknown kind"),
        };
        if !rest.0.is_empty() {
            return Err("bytes after its end");
        }
        Ok(Self { request, parent, body })
    }
}

/// Returns the length that a message's first bytes state; `None` if they are too few.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn length(bytes: &[u8]) -> Result<Option<usize>, &'static str> {
    let Some(length) = bytes.first_chunk::<LENGTH_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_le_bytes(*length) as usize;
    if (HEAD_BYTES..=MAX_BYTES).contains(&length) {
        Ok(Some(length))
    } else {
        Err("a length that no message has")
    }
}

fn code(kind: MessageKind) -> u8 {
    match kind {
        MessageKind::Query => 1,
        MessageKind::Answer => 2,
        MessageKind::Search => 3,
        MessageKind::Found => 4,
        MessageKind::Snippets => 5,
        MessageKind::Texts => 6,
    }
}

fn put_count(bytes: &mut Vec<u8>, count: usize) {
    bytes.extend(u16::try_from(count).unwrap_or(u16::MAX).to_le_bytes());
}

fn put_numbers(bytes: &mut Vec<u8>, numbers: &[u32]) {
    put_count(bytes, numbers.len());
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

fn put_hits(bytes: &mut Vec<u8>, hits: &[Hit]) {
    put_count(bytes, hits.len());
    for hit in hits {
        bytes.extend(hit.document.to_le_bytes());
        bytes.extend(hit.score_bits.to_le_bytes());
    }
}

fn put_texts(bytes: &mut Vec<u8>, texts: &[Vec<u8>]) {
    put_count(bytes, texts.len());
    for text in texts {
        put_count(bytes, text.len());
        bytes.extend(text);
    }
}

/// Bytes that are not read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or("it is too short")?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        let (taken, rest) = self.0.split_first_chunk().ok_or("it is too short")?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u8(&mut self) -> Result<u8, &'static str> {
        self.array().map(u8::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, &'static str> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, &'static str> {
        self.array().map(u64::from_le_bytes)
    }

    fn count(&mut self, most: usize) -> Result<usize, &'static str> {
        let count = usize::from(self.array().map(u16::from_le_bytes)?);
        (count <= most).then_some(count).ok_or("too many parts")
    }

    fn numbers(&mut self, most: usize) -> Result<Vec<u32>, &'static str> {
        let count = self.count(most)?;
        (0..count).map(|_| self.u32()).collect()
    }

    fn hits(&mut self) -> Result<Vec<Hit>, &'static str> {
        let count = self.count(MAX_HITS)?;
        let hit = |_| Ok(Hit { document: self.u32()?, score_bits: self.u32()? });
        (0..count).map(hit).collect()
    }

    fn texts(&mut self) -> Result<Vec<Vec<u8>>, &'static str> {
        let count = self.count(MAX_HITS)?;
        let text = |_| {
            let bytes = self.count(usize::from(u16::MAX))?;
            self.take(bytes).map(<[u8]>::to_vec)
        };
        (0..count).map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn body() -> impl Strategy<Value = MessageBody> {
        let words = || prop::collection::vec(any::<u32>(), 0..=MAX_WORDS);
        let hits = || prop::collection::vec((any::<u32>(), any::<u32>()), 0..=MAX_HITS);
        let hits = move || {
            hits().prop_map(|hits| {
                let hit = |(document, score_bits)| Hit { document, score_bits };
                hits.into_iter().map(hit).collect::<Vec<_>>()
            })
        };
        let texts =
            || prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..=MAX_HITS);
        let documents = prop::collection::vec(any::<u32>(), 0..=MAX_HITS);
        prop_oneof![
            (words(), any::<u8>()).prop_map(|(words, hits)| MessageBody::Query { words, hits }),
            (hits(), texts()).prop_map(|(hits, snippets)| MessageBody::Answer { hits, snippets }),
            (words(), any::<u8>()).prop_map(|(words, hits)| MessageBody::Search { words, hits }),
            hits().prop_map(|hits| MessageBody::Found { hits }),
            (words(), documents)
                .prop_map(|(words, documents)| MessageBody::Snippets { words, documents }),
            texts().prop_map(|snippets| MessageBody::Texts { snippets }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(request: u64, parent: u64, body in body()) {
            let frame = Frame { request, parent, body };
            let mut bytes = Vec::new();
            frame.encode(&mut bytes);
            prop_assert_eq!(length(&bytes), Ok(Some(bytes.len() - LENGTH_BYTES)));
            prop_assert_eq!(Frame::decode(&bytes[LENGTH_BYTES..]), Ok(frame));
            // Nothing shorter is a message.
            prop_assert!(Frame::decode(&bytes[LENGTH_BYTES..bytes.len() - 1]).is_err());
        }

        #[test]
        fn any_bytes_are_a_message_or_an_error(bytes: Vec<u8>) {
            let _ = length(&bytes);
            if let Ok(frame) = Frame::decode(&bytes) {
                let mut again = Vec::new();
                frame.encode(&mut again);
                prop_assert_eq!(&again[LENGTH_BYTES..], &bytes[..]);
            }
        }
    }
}
