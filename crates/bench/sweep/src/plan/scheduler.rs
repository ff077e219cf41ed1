//! The axis of I/O schedulers.

use serde::{Deserialize, Serialize};

/// An I/O scheduler of the kernel's block layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// Requests go to the disk as they come.
    None,
    /// By place and age.
    MqDeadline,
    Bfq,
    Kyber,
}

impl Scheduler {
    /// As in the plan and in sysfs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::MqDeadline => "mq-deadline",
            Self::Bfq => "bfq",
            Self::Kyber => "kyber",
        }
    }
}
