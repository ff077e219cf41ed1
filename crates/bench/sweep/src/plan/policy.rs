//! The axis of policies: the gate's, and the kernel module's in guests.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Batching of commits and copying of journal blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Policy {
    Off,
    /// Under `luc run --level gate`.
    Gate(Batching),
    /// With `luc.ko`, which can do both.
    Kernel(Batching, CopyOut),
}

/// Rule by which commits are held for more requests, as the gate and the module name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Batching {
    /// Holds none; they are only counted.
    Off,
    Delay,
    /// The paper's PID controller.
    Pid,
    Auto,
}

/// Rule by which journal blocks are written from copies, as the module names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CopyOut {
    Off,
    /// Heuristic of the paper.
    Heuristic,
    On,
    /// LUC's own rule in place of the paper's.
    Auto,
}

/// A policy that no plan has; the names in backquotes are the given one and the known ones.
#[derive(Debug, thiserror::Error)]
#[error("unknown policy `{given}`: there are `{}`, and `kernel:POLICY+COPYOUT` as kernel:off+on", SHORT.map(|(name, _)| name).join("`, `"))]
pub struct UnknownPolicy {
    given: String,
}

/// Policies with names of their own.
const SHORT: [(&str, Policy); 10] = [
    ("off", Policy::Off),
    ("auto", Policy::AUTO),
    ("gate:delay", Policy::Gate(Batching::Delay)),
    ("gate:pid", Policy::Gate(Batching::Pid)),
    ("kernel:off", Policy::Kernel(Batching::Off, CopyOut::Off)),
    ("kernel:delay", Policy::Kernel(Batching::Delay, CopyOut::Off)),
    ("kernel:pid", Policy::Kernel(Batching::Pid, CopyOut::Off)),
    ("kernel:copy-out", Policy::Kernel(Batching::Off, CopyOut::Heuristic)),
    ("kernel:luc", Policy::Kernel(Batching::Pid, CopyOut::Heuristic)),
    ("kernel:auto", Policy::Kernel(Batching::Auto, CopyOut::Auto)),
];

impl Policy {
    /// The gate's own choice.
    pub const AUTO: Self = Self::Gate(Batching::Auto);

    /// Returns whether a setting of the module, by its name in sysfs, belongs to this policy.
    pub(crate) fn takes(self, setting: &str) -> bool {
        let Self::Kernel(batching, copy_out) = self else {
            return false;
        };
        match setting {
            "delay_us" | "max_restarts" => batching == Batching::Delay,
            "timeout_us" | "set_point" | "kp_milli" | "ki_milli" | "kd_milli" => {
                batching == Batching::Pid
            }
            "max_hold_us" => batching != Batching::Off,
            "copy_out_threshold_permille" | "copy_out_clean_runs" => copy_out == CopyOut::Heuristic,
            _ => false,
        }
    }
}

impl Batching {
    const ALL: [Self; 4] = [Self::Off, Self::Delay, Self::Pid, Self::Auto];

    /// Returns its name for `luc run --policy` and for the module.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Delay => "delay",
            Self::Pid => "pid",
            Self::Auto => "auto",
        }
    }
}

impl CopyOut {
    const ALL: [Self; 4] = [Self::Off, Self::Heuristic, Self::On, Self::Auto];

    /// Returns its name for the module.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Heuristic => "heuristic",
            Self::On => "on",
            Self::Auto => "auto",
        }
    }
}

impl fmt::Display for Policy {
    /// Writes its shortest form in a plan.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = SHORT.iter().find(|(_, policy)| policy == self) {
            return f.write_str(name);
        }
        match self {
            Self::Off => f.write_str("off"),
            Self::Gate(batching) => write!(f, "gate:{}", batching.name()),
            Self::Kernel(batching, copy_out) => {
                write!(f, "kernel:{}+{}", batching.name(), copy_out.name())
            }
        }
    }
}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        let short = SHORT.iter().find(|(name, _)| *name == text);
        let parts = || {
            let (batching, copy_out) = text.strip_prefix("kernel:")?.split_once('+')?;
            let batching = Batching::ALL.into_iter().find(|one| one.name() == batching);
            let copy_out = CopyOut::ALL.into_iter().find(|one| one.name() == copy_out);
            Some(Self::Kernel(batching?, copy_out?))
        };
        let found = short.map(|(_, policy)| *policy).or_else(parts);
        found.ok_or_else(|| UnknownPolicy { given: text.to_owned() })
    }
}

impl TryFrom<String> for Policy {
    type Error = UnknownPolicy;

    fn try_from(text: String) -> Result<Self, UnknownPolicy> {
        text.parse()
    }
}

impl From<Policy> for String {
    fn from(policy: Policy) -> Self {
        policy.to_string()
    }
}

/// Settings that a plan may have.
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
        let policy = |name: &str| name.parse::<Policy>().expect("known");
        let all = ["kernel:delay", "kernel:pid", "kernel:copy-out"].map(policy);
        for setting in SETTINGS {
            assert!(all.iter().any(|policy| policy.takes(setting)), "{setting}");
            assert!(!policy("kernel:off").takes(setting) && !Policy::Off.takes(setting));
        }
        let luc = policy("kernel:luc");
        assert!(luc.takes("set_point") && luc.takes("copy_out_clean_runs"));
    }

    #[test]
    fn each_combination_has_one_name() {
        for batching in Batching::ALL {
            for copy_out in CopyOut::ALL {
                let policy = Policy::Kernel(batching, copy_out);
                let long = format!("kernel:{}+{}", batching.name(), copy_out.name());
                assert_eq!(long.parse::<Policy>().expect("known"), policy);
                assert_eq!(policy.to_string().parse::<Policy>().expect("known"), policy);
            }
        }
        for (given, shown) in [
            ("kernel:off+on", "kernel:off+on"),
            ("kernel:pid+heuristic", "kernel:luc"),
            ("kernel:off+off", "kernel:off"),
            ("gate:delay", "gate:delay"),
            ("auto", "auto"),
        ] {
            assert_eq!(given.parse::<Policy>().expect("known").to_string(), shown);
        }
        for wrong in ["gate:off", "gate:on", "kernel:of+on", "kernel:off+", "+on", ""] {
            wrong.parse::<Policy>().expect_err("refused");
        }
    }
}
