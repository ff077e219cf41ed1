//! Finds the tokens in messages, which name requests.

use std::collections::HashMap;

use luc_events::codes::Flow;
use luc_events::tables::{Message, Token};

/// Tokens with their bytes in order, by connection and direction (`true`: sent).
#[derive(Debug, Default)]
pub(super) struct Tokens(HashMap<(u32, bool), Vec<(u64, u64)>>);

impl Tokens {
    pub(super) fn of(rows: &[Token]) -> Self {
        let mut tokens = Self::default();
        for row in rows {
            let place = (row.connection.0, row.direction == Flow::Sent);
            tokens.0.entry(place).or_default().push((row.byte, row.token));
        }
        for of_direction in tokens.0.values_mut() {
            of_direction.sort_unstable();
        }
        tokens
    }

    /// First token in a message.
    pub(super) fn in_message(&self, row: &Message) -> Option<u64> {
        let place = (row.connection.0, row.direction == Flow::Sent);
        let of_direction = self.0.get(&place)?;
        let next = of_direction.partition_point(|&(byte, _)| byte < row.first_byte);
        let &(byte, token) = of_direction.get(next)?;
        (byte - row.first_byte < row.bytes).then_some(token)
    }
}

#[cfg(test)]
mod tests {
    use luc_events::ConnectionId;

    use super::*;

    #[test]
    fn a_message_has_the_first_name_in_its_bytes() {
        let token = |connection, direction, byte, token| Token {
            connection: ConnectionId(connection),
            direction,
            byte,
            token,
            ..Token::default()
        };
        let tokens = Tokens::of(&[
            token(1, Flow::Sent, 150, 7),
            token(1, Flow::Sent, 100, 5),
            token(1, Flow::Received, 100, 9),
        ]);
        let of = |connection, direction, first_byte, bytes| {
            tokens.in_message(&Message {
                connection: ConnectionId(connection),
                direction,
                first_byte,
                bytes,
                ..Message::default()
            })
        };
        assert_eq!(of(1, Flow::Sent, 100, 100), Some(5));
        assert_eq!(of(1, Flow::Sent, 101, 50), Some(7));
        assert_eq!(of(1, Flow::Sent, 101, 49), None);
        assert_eq!(of(1, Flow::Sent, 0, u64::MAX), Some(5));
        assert_eq!(of(1, Flow::Received, 90, 11), Some(9));
        assert_eq!(of(2, Flow::Sent, 100, 100), None);
    }
}
