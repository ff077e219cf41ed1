//! Traffic of the program `crates/luc/tests/programs/talk.c`, which talks to itself.

/// Number of requests, each 7 bytes longer than the one before. Each has an answer, 2 bytes longer than the one before.
pub const MESSAGES: u64 = 50;

/// Bytes of one more request. Its answer has one.
pub const LARGE_BYTES: u64 = 1 << 20;

/// Bytes of all requests, and of all answers.
pub const BYTES: [u64; 2] =
    [7 * MESSAGES * (MESSAGES + 1) / 2 + LARGE_BYTES, MESSAGES * MESSAGES + 1];
