//! Calls that have returned and wait for what is still to be noted of their commits.

use luc_events::tables::{Call, Sync};

use crate::owners::OwnerId;

/// How long a call's commits may still come in.
pub(super) const CALL_DELAY_NS: u64 = 100_000_000;
/// What is due is taken in together at steps of this length, which costs less than one by one.
pub(super) const STRIDE_NS: u64 = 5_000_000;

/// A complete call whose commits may still come in.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) row: CallRow,
    pub(super) owner: OwnerId,
    /// How many waits it has: as many at the front of `Analysis::waits` when it is the first.
    pub(super) waits: usize,
}

#[derive(Debug)]
pub(super) enum CallRow {
    Sync(Sync),
    Call(Call),
}

impl Pending {
    /// When it is taken in, with others.
    pub(super) fn due_ns(&self) -> u64 {
        self.exit_ns().saturating_add(CALL_DELAY_NS + STRIDE_NS)
    }

    pub(super) fn exit_ns(&self) -> u64 {
        match &self.row {
            CallRow::Sync(row) => row.exit_ns,
            CallRow::Call(row) => row.exit_ns,
        }
    }
}
