//! Passing of time in a guest.

/// Mode of a guest's processors and clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestTime {
    /// Several processors that run freely, for tests of function and faults. Time is the host's.
    Function { processors: u32 },
    /// Processors on which each instruction takes 2^`shift` ns. Idle time is skipped, nothing depends on the host, and
    /// a run gives the same bytes each time.
    VirtualTime {
        /// Binary logarithm of an instruction's time in nanoseconds: 0 is 1 GHz at one instruction
        /// per cycle, 1 half of that.
        shift: u32,
        /// Number of processors. [`Qemu::is_parallel`](crate::Qemu::is_parallel) says whether several are parallel, or
        /// take turns and share the speed of one.
        processors: u32,
    },
}

impl Default for GuestTime {
    fn default() -> Self {
        Self::Function { processors: 2 }
    }
}
