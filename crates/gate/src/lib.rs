//! The fsync gate.

pub mod inspect;
