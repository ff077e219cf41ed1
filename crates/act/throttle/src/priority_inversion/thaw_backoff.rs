//! Growing pauses after thaws that did not help a waiter.

/// Time within which a thaw should help the waiter, ns.
pub(super) const HELP_TIMEOUT_NS: u64 = 250_000_000;
/// Number of thaws that helped after which the holder and the waiter are treated as one task.
pub(super) const MIN_HELPFUL_THAWS: u32 = 2;
/// Longest pause after thaws that did not help, ns.
const MAX_PAUSE_NS: u64 = 60_000_000_000;

/// Results of the thaws for one waiter.
#[derive(Debug, Default)]
pub(super) struct ThawBackoff {
    pub(super) helped: u32,
    /// Number of thaws in a row that did not help.
    failed: u32,
    /// No thaw for this waiter before this time, ns.
    pub(super) pause_until_ns: u64,
}

impl ThawBackoff {
    pub(super) fn note_help(&mut self) {
        self.helped += 1;
        self.failed = 0;
    }

    /// Notes a thaw that helped another waiter.
    pub(super) fn note_help_for_other(&mut self) {
        self.failed = 0;
    }

    /// Notes a thaw that did not help. Each one in a row doubles the pause.
    pub(super) fn note_failure(&mut self, now_ns: u64) {
        self.failed += 1;
        let pause_ns = HELP_TIMEOUT_NS << self.failed.min(20);
        self.pause_until_ns = now_ns + pause_ns.min(MAX_PAUSE_NS);
    }

    /// Whether a thaw for this waiter is allowed.
    pub(super) fn allows_thaw(&self, now_ns: u64) -> bool {
        now_ns >= self.pause_until_ns
    }
}
