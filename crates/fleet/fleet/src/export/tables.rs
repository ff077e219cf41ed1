//! Derived tables: their rows and their columns, a file for each kind.

pub(super) mod clock;
pub(super) mod edge;
pub(super) mod finding;
pub(super) mod path;
pub(super) mod request;

use super::derived_table::AnyTable;

/// All derived tables, without their rows' types.
pub(super) fn all() -> [AnyTable; 7] {
    [
        AnyTable::of(&clock::HOST),
        AnyTable::of(&clock::CLOCK),
        AnyTable::of(&edge::EDGE),
        AnyTable::of(&request::REQUEST),
        AnyTable::of(&request::CALL),
        AnyTable::of(&path::PATH),
        AnyTable::of(&finding::FINDING),
    ]
}
