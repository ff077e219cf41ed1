//! The part of Protobuf's wire format that a trace needs. Seven messages do not pay for a protobuf library and the code
//! that it generates.
//!
//! Source: <https://protobuf.dev/programming-guides/encoding/>.

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;

/// A message being written.
#[derive(Debug, Default)]
pub(super) struct ProtobufMessage {
    pub(super) bytes: Vec<u8>,
}

impl ProtobufMessage {
    /// Writes an unsigned or boolean field, an enumeration, or a signed field that is not negative.
    pub(super) fn uint(&mut self, field: u64, value: u64) {
        self.varint(field << 3 | VARINT);
        self.varint(value);
    }

    pub(super) fn fixed64(&mut self, field: u64, value: u64) {
        self.varint(field << 3 | FIXED64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn text(&mut self, field: u64, text: &str) {
        self.raw(field, text.as_bytes());
    }

    pub(super) fn message(&mut self, field: u64, fill: impl FnOnce(&mut Self)) {
        self.varint(field << 3 | LENGTH);
        let at = self.bytes.len();
        // Most lengths need this one byte; it is replaced if one needs more.
        self.bytes.push(0);
        fill(self);
        let length = self.bytes.len() - at - 1;
        if length < 0x80 {
            self.bytes[at] = length as u8;
        } else {
            let mut prefix = Self::default();
            prefix.varint(length as u64);
            self.bytes.splice(at..=at, prefix.bytes);
        }
    }

    fn raw(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | LENGTH);
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_specification() {
        let mut message = ProtobufMessage::default();
        message.uint(1, 150);
        message.text(2, "testing");
        message.message(3, |inner| inner.uint(1, 150));
        let expected = b"\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01";
        assert_eq!(message.bytes, expected);
    }

    #[test]
    fn a_long_message_has_a_long_length() {
        let mut message = ProtobufMessage::default();
        message.uint(1, 1);
        message.message(2, |inner| inner.text(3, &"x".repeat(300)));
        assert_eq!(message.bytes[..8], *b"\x08\x01\x12\xaf\x02\x1a\xac\x02");
        assert_eq!(message.bytes.len(), 8 + 300);
    }
}
