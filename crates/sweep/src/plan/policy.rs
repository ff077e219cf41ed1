//! The axis of policies: the gate's, and the kernel module's in guests.

use serde::{Deserialize, Serialize};

/// Who batches and copies, if anyone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Policy {
    /// The workload as it is.
    #[serde(rename = "off")]
    Off,
    /// Under `luc run --level gate --policy auto`.
    #[serde(rename = "auto")]
    Auto,
    /// `luc.ko` is loaded and only counts.
    #[serde(rename = "kernel:off")]
    KernelOff,
    /// The thesis' delayJC.
    #[serde(rename = "kernel:delay")]
    KernelDelay,
    /// The paper's PID batching.
    #[serde(rename = "kernel:pid")]
    KernelPid,
    /// The paper's heuristic copy-out.
    #[serde(rename = "kernel:copy-out")]
    KernelCopyOut,
    /// Both, as the paper's LUC.
    #[serde(rename = "kernel:luc")]
    KernelLuc,
    /// The module's own batching and copy-out.
    #[serde(rename = "kernel:auto")]
    KernelAuto,
}

impl Policy {
    /// As in the plan.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Auto => "auto",
            Self::KernelOff => "kernel:off",
            Self::KernelDelay => "kernel:delay",
            Self::KernelPid => "kernel:pid",
            Self::KernelCopyOut => "kernel:copy-out",
            Self::KernelLuc => "kernel:luc",
            Self::KernelAuto => "kernel:auto",
        }
    }

    /// The module's `policy` and `copy_out`; `None` where it is not loaded.
    pub(crate) fn module(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Off | Self::Auto => None,
            Self::KernelOff => Some(("off", "off")),
            Self::KernelDelay => Some(("delay", "off")),
            Self::KernelPid => Some(("pid", "off")),
            Self::KernelCopyOut => Some(("off", "heuristic")),
            Self::KernelLuc => Some(("pid", "heuristic")),
            Self::KernelAuto => Some(("auto", "auto")),
        }
    }

    /// Whether a setting of the module, by its name in sysfs, is one of this policy.
    pub(crate) fn takes(self, setting: &str) -> bool {
        let Some((policy, copy_out)) = self.module() else {
            return false;
        };
        match setting {
            "delay_us" | "max_restarts" => policy == "delay",
            "timeout_us" | "set_point" | "kp_milli" | "ki_milli" | "kd_milli" => policy == "pid",
            "max_hold_us" => policy != "off",
            "copy_out_threshold_permille" | "copy_out_clean_runs" => copy_out == "heuristic",
            _ => false,
        }
    }
}

/// What a plan may set.
pub(super) const SETTINGS: [&str; 10] = [
    "delay_us",
    "max_restarts",
    "timeout_us",
    "max_hold_us",
    "set_point",
    "kp_milli",
    "ki_milli",
    "kd_milli",
    "copy_out_threshold_permille",
    "copy_out_clean_runs",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_belongs_to_a_policy_and_none_to_stock() {
        let all = [
            Policy::KernelDelay,
            Policy::KernelPid,
            Policy::KernelCopyOut,
        ];
        for setting in SETTINGS {
            assert!(all.iter().any(|policy| policy.takes(setting)), "{setting}");
            assert!(!Policy::KernelOff.takes(setting) && !Policy::Off.takes(setting));
        }
        assert!(
            Policy::KernelLuc.takes("set_point") && Policy::KernelLuc.takes("copy_out_clean_runs")
        );
    }
}
