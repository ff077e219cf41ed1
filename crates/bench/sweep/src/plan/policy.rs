//! The axis of policies: the gate's, and the kernel module's in guests.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Batching of commits and copying of journal blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum SweepPolicy {
    Off,
    /// Under `luc run --level gate`.
    Gate(BatchingRule),
    /// With `luc.ko`, which can do both.
    Kernel(BatchingRule, CopyOutRule),
}

/// Rule by which commits are held for more requests, as the gate and the module name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BatchingRule {
    /// Holds none; they are only counted.
    Off,
    Delay,
    /// The paper's PID controller.
    Pid,
    Auto,
}

/// Rule by which journal blocks are written from copies, as the module names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CopyOutRule {
    Off,
    /// Heuristic of the paper.
    Heuristic,
    On,
    /// LUC's own rule in place of the paper's.
    Auto,
}

/// A policy that no plan has; the names in backquotes are the given one and the known ones.
#[derive(Debug, thiserror::Error)]
#[error("unknown policy `{given}`: there are `{}`, and `kernel:POLICY+COPYOUT` as kernel:off+on", NAMED_POLICIES.map(|(name, _)| name).join("`, `"))]
pub struct UnknownPolicy {
    given: String,
}

/// Policies with names of their own.
const NAMED_POLICIES: [(&str, SweepPolicy); 10] = [
    ("off", SweepPolicy::Off),
    ("auto", SweepPolicy::AUTO),
    ("gate:delay", SweepPolicy::Gate(BatchingRule::Delay)),
    ("gate:pid", SweepPolicy::Gate(BatchingRule::Pid)),
    ("kernel:off", SweepPolicy::Kernel(BatchingRule::Off, CopyOutRule::Off)),
    ("kernel:delay", SweepPolicy::Kernel(BatchingRule::Delay, CopyOutRule::Off)),
    ("kernel:pid", SweepPolicy::Kernel(BatchingRule::Pid, CopyOutRule::Off)),
    ("kernel:copy-out", SweepPolicy::Kernel(BatchingRule::Off, CopyOutRule::Heuristic)),
    ("kernel:luc", SweepPolicy::Kernel(BatchingRule::Pid, CopyOutRule::Heuristic)),
    ("kernel:auto", SweepPolicy::Kernel(BatchingRule::Auto, CopyOutRule::Auto)),
];

impl SweepPolicy {
    /// The gate's own choice.
    pub const AUTO: Self = Self::Gate(BatchingRule::Auto);

    /// Returns whether a setting of the module, by its name in sysfs, belongs to this policy.
    pub(crate) fn takes(self, setting: &str) -> bool {
        let Self::Kernel(batching, copy_out) = self else {
            return false;
        };
        match setting {
            "delay_us" | "max_restarts" => batching == BatchingRule::Delay,
            "timeout_us" | "set_point" | "kp_milli" | "ki_milli" | "kd_milli" => {
                batching == BatchingRule::Pid
            }
            "max_hold_us" => batching != BatchingRule::Off,
            "copy_out_threshold_permille" | "copy_out_clean_runs" => {
                copy_out == CopyOutRule::Heuristic
            }
            _ => false,
        }
    }
}

impl BatchingRule {
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

impl CopyOutRule {
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

impl fmt::Display for SweepPolicy {
    /// Writes its shortest form in a plan.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = NAMED_POLICIES.iter().find(|(_, policy)| policy == self) {
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

impl FromStr for SweepPolicy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        let short = NAMED_POLICIES.iter().find(|(name, _)| *name == text);
        let parts = || {
            let (batching, copy_out) = text.strip_prefix("kernel:")?.split_once('+')?;
            let batching = BatchingRule::ALL.into_iter().find(|one| one.name() == batching);
            let copy_out = CopyOutRule::ALL.into_iter().find(|one| one.name() == copy_out);
            Some(Self::Kernel(batching?, copy_out?))
        };
        let found = short.map(|(_, policy)| *policy).or_else(parts);
        found.ok_or_else(|| UnknownPolicy { given: text.to_owned() })
    }
}

impl TryFrom<String> for SweepPolicy {
    type Error = UnknownPolicy;

    fn try_from(text: String) -> Result<Self, UnknownPolicy> {
        text.parse()
    }
}

impl From<SweepPolicy> for String {
    fn from(policy: SweepPolicy) -> Self {
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
        let policy = |name: &str| name.parse::<SweepPolicy>().expect("known");
        let all = ["kernel:delay", "kernel:pid", "kernel:copy-out"].map(policy);
        for setting in SETTINGS {
            assert!(all.iter().any(|policy| policy.takes(setting)), "{setting}");
            assert!(!policy("kernel:off").takes(setting) && !SweepPolicy::Off.takes(setting));
        }
        let luc = policy("kernel:luc");
        assert!(luc.takes("set_point") && luc.takes("copy_out_clean_runs"));
    }

    #[test]
    fn each_combination_has_one_name() {
        for batching in BatchingRule::ALL {
            for copy_out in CopyOutRule::ALL {
                let policy = SweepPolicy::Kernel(batching, copy_out);
                let long = format!("kernel:{}+{}", batching.name(), copy_out.name());
                assert_eq!(long.parse::<SweepPolicy>().expect("known"), policy);
                assert_eq!(policy.to_string().parse::<SweepPolicy>().expect("known"), policy);
            }
        }
        for (given, shown) in [
            ("kernel:off+on", "kernel:off+on"),
            ("kernel:pid+heuristic", "kernel:luc"),
            ("kernel:off+off", "kernel:off"),
            ("gate:delay", "gate:delay"),
            ("auto", "auto"),
        ] {
            assert_eq!(given.parse::<SweepPolicy>().expect("known").to_string(), shown);
        }
        for wrong in ["gate:off", "gate:on", "kernel:of+on", "kernel:off+", "+on", ""] {
            wrong.parse::<SweepPolicy>().expect_err("refused");
        }
    }
}
