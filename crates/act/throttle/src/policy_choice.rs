//! Policies by their names.

mod wise_choice;

use std::fmt;
use std::str::FromStr;

use luc_control::throttle::auto_throttle::{
    AutoThrottle, AutoThrottleConfig, DiskMeasurement, DiskPrior, TaskSequence,
};
use luc_control::throttle::policy_input::ThrottlePolicy;
use luc_control::throttle::wise_throttling::WisePolicy;
use luc_units::{format_duration, parse_duration_ns};

use crate::ThrottleError;
pub use wise_choice::WiseChoice;

/// Known policies, for help texts and errors.
pub const KNOWN: &str = "auto, off, fcfs, turns[:TIME], wise:PEAK[,KEY=VALUE]...";
/// Default length of a turn of `turns`.
const DEFAULT_TURN_NS: u64 = 250_000_000;

/// Policy as the user chooses it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PolicyChoice {
    Off,
    /// The policy that is measured to be best.
    #[default]
    Auto,
    /// One task at a time, each to its end, in order of arrival.
    FirstComeFirstServed,
    /// One task at a time, each for this long, ns, in a ring.
    Turns(u64),
    /// The rules of the paper (WiseThrottling).
    Wise(WiseChoice),
}

impl PolicyChoice {
    /// Makes a policy for one disk, with an earlier measurement. `None` if it never freezes a task. `batch_floor` is
    /// the smallest part of the time that batch gets beside protected tasks.
    #[must_use]
    pub fn controller(
        &self,
        has_arm: bool,
        max_frozen_ns: u64,
        batch_floor: f64,
        measured: Option<DiskMeasurement>,
    ) -> Option<Box<dyn ThrottlePolicy>> {
        let config = AutoThrottleConfig {
            max_frozen_ns,
            batch_floor,
            prior: if has_arm { DiskPrior::Engaged } else { DiskPrior::Together },
            ..AutoThrottleConfig::default()
        };
        let config = match self {
            Self::Off => return None,
            Self::Wise(choice) => return Some(Box::new(WisePolicy::new(choice.config()))),
            Self::Auto => config,
            Self::FirstComeFirstServed => AutoThrottleConfig {
                sequence: TaskSequence::Arrival,
                prior: DiskPrior::Engaged,
                ..config
            },
            Self::Turns(turn_ns) => AutoThrottleConfig {
                sequence: TaskSequence::RoundRobin,
                turn_ns: Some(*turn_ns),
                prior: DiskPrior::Engaged,
                ..config
            },
        };
        let mut auto = AutoThrottle::new(config);
        if let Some(measured) = measured {
            auto.begin_with(measured);
        }
        Some(Box::new(auto))
    }
}

impl fmt::Display for PolicyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Auto => f.write_str("auto"),
            Self::FirstComeFirstServed => f.write_str("fcfs"),
            Self::Turns(turn_ns) => write!(f, "turns:{}", format_duration(*turn_ns)),
            Self::Wise(choice) => write!(f, "wise:{choice}"),
        }
    }
}

impl FromStr for PolicyChoice {
    type Err = ThrottleError;

    fn from_str(text: &str) -> Result<Self, ThrottleError> {
        let refused =
            |reason: String| ThrottleError::Policy { given: text.to_owned(), reason, known: KNOWN };
        let (name, value) =
            text.split_once(':').map_or((text, None), |(name, value)| (name, Some(value)));
        match (name, value) {
            ("off", None) => Ok(Self::Off),
            ("auto", None) => Ok(Self::Auto),
            ("fcfs", None) => Ok(Self::FirstComeFirstServed),
            ("turns", None) => Ok(Self::Turns(DEFAULT_TURN_NS)),
            ("turns", Some(time)) => match parse_duration_ns(time) {
                Ok(0) => Err(refused("a turn of no time".to_owned())),
                Ok(ns) => Ok(Self::Turns(ns)),
                Err(error) => Err(refused(error.to_string())),
            },
            ("wise", Some(text)) => text.parse().map(Self::Wise).map_err(refused),
            ("wise", None) => {
                Err(refused("it needs the disk's peak rate, such as wise:100M".to_owned()))
            }
            ("off" | "auto" | "fcfs", Some(_)) => Err(refused(format!("{name} takes no value"))),
            _ => Err(refused("there is none of this name".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_printed_alike() {
        for text in [
            "off",
            "auto",
            "fcfs",
            "turns:250ms",
            "turns:1s",
            "wise:100M",
            "wise:100M,point=28M:2,point=9M:4,order=lowest,tuning=off,resume=0%,check=100ms",
        ] {
            let choice: PolicyChoice = text.parse().expect("known");
            assert_eq!(choice.to_string(), text);
        }
        assert_eq!(
            "turns".parse::<PolicyChoice>().expect("known"),
            PolicyChoice::Turns(DEFAULT_TURN_NS)
        );
    }

    #[test]
    fn a_wrong_one_names_what_is_known() {
        for text in ["wise?", "wise", "wise:0", "wise:1M,x=1", "turns:0s", "turns:x", "auto:1", ""]
        {
            let said = text.parse::<PolicyChoice>().expect_err("refused").to_string();
            assert!(said.contains("known are auto"), "{said}");
        }
    }
}
