//! The trace of a connection whose bytes are known (`talk.c`).

use std::path::Path;

use luc_events::event_kinds::{MessageDirection, SocketRole};
use luc_events::tables::{ConnectionMessage, SocketConnection};
use luc_harness::error::EvaluateError;
use luc_harness::harness::missing;
use luc_testkit::talk;
use serde::Serialize;

use crate::known::rows;

/// Accuracy of the trace at both ends of the connection.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Wire {
    /// Whether both ends have the same initial sequence numbers.
    pub(super) ends_match: bool,
    /// Bytes in the trace, and all bytes: sent and received by the client, received and sent by the server.
    pub(super) bytes: [[u64; 2]; 4],
}

impl Wire {
    pub(super) fn of(trace: &Path) -> Result<Self, EvaluateError> {
        let connections: Vec<SocketConnection> = rows(trace)?;
        let messages: Vec<ConnectionMessage> = rows(trace)?;
        let of_side = |side: SocketRole| {
            // A connection has a row whenever it was looked at; the last has most.
            let mut own = connections.iter().rev();
            own.find(|row| row.side == side && row.remote_port != 0)
                .ok_or_else(|| missing(&format!("the {side}'s end of the connection")))
        };
        let (client, server) = (of_side(SocketRole::Client)?, of_side(SocketRole::Server)?);
        let sum = |end: &SocketConnection, flow: MessageDirection| -> u64 {
            let is_own = |row: &&ConnectionMessage| {
                row.connection == end.connection && row.direction == flow
            };
            messages.iter().filter(is_own).map(|row| row.bytes).sum()
        };
        let [requests, answers] = talk::BYTES;
        Ok(Self {
            ends_match: client.initial_sent == server.initial_received
                && client.initial_received == server.initial_sent,
            bytes: [
                [sum(client, MessageDirection::Sent), requests],
                [sum(client, MessageDirection::Received), answers],
                [sum(server, MessageDirection::Received), requests],
                [sum(server, MessageDirection::Sent), answers],
            ],
        })
    }
}
