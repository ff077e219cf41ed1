//! The paper's rules, with changes for experiments: `PEAK[,KEY=VALUE]...`.
//!
//! | key | what | as printed |
//! |---|---|---|
//! | `point=RATE:TASKS` | a Vector Point; given more than once, all of them | the one that is printed |
//! | `order=highest`, `lowest`, `arrival` | whose sensitivity is suspended first | `highest` |
//! | `tuning=on`, `off` | whether `dtimeslice` adapts | `on` |
//! | `resume=PART%` | RESUME_GROUP, of all tasks; one at least | `25%` |
//! | `check=TIME` | CHECK_INTERVAL | `1s` |

use std::fmt;
use std::str::FromStr;

use luc_control::throttle::vector_points::VectorPoint;
use luc_control::throttle::wise_throttling::{SuspendFirst, WiseConfig};
use luc_units::{format_duration, format_size, parse_duration_ns, parse_size_bytes};

/// The paper's rules for one disk, with changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WiseChoice {
    /// Peak rate of the disk, bytes per second.
    pub peak_bytes_per_s: u64,
    /// Vector Points: bytes per second and tasks; empty: the printed one, as a part of the peak.
    pub points: Vec<(u64, u32)>,
    pub suspend_first: SuspendFirst,
    pub self_tuning: bool,
    /// RESUME_GROUP, percent of all tasks.
    pub resume_percent: u8,
    pub check_ns: u64,
}

/// RESUME_GROUP and CHECK_INTERVAL of the paper.
const RESUME_PERCENT: u8 = 25;
const CHECK_NS: u64 = 1_000_000_000;
const KEYS: &str =
    "point=RATE:TASKS, order=highest|lowest|arrival, tuning=on|off, resume=PART%, check=TIME";

impl WiseChoice {
    /// Returns the rules as the WiseThrottling paper prints them, for a disk of this peak rate.
    #[must_use]
    pub fn printed(peak_bytes_per_s: u64) -> Self {
        Self {
            peak_bytes_per_s,
            points: Vec::new(),
            suspend_first: SuspendFirst::MostSensitive,
            self_tuning: true,
            resume_percent: RESUME_PERCENT,
            check_ns: CHECK_NS,
        }
    }

    /// Settings of the policy. The only Vector Point that the paper prints is <24.3 MB/s, 2> on its disk of 90 MB/s.
    pub(super) fn config(&self) -> WiseConfig {
        let peak_bytes_per_s = self.peak_bytes_per_s as f64;
        let point = |(rate, tasks): &(u64, u32)| VectorPoint {
            demand_bytes_per_s: *rate as f64,
            tasks: *tasks,
        };
        let printed = VectorPoint { demand_bytes_per_s: peak_bytes_per_s * 24.3 / 90.0, tasks: 2 };
        let points = match &self.points[..] {
            [] => vec![printed],
            points => points.iter().map(point).collect(),
        };
        WiseConfig {
            check_interval_ns: self.check_ns,
            resume_group: f64::from(self.resume_percent) / 100.0,
            suspend_first: self.suspend_first,
            self_tuning: self.self_tuning,
            ..WiseConfig::paper(peak_bytes_per_s, points)
        }
    }

    fn set(&mut self, word: &str) -> Result<(), String> {
        let unknown = || format!("it has no '{word}': it takes {KEYS}");
        match word.split_once('=').ok_or_else(unknown)? {
            ("point", value) => {
                let (rate, tasks) = value.split_once(':').ok_or_else(unknown)?;
                let rate = parse_size_bytes(rate).map_err(|error| error.to_string())?;
                match tasks.parse() {
                    Ok(tasks) if tasks >= 2 => self.points.push((rate, tasks)),
                    _ => return Err(unknown()),
                }
            }
            ("order", "highest") => self.suspend_first = SuspendFirst::MostSensitive,
            ("order", "lowest") => self.suspend_first = SuspendFirst::LeastSensitive,
            ("order", "arrival") => self.suspend_first = SuspendFirst::Oldest,
            ("tuning", "on") => self.self_tuning = true,
            ("tuning", "off") => self.self_tuning = false,
            ("resume", value) => {
                let part = value.strip_suffix('%').and_then(|part| part.parse().ok());
                let part = part.filter(|part| *part <= 100);
                self.resume_percent = part.ok_or_else(unknown)?;
            }
            ("check", value) => match parse_duration_ns(value) {
                Ok(0) => return Err("a check of no time".to_owned()),
                Ok(ns) => self.check_ns = ns,
                Err(error) => return Err(error.to_string()),
            },
            _ => return Err(unknown()),
        }
        Ok(())
    }
}

impl FromStr for WiseChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split(',');
        let peak = words.next().unwrap_or_default();
        let mut choice = match parse_size_bytes(peak) {
            Ok(0) => return Err("a disk without any rate".to_owned()),
            Ok(bytes) => Self::printed(bytes),
            Err(error) => return Err(error.to_string()),
        };
        words.try_for_each(|word| choice.set(word))?;
        Ok(choice)
    }
}

impl fmt::Display for WiseChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", format_size(self.peak_bytes_per_s))?;
        for (rate, tasks) in &self.points {
            write!(f, ",point={}:{tasks}", format_size(*rate))?;
        }
        match self.suspend_first {
            SuspendFirst::MostSensitive => {}
            SuspendFirst::LeastSensitive => write!(f, ",order=lowest")?,
            SuspendFirst::Oldest => write!(f, ",order=arrival")?,
        }
        if !self.self_tuning {
            write!(f, ",tuning=off")?;
        }
        if self.resume_percent != RESUME_PERCENT {
            write!(f, ",resume={}%", self.resume_percent)?;
        }
        if self.check_ns != CHECK_NS {
            write!(f, ",check={}", format_duration(self.check_ns))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_change_the_settings_and_nothing_else() {
        let plain: WiseChoice = "90MB".parse().expect("a peak");
        assert_eq!(plain, WiseChoice::printed(90_000_000));
        let config = plain.config();
        assert_eq!(config.vector_points[0].tasks, 2);
        assert!((config.vector_points[0].demand_bytes_per_s - 24.3e6).abs() < 1.0);
        let other: WiseChoice = "90MB,point=0:2,order=arrival,check=100ms".parse().expect("keys");
        let config = other.config();
        assert_eq!(config.vector_points.len(), 1);
        assert_eq!(config.suspend_first, SuspendFirst::Oldest);
        assert_eq!(config.check_interval_ns, 100_000_000);
        assert!(config.self_tuning && (config.resume_group - 0.25).abs() < 1e-9);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for text in [
            "1M,",
            "1M,point=1M",
            "1M,point=1M:1",
            "1M,resume=1",
            "1M,resume=101%",
            "1M,check=0",
            "1M,order=x",
        ] {
            assert!(text.parse::<WiseChoice>().is_err(), "{text}");
        }
    }
}
