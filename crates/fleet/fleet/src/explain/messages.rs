//! Reports which bytes are on edges, and which are not.

use std::collections::BTreeMap;

use luc_fleet_requests::{GapKind, MatchedMessages};
use serde::Serialize;

use crate::joined_traces::JoinedTraces;

/// Counts of sends and receptions, and of the edges between them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MessagesReport {
    /// Number of sends and receives in all traces.
    pub rows: u64,
    /// Number of pairs of a send and a reception with common bytes.
    pub edges: u64,
    pub bytes_on_edges: u64,
    /// Bytes of paired connections that are on no edge.
    pub gaps: Vec<GapReport>,
    pub left_out: RowsLeftOut,
}

/// Bytes on no edge, of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GapReport {
    pub reason: &'static str,
    pub count: u64,
    pub bytes: u64,
}

/// Rows without a byte on an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RowsLeftOut {
    /// Rows of ends without a peer.
    pub unpaired: u64,
    /// Copies of other rows.
    pub duplicates: u64,
    pub empty: u64,
    pub damaged: u64,
}

pub(super) fn report(joined: &JoinedTraces, messages: &MatchedMessages) -> MessagesReport {
    let mut gaps: BTreeMap<GapKind, (u64, u64)> = BTreeMap::new();
    for gap in &messages.gaps {
        let (count, bytes) = gaps.entry(gap.kind).or_default();
        *count += 1;
        *bytes = bytes.saturating_add(gap.bytes);
    }
    let gap = |(kind, (count, bytes))| GapReport { reason: explain_gap(kind), count, bytes };
    let bytes = messages.edges.iter().map(|edge| edge.bytes);
    let left_out = messages.left_out;
    MessagesReport {
        rows: joined.rows.messages.len() as u64,
        edges: messages.edges.len() as u64,
        bytes_on_edges: bytes.fold(0, u64::saturating_add),
        gaps: gaps.into_iter().map(gap).collect(),
        left_out: RowsLeftOut {
            unpaired: left_out.unpaired,
            duplicates: left_out.duplicates,
            empty: left_out.empty,
            damaged: left_out.beyond,
        },
    }
}

fn explain_gap(kind: GapKind) -> &'static str {
    match kind {
        GapKind::NoSend => "no row of their send",
        GapKind::NoReception => "no row of their reception",
        GapKind::SeveralSends => "several sends claim them",
        GapKind::SeveralReceptions => "several receptions claim them",
        GapKind::Fin => "ends of connections (FIN)",
    }
}
