//! The fsync gate.
