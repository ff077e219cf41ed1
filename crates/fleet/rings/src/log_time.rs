//! Times as they stand in logs.

use std::fmt;
use std::str::FromStr;

use chrono::DateTime;
use serde::{Serialize, Serializer};

/// Error of a text that is no [`LogTime`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogTime(pub u64);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no time: give one with its distance from UTC, like 2026-01-31T23:59:59.5Z or 2026-01-31T23:59:59+01:00, or seconds since 1970"
)]
pub struct NotALogTime(String);

impl FromStr for LogTime {
    type Err = NotALogTime;

    /// Parses a date and time with its distance from UTC (RFC 3339; a space may replace the T, a comma the point), or
    /// seconds since 1970.
    fn from_str(text: &str) -> Result<Self, NotALogTime> {
        let plain = text.replacen(',', ".", 1);
        let of_date = || {
            let nanoseconds = DateTime::parse_from_rfc3339(&plain).ok()?.timestamp_nanos_opt()?;
            u64::try_from(nanoseconds).ok()
        };
        parse_seconds(&plain).or_else(of_date).map(Self).ok_or_else(|| NotALogTime(text.to_owned()))
    }
}

/// Parses decimal seconds to nanoseconds.
fn parse_seconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit());
    if !are_digits(whole) || !are_digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let nanoseconds: u64 = format!("{fraction:0<9}").parse().ok()?;
    let whole: u64 = whole.parse().ok()?;
    whole.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

impl fmt::Display for LogTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match i64::try_from(self.0) {
            Ok(nanoseconds) => write!(f, "{:?}", DateTime::from_timestamp_nanos(nanoseconds)),
            Err(_) => write!(f, "{} ns", self.0),
        }
    }
}

impl Serialize for LogTime {
    /// Serializes the displayed text.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_logs() {
        let read = |text: &str| text.parse::<LogTime>().map(|moment| moment.0).ok();
        assert_eq!(read("1700000000"), Some(1_700_000_000_000_000_000));
        assert_eq!(read("1700000000.25"), Some(1_700_000_000_250_000_000));
        for text in
            ["2023-11-14T22:13:20.25Z", "2023-11-14 22:13:20,250Z", "2023-11-15T00:13:20.250+02:00"]
        {
            assert_eq!(read(text), Some(1_700_000_000_250_000_000), "{text}");
        }
        for text in [
            "2023-11-14T22:13:20",
            "22:13",
            "-1",
            "1.",
            "99999999999999",
            "1969-01-01T00:00:00Z",
            "",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        let moment = LogTime(1_700_000_000_250_000_000);
        assert_eq!(moment.to_string(), "2023-11-14T22:13:20.250Z");
    }
}
