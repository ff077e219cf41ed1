//! Durations and sizes of a plan: read once, and written as they were read, so that results know their plan again.

use std::fmt;

use luc_units::{UnitError, format_size, parse_duration_ns, parse_size_bytes};
use serde::{Deserialize, Serialize};

/// A duration, as in 6ms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PlanDuration {
    text: String,
    ns: u64,
}

/// A number of bytes, as in 512M.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PlanSize {
    text: String,
    bytes: u64,
}

impl PlanDuration {
    #[must_use]
    pub fn ns(&self) -> u64 {
        self.ns
    }

    pub(super) fn of_ms(ms: u64) -> Self {
        Self { text: format!("{ms}ms"), ns: ms * 1_000_000 }
    }
}

impl PlanSize {
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Creates a size from a number of bytes.
    pub fn of_bytes(bytes: u64) -> Self {
        Self { text: format_size(bytes), bytes }
    }
}

impl TryFrom<String> for PlanDuration {
    type Error = UnitError;

    fn try_from(text: String) -> Result<Self, UnitError> {
        let ns = parse_duration_ns(&text)?;
        Ok(Self { text, ns })
    }
}

impl TryFrom<String> for PlanSize {
    type Error = UnitError;

    fn try_from(text: String) -> Result<Self, UnitError> {
        let bytes = parse_size_bytes(&text)?;
        Ok(Self { text, bytes })
    }
}

impl From<PlanDuration> for String {
    fn from(span: PlanDuration) -> Self {
        span.text
    }
}

impl From<PlanSize> for String {
    fn from(size: PlanSize) -> Self {
        size.text
    }
}

impl fmt::Display for PlanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for PlanSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
