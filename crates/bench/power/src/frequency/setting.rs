//! A value of the axis `frequency`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Error in the text of a [`FrequencySetting`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "frequency '{0}': write a frequency (\"2.4GHz\", \"800MHz\"), \"as-is\", or \"throttle:50%\" (1 to 99, no \
     frequency but a quota of processor time)"
)]
pub struct FrequencySettingError(String);

/// Processor frequency that a point of a sweep asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum FrequencySetting {
    /// Settings from before the sweep.
    AsIs,
    /// Every processor at this frequency.
    Khz(u64),
    /// No frequency: this percentage of all processors' time, by a cgroup.
    ThrottlePercent(u8),
}

impl FrequencySetting {
    pub(super) fn from_khz(khz: u64) -> Self {
        Self::Khz(khz)
    }

    /// Returns the frequency in kHz, if it is one.
    #[must_use]
    pub fn khz(&self) -> Option<u64> {
        match *self {
            Self::Khz(khz) => Some(khz),
            Self::AsIs | Self::ThrottlePercent(_) => None,
        }
    }

    /// Returns the share of the processors' time in percent, if it is a throttle.
    #[must_use]
    pub fn share(&self) -> Option<u8> {
        match *self {
            Self::ThrottlePercent(percent) => Some(percent),
            Self::AsIs | Self::Khz(_) => None,
        }
    }

    /// Returns its name in keys and reports. A throttle's name says that it is no frequency.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::ThrottlePercent(percent) => format!("throttle:{percent}%(not-a-frequency)"),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for FrequencySetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AsIs => f.write_str("as-is"),
            Self::ThrottlePercent(percent) => write!(f, "throttle:{percent}%"),
            Self::Khz(khz) => {
                let (whole, rest) = (khz / 1_000_000, khz % 1_000_000);
                let digits = format!("{rest:06}");
                match digits.trim_end_matches('0') {
                    "" => write!(f, "{whole}GHz"),
                    digits => write!(f, "{whole}.{digits}GHz"),
                }
            }
        }
    }
}

impl FromStr for FrequencySetting {
    type Err = FrequencySettingError;

    fn from_str(text: &str) -> Result<Self, FrequencySettingError> {
        let wrong = || FrequencySettingError(text.to_owned());
        if text == "as-is" {
            return Ok(Self::AsIs);
        }
        if let Some(percent) =
            text.strip_prefix("throttle:").and_then(|rest| rest.strip_suffix('%'))
        {
            let percent: u8 = percent.parse().map_err(|_| wrong())?;
            return (1..=99)
                .contains(&percent)
                .then_some(Self::ThrottlePercent(percent))
                .ok_or_else(wrong);
        }
        let units = [("GHz", 1e6), ("MHz", 1e3), ("kHz", 1.0)];
        let (number, factor) = units
            .iter()
            .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))
            .ok_or_else(wrong)?;
        let is_plain = number.chars().all(|digit| digit.is_ascii_digit() || digit == '.');
        let khz = number
            .parse::<f64>()
            .ok()
            .filter(|_| is_plain)
            .map(|number| (number * factor).round())
            .filter(|khz| (1.0..=1e8).contains(khz));
        khz.map(|khz| Self::Khz(khz as u64)).ok_or_else(wrong)
    }
}

impl TryFrom<String> for FrequencySetting {
    type Error = FrequencySettingError;

    fn try_from(text: String) -> Result<Self, FrequencySettingError> {
        text.parse()
    }
}

impl From<FrequencySetting> for String {
    fn from(setting: FrequencySetting) -> Self {
        setting.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_plan_may_say() {
        for (text, setting, shown) in [
            ("as-is", FrequencySetting::AsIs, "as-is"),
            ("2.4GHz", FrequencySetting::Khz(2_400_000), "2.4GHz"),
            ("2401MHz", FrequencySetting::Khz(2_401_000), "2.401GHz"),
            ("3000000kHz", FrequencySetting::Khz(3_000_000), "3GHz"),
            ("800MHz", FrequencySetting::Khz(800_000), "0.8GHz"),
            (
                "throttle:50%",
                FrequencySetting::ThrottlePercent(50),
                "throttle:50%(not-a-frequency)",
            ),
        ] {
            assert_eq!(text.parse::<FrequencySetting>().expect(text), setting);
            assert_eq!(setting.label(), shown);
            let again: FrequencySetting = setting.to_string().parse().expect("as it is written");
            assert_eq!(again, setting);
        }
    }

    #[test]
    fn what_it_may_not() {
        for text in [
            "",
            "2.4",
            "GHz",
            "-1GHz",
            "1e3GHz",
            "infGHz",
            "0GHz",
            "900GHz",
            "throttle:0%",
            "throttle:100%",
            "throttle:50",
            "fast",
        ] {
            let error = text.parse::<FrequencySetting>().expect_err(text).to_string();
            assert!(error.contains(&format!("'{text}'")) && !error.contains('\n'), "{error}");
        }
    }
}
