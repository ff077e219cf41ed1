//! Decides which gaps batch may use. At most one of 100 waits of a protected task may exceed its target.

/// Targeted part of waits that are too long. It is below 1/100, to leave room for waits not seen here.
const MAX_LONG_WAITS: f64 = 0.006;
/// Decrease of the open part after a long wait. Four long waits in a row close all gaps.
const LONG_WAIT_STEP: f64 = 0.25;
/// Open part at first: low, so that an unknown task sees few long waits.
const INITIAL_OPEN_PART: f64 = 0.25;
/// Lowest open part. Below 0 no gap is open until short waits have made up for long ones.
const MIN_OPEN_PART: f64 = -1.0;

/// Part of the gaps that are open. Each long wait makes it smaller, each other wait larger. The steps cancel out where
/// `MAX_LONG_WAITS` of the waits are long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct GapShare {
    open_part: f64,
    /// Sum of open parts since the last open gap; at 1 a gap opens.
    due: f64,
}

impl Default for GapShare {
    fn default() -> Self {
        Self { open_part: INITIAL_OPEN_PART, due: 0.0 }
    }
}

impl GapShare {
    /// Takes the end of a wait.
    pub(super) fn note(&mut self, is_long: bool) {
        let step = if is_long {
            -LONG_WAIT_STEP * (1.0 - MAX_LONG_WAITS)
        } else {
            LONG_WAIT_STEP * MAX_LONG_WAITS
        };
        self.open_part = (self.open_part + step).clamp(MIN_OPEN_PART, 1.0);
    }

    /// Whether the gap that begins now is open.
    pub(super) fn is_next_open(&mut self) -> bool {
        self.due += self.open_part.max(0.0);
        let is_open = self.due >= 1.0;
        if is_open {
            self.due -= 1.0;
        }
        is_open
    }
}
