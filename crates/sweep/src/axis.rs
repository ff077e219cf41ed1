//! What the points of a sweep differ in.

use std::fmt;

use serde::{Serialize, Serializer};

/// An axis; results and reports call it by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Axis {
    /// What is run.
    Workload,
    /// Clients.
    Threads,
    /// Where.
    Target,
    /// With the gate or the module, or without.
    Policy,
    /// An option of `luc bench` of which a workload has a list, by its name without dashes.
    Option(&'static str),
    /// The disk's I/O scheduler.
    Scheduler,
    /// The processors' frequency.
    Frequency,
    /// The speed in virtual time, millions of instructions per second.
    Mips,
}

impl Axis {
    /// As in the plan and in the columns of the results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Workload => "workload",
            Self::Threads => "threads",
            Self::Target => "target",
            Self::Policy => "policy",
            Self::Option(name) => name,
            Self::Scheduler => "scheduler",
            Self::Frequency => "frequency",
            Self::Mips => "mips",
        }
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Axis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
