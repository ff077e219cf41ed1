//! Which gaps between a protected task's requests batch may use so that one of 100 waits is longer than it may be.

/// The part of the waits that may be longer, with some room for what is not seen here.
const LONG: f64 = 0.006;
/// What a long wait takes off the part of open gaps: four in a row close them all.
const STEP: f64 = 0.25;
/// The part at first: what is not known yet is not to cost many long waits.
const FIRST: f64 = 0.25;
/// A part below 0 is what has to be made good for waits that were long.
const LEAST: f64 = -1.0;

/// The part of the gaps that are open. Each long wait makes it smaller and each other one larger, by steps that cancel
/// each other where [`LONG`] of the waits are long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    part: f64,
    /// What has come together for the next open gap.
    due: f64,
}

impl Default for Share {
    fn default() -> Self {
        Self { part: FIRST, due: 0.0 }
    }
}

impl Share {
    /// A wait has ended.
    pub(super) fn note(&mut self, is_long: bool) {
        let step = if is_long { -STEP * (1.0 - LONG) } else { STEP * LONG };
        self.part = (self.part + step).clamp(LEAST, 1.0);
    }

    /// Whether the gap that begins is open.
    pub(super) fn is_next_open(&mut self) -> bool {
        self.due += self.part.max(0.0);
        let is_open = self.due >= 1.0;
        if is_open {
            self.due -= 1.0;
        }
        is_open
    }
}
