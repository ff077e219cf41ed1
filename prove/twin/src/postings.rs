//! The documents that have one word, as differences in variable-length bytes, so that a search decodes what it scores.

/// A document that has the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Posting {
    /// Number of the document in the partition.
    pub(crate) index: u32,
    /// Number of times that the word is in the document.
    pub(crate) count: u32,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Postings {
    bytes: Vec<u8>,
    last: u32,
}

impl Postings {
    /// Adds a document. Documents come in ascending order.
    pub(crate) fn push(&mut self, posting: Posting) {
        for mut number in [posting.index - self.last, posting.count] {
            while number >= 0x80 {
                self.bytes.push(number as u8 | 0x80);
                number >>= 7;
            }
            self.bytes.push(number as u8);
        }
        self.last = posting.index;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Posting> {
        let mut bytes = self.bytes.iter();
        let mut number = move || {
            let (mut value, mut shift) = (0, 0);
            loop {
                let byte = u32::from(*bytes.next()?);
                value |= (byte & 0x7f) << shift;
                if byte < 0x80 {
                    return Some(value);
                }
                shift += 7;
            }
        };
        let mut index = 0;
        std::iter::from_fn(move || {
            index += number()?;
            Some(Posting { index, count: number()? })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postings_are_read_as_they_were_added() {
        let all = [(0, 1), (1, 127), (128, 128), (129, u32::MAX), (u32::MAX, 300)];
        let all = all.map(|(index, count)| Posting { index, count });
        let mut postings = Postings::default();
        all.into_iter().for_each(|posting| postings.push(posting));
        assert_eq!(postings.iter().collect::<Vec<_>>(), all);
        assert_eq!(Postings::default().iter().next(), None);
    }
}
