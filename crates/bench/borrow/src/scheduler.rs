//! I/O schedulers of the kernel's block layer.

use serde::{Deserialize, Serialize};

/// An I/O scheduler of the kernel's block layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IoScheduler {
    /// Passes requests on in the order of their arrival.
    None,
    /// Sorts requests by sector and by deadline.
    MqDeadline,
    Bfq,
    Kyber,
}

impl IoScheduler {
    /// Returns its name in plans and in sysfs.
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
