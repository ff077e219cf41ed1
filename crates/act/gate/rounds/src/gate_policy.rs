//! Policies: how the gate brings callers together.

use core::fmt;
#[cfg(feature = "text")]
use core::str::FromStr;

use luc_control::delay_jc::DelayJc;
#[cfg(feature = "text")]
use luc_units::parse_duration_ns;

/// A policy, as given on the command line and handed to the preload library in its environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GatePolicy {
    /// Count and time the calls, nothing else.
    Off,
    /// delayJC: a restarting timer with bounded restarts (thesis section 4.6).
    Delay(DelayJc),
    /// The paper's PID controller; a set point of `None` is seven eighths of the participants.
    Pid {
        /// Target number of callers per commit.
        set_point: Option<u32>,
    },
    /// Learns, runs trials, engages where it pays.
    #[default]
    Auto,
}

/// A policy that does not parse; the text lists the valid ones.
#[cfg(feature = "text")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "policy '{given}': {reason}; use auto, off, delay[:TIME[:RESTARTS]] such as delay:1ms:64, or pid[:CALLERS]"
)]
pub struct PolicyError {
    given: String,
    reason: &'static str,
}

#[cfg(feature = "text")]
impl FromStr for GatePolicy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let error = |reason| PolicyError { given: text.to_owned(), reason };
        let mut parts = text.split(':');
        let policy = match parts.next().unwrap_or_default() {
            "off" => Self::Off,
            "auto" => Self::Auto,
            "delay" => {
                let mut delay = DelayJc::default();
                if let Some(time) = parts.next() {
                    delay.delay_ns = time_ns(time).ok_or(error("the delay is no time up to 1s"))?;
                }
                if let Some(restarts) = parts.next() {
                    delay.max_restarts =
                        restarts.parse().map_err(|_| error("the restarts are no number"))?;
                }
                Self::Delay(delay)
            }
            "pid" => {
                let set_point = match parts.next() {
                    None => None,
                    Some(callers) => Some(
                        callers
                            .parse()
                            .ok()
                            .filter(|&n| n > 0)
                            .ok_or(error("the set point is no number above 0"))?,
                    ),
                };
                Self::Pid { set_point }
            }
            _ => return Err(error("there is no such policy")),
        };
        match parts.next() {
            None => Ok(policy),
            Some(_) => Err(error("it has a part too many")),
        }
    }
}

impl GatePolicy {
    /// Reads what [`Display`](fmt::Display) writes; `None` of anything else.
    pub fn from_environment(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let policy = match parts.next()? {
            "off" => Self::Off,
            "auto" => Self::Auto,
            "delay" => Self::Delay(DelayJc {
                delay_ns: parts.next()?.strip_suffix("ns")?.parse().ok()?,
                max_restarts: parts.next()?.parse().ok()?,
            }),
            "pid" => Self::Pid {
                set_point: match parts.next() {
                    Some(callers) => Some(callers.parse().ok()?),
                    None => None,
                },
            },
            _ => return None,
        };
        parts.next().is_none().then_some(policy)
    }
}

impl fmt::Display for GatePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Auto => f.write_str("auto"),
            Self::Delay(delay) => write!(f, "delay:{}ns:{}", delay.delay_ns, delay.max_restarts),
            Self::Pid { set_point: None } => f.write_str("pid"),
            Self::Pid { set_point: Some(callers) } => write!(f, "pid:{callers}"),
        }
    }
}

#[cfg(feature = "text")]
/// A time such as `16ms`, at most one second; `None` of anything else.
fn time_ns(text: &str) -> Option<u64> {
    parse_duration_ns(text).ok().filter(|&ns| ns <= 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_policy_survives_the_environment() {
        for text in ["off", "auto", "delay", "delay:16ms", "delay:250us:3", "pid", "pid:32"] {
            let policy: GatePolicy = text.parse().unwrap();
            assert_eq!(policy.to_string().parse(), Ok(policy), "{text}");
            assert_eq!(GatePolicy::from_environment(&policy.to_string()), Some(policy));
        }
    }

    #[test]
    fn a_wrong_policy_names_what_is_wrong() {
        for (text, reason) in [
            ("fast", "no such policy"),
            ("delay:5", "no time"),
            ("delay:2s", "no time"),
            ("delay:1ms:x", "no number"),
            ("pid:0", "above 0"),
            ("auto:1", "too many"),
        ] {
            let error = text.parse::<GatePolicy>().unwrap_err().to_string();
            assert!(error.contains(text) && error.contains(reason), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".*") {
            let _ = text.parse::<GatePolicy>();
        }
    }
}
