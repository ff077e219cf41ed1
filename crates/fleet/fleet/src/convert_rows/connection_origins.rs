//! Origins from which the offsets of connections count.

use std::collections::HashMap;

use luc_events::ConnectionId;
use luc_events::codes::{Flow, Sequences};
use luc_events::tables::Connection;
use luc_fleet_requests::Way;

use crate::read::Recorded;

/// Origin from which the offsets of a connection count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Counts from the byte after the initial sequence number in the trace, and from that number in the core.
    Initial,
    /// Counts from the same byte at both ends, for connections within a host.
    Counted,
    /// Counts from sequence number 0 in the trace, and from the first number of a message in the core.
    FirstSeen { sent: Option<u64>, received: Option<u64> },
}

impl Origin {
    /// Converts a trace's offset to the core's; `None`: the row is damaged.
    pub(super) fn offset(self, way: Way, first_byte: u64) -> Option<u64> {
        match (self, way) {
            (Self::Initial, _) => first_byte.checked_add(1),
            (Self::Counted, _) => Some(first_byte),
            (Self::FirstSeen { sent, .. }, Way::Sent) => first_byte.checked_sub(sent?),
            (Self::FirstSeen { received, .. }, Way::Received) => first_byte.checked_sub(received?),
        }
    }
}

/// Origins of a host's connections.
#[derive(Debug)]
pub(super) struct Origins(HashMap<ConnectionId, Origin>);

impl Origins {
    pub(super) fn of(recorded: &Recorded) -> Self {
        let origin = |row: &Connection| match row.sequences {
            _ if row.family.is_within_host() => Origin::Counted,
            Sequences::Unknown => Origin::FirstSeen { sent: None, received: None },
            Sequences::Seen | Sequences::Counted => Origin::Initial,
        };
        let connections = recorded.connections.iter();
        let mut origins: HashMap<ConnectionId, Origin> =
            connections.map(|row| (row.connection, origin(row))).collect();
        for row in &recorded.messages {
            let Some(Origin::FirstSeen { sent, received }) = origins.get_mut(&row.connection)
            else {
                continue;
            };
            let first = match row.direction {
                Flow::Sent => sent,
                Flow::Received => received,
            };
            *first = Some(first.map_or(row.first_byte, |first| first.min(row.first_byte)));
        }
        Self(origins)
    }

    pub(super) fn of_connection(&self, connection: ConnectionId) -> Option<Origin> {
        self.0.get(&connection).copied()
    }
}
