//! Origins from which the offsets of connections count.

use std::collections::HashMap;

use luc_events::ConnectionId;
use luc_events::event_kinds::{MessageDirection, SequenceSource};
use luc_events::tables::SocketConnection;
use luc_fleet_requests::ByteDirection;

use crate::read_hosts::RecordedHost;

/// Origin from which the offsets of a connection count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OffsetOrigin {
    /// Counts from the byte after the initial sequence number in the trace, and from that number in the core.
    Initial,
    /// Counts from the same byte at both ends, for connections within a host.
    Counted,
    /// Counts from sequence number 0 in the trace, and from the first number of a message in the core.
    FirstSeen { sent: Option<u64>, received: Option<u64> },
}

impl OffsetOrigin {
    /// Converts a trace's offset to the core's; `None`: the row is damaged.
    pub(super) fn offset(self, way: ByteDirection, first_byte: u64) -> Option<u64> {
        match (self, way) {
            (Self::Initial, _) => first_byte.checked_add(1),
            (Self::Counted, _) => Some(first_byte),
            (Self::FirstSeen { sent, .. }, ByteDirection::Sent) => first_byte.checked_sub(sent?),
            (Self::FirstSeen { received, .. }, ByteDirection::Received) => {
                first_byte.checked_sub(received?)
            }
        }
    }
}

/// Origins of a host's connections.
#[derive(Debug)]
pub(super) struct ConnectionOrigins(HashMap<ConnectionId, OffsetOrigin>);

impl ConnectionOrigins {
    pub(super) fn of(recorded: &RecordedHost) -> Self {
        let origin = |row: &SocketConnection| match row.sequences {
            _ if row.family.is_within_host() => OffsetOrigin::Counted,
            SequenceSource::Unknown => OffsetOrigin::FirstSeen { sent: None, received: None },
            SequenceSource::Seen | SequenceSource::Counted => OffsetOrigin::Initial,
        };
        let connections = recorded.connections.iter();
        let mut origins: HashMap<ConnectionId, OffsetOrigin> =
            connections.map(|row| (row.connection, origin(row))).collect();
        for row in &recorded.messages {
            let Some(OffsetOrigin::FirstSeen { sent, received }) = origins.get_mut(&row.connection)
            else {
                continue;
            };
            let first = match row.direction {
                MessageDirection::Sent => sent,
                MessageDirection::Received => received,
            };
            *first = Some(first.map_or(row.first_byte, |first| first.min(row.first_byte)));
        }
        Self(origins)
    }

    pub(super) fn of_connection(&self, connection: ConnectionId) -> Option<OffsetOrigin> {
        self.0.get(&connection).copied()
    }
}
