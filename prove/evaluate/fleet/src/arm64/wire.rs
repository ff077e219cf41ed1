//! The trace of a connection whose bytes are known (`talk.c`).

use std::path::Path;

use luc_events::codes::{Flow, Side};
use luc_events::tables::{Connection, Message};
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
        let connections: Vec<Connection> = rows(trace)?;
        let messages: Vec<Message> = rows(trace)?;
        let of_side = |side: Side| {
            // A connection has a row whenever it was looked at; the last has most.
            let mut own = connections.iter().rev();
            own.find(|row| row.side == side && row.remote_port != 0)
                .ok_or_else(|| missing(&format!("the {side}'s end of the connection")))
        };
        let (client, server) = (of_side(Side::Client)?, of_side(Side::Server)?);
        let sum = |end: &Connection, flow: Flow| -> u64 {
            let is_own = |row: &&Message| row.connection == end.connection && row.direction == flow;
            messages.iter().filter(is_own).map(|row| row.bytes).sum()
        };
        let [requests, answers] = talk::BYTES;
        Ok(Self {
            ends_match: client.initial_sent == server.initial_received
                && client.initial_received == server.initial_sent,
            bytes: [
                [sum(client, Flow::Sent), requests],
                [sum(client, Flow::Received), answers],
                [sum(server, Flow::Received), requests],
                [sum(server, Flow::Sent), answers],
            ],
        })
    }
}
