//! Figures as people read them.

use std::fmt;

use luc_explain::{Evidence, Unit};

/// A time: `950 ns`, `12.6 ms`, `1.25 s`.
#[derive(Clone, Copy, Debug)]
pub struct Time(pub f64);

impl From<u64> for Time {
    fn from(ns: u64) -> Self {
        Self(ns as f64)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            ns if ns < 1e3 => (ns, "ns"),
            ns if ns < 1e6 => (ns / 1e3, "us"),
            ns if ns < 1e9 => (ns / 1e6, "ms"),
            ns => (ns / 1e9, "s"),
        };
        f.pad(&format!("{} {unit}", three_digits(value)))
    }
}

/// A size: `4 KiB`, `1.5 GiB`.
#[derive(Clone, Copy, Debug)]
pub struct Size(pub f64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = self.0;
        let mut units = ["B", "KiB", "MiB", "GiB", "TiB"].into_iter().peekable();
        let mut unit = "B";
        while let Some(next) = units.next() {
            unit = next;
            if value < 1024.0 || units.peek().is_none() {
                break;
            }
            value /= 1024.0;
        }
        f.pad(&format!("{} {unit}", three_digits(value)))
    }
}

/// A fraction as a percentage: `46.1 %`.
#[derive(Clone, Copy, Debug)]
pub struct Share(pub f64);

impl Share {
    /// A part of a whole; 0 of nothing.
    pub fn of(part: u64, whole: u64) -> Self {
        if whole == 0 {
            Self(0.0)
        } else {
            Self(part as f64 / whole as f64)
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.1} %", self.0 * 100.0))
    }
}

/// A figure with its unit.
pub fn evidence(evidence: &Evidence) -> String {
    let value = evidence.value;
    match evidence.unit {
        Unit::Ns => Time(value).to_string(),
        Unit::Share => Share(value).to_string(),
        Unit::Count => three_digits(value),
        Unit::PerSecond => format!("{}/s", three_digits(value)),
        Unit::Bytes => Size(value).to_string(),
    }
}

/// With three significant digits, and whole above 100.
pub(crate) fn three_digits(value: f64) -> String {
    // The sum of nothing is -0.0, which has a sign.
    let value = value + 0.0;
    match value.abs() {
        size if size >= 99.95 || size == size.trunc() => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_unit() {
        let shown: Vec<String> = [0.0, 950.0, 12_640.0, 999_960.0, 12.6e6, 1.254e9, 300e9]
            .into_iter()
            .map(|ns| Time(ns).to_string())
            .collect();
        assert_eq!(
            shown,
            [
                "0 ns", "950 ns", "12.6 us", "1000 us", "12.6 ms", "1.25 s", "300 s"
            ]
        );
    }

    #[test]
    fn a_sum_of_nothing_has_no_sign() {
        let nothing: [f64; 0] = [];
        assert_eq!(Time(nothing.iter().sum()).to_string(), "0 ns");
    }

    #[test]
    fn sizes_are_binary() {
        assert_eq!(Size(4096.0).to_string(), "4 KiB");
        assert_eq!(Size(1.5 * 1024.0 * 1024.0).to_string(), "1.50 MiB");
        assert_eq!(Size(5e15).to_string(), "4547 TiB");
    }

    #[test]
    fn a_share_of_nothing_is_nothing() {
        assert_eq!(Share::of(1, 0).to_string(), "0.0 %");
        assert_eq!(Share::of(461, 1000).to_string(), "46.1 %");
    }
}
