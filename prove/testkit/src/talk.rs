//! What the program `crates/luc/tests/programs/talk.c` exchanges with itself.

/// Requests, each of 7 bytes more than the one before, and as many answers, each of 2 bytes more.
pub const MESSAGES: u64 = 50;

/// Bytes of one more request. Its answer has one.
pub const LARGE_BYTES: u64 = 1 << 20;

/// Bytes of all requests, and of all answers.
pub const BYTES: [u64; 2] =
    [7 * MESSAGES * (MESSAGES + 1) / 2 + LARGE_BYTES, MESSAGES * MESSAGES + 1];
