//! Finds the tokens in messages, which name requests.

use std::collections::HashMap;

use luc_events::event_kinds::MessageDirection;
use luc_events::tables::{ConnectionMessage, RequestToken};

/// Tokens with their bytes in order, by connection and direction (`true`: sent).
#[derive(Debug, Default)]
pub(super) struct MessageTokens(HashMap<(u32, bool), Vec<(u64, u64)>>);

impl MessageTokens {
    pub(super) fn of(rows: &[RequestToken]) -> Self {
        let mut tokens = Self::default();
        for row in rows {
            let place = (row.connection.0, row.direction == MessageDirection::Sent);
            tokens.0.entry(place).or_default().push((row.byte, row.token));
        }
        for of_direction in tokens.0.values_mut() {
            of_direction.sort_unstable();
        }
        tokens
    }

    /// First token in a message.
    pub(super) fn in_message(&self, row: &ConnectionMessage) -> Option<u64> {
        let place = (row.connection.0, row.direction == MessageDirection::Sent);
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
        let token = |connection, direction, byte, token| RequestToken {
            connection: ConnectionId(connection),
            direction,
            byte,
            token,
            ..RequestToken::default()
        };
        let tokens = MessageTokens::of(&[
            token(1, MessageDirection::Sent, 150, 7),
            token(1, MessageDirection::Sent, 100, 5),
            token(1, MessageDirection::Received, 100, 9),
        ]);
        let of = |connection, direction, first_byte, bytes| {
            tokens.in_message(&ConnectionMessage {
                connection: ConnectionId(connection),
                direction,
                first_byte,
                bytes,
                ..ConnectionMessage::default()
            })
        };
        assert_eq!(of(1, MessageDirection::Sent, 100, 100), Some(5));
        assert_eq!(of(1, MessageDirection::Sent, 101, 50), Some(7));
        assert_eq!(of(1, MessageDirection::Sent, 101, 49), None);
        assert_eq!(of(1, MessageDirection::Sent, 0, u64::MAX), Some(5));
        assert_eq!(of(1, MessageDirection::Received, 90, 11), Some(9));
        assert_eq!(of(2, MessageDirection::Sent, 100, 100), None);
    }
}
