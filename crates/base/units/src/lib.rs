//! Sizes and durations as people write them: `512M`, `1GiB`, `100us`, `1.5ms`.
//!
//! One grammar reads them in every option and file. [`number_formats`] prints them for people, [`plain()`] takes
//! from names what would steer a terminal. [`metric_families`] prints text for collectors of metrics. [`OnPath`] makes
//! errors of files. [`text_output`](mod@text_output) prints where nobody may read.
//!
//! ```
//! use luc_units::number_formats::FormattedTime;
//! use luc_units::{parse_duration_ns, parse_size_bytes};
//!
//! assert_eq!(parse_duration_ns("1.5ms"), Ok(1_500_000));
//! assert_eq!(parse_size_bytes("64k"), Ok(65_536));
//! assert_eq!(FormattedTime::from(1_500_000).to_string(), "1.50 ms");
//! ```

mod file_operation_error;
pub mod metric_families;
pub mod number_formats;
mod safe_names;
pub mod text_output;

pub use file_operation_error::{FileOperationError, OnPath};
pub use safe_names::{is_steering, plain};

/// A size or a duration that could not be read. The text names the input and shows a right one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    #[error("size '{0}' is not a number with a unit: write it like 512M, 1G or 4096")]
    Size(String),
    #[error("duration '{0}' is not a number with a unit: write it like 100us, 6ms or 1.5s")]
    Duration(String),
    #[error("'{0}' is too large for 64 bits: choose a smaller value")]
    TooLarge(String),
}

const SIZE_UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("kb", 1_000),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("mb", 1_000_000),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("gb", 1_000_000_000),
    ("t", 1 << 40),
    ("tib", 1 << 40),
    ("tb", 1_000_000_000_000),
];

const TIME_UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
];

/// Reads a size. Units in any case: none or `B` for bytes; `K M G T` (also `KiB` ...) are powers
/// of 1024; `KB MB GB TB` are powers of 1000. Fractions are allowed (`1.5G`), rounded to a byte.
///
/// # Errors
/// [`UnitError::Size`] or [`UnitError::TooLarge`], naming the input.
pub fn parse_size_bytes(text: &str) -> Result<u64, UnitError> {
    parse(text, SIZE_UNITS, UnitError::Size)
}

/// Reads a duration into nanoseconds. Units: `ns`, `us`, `ms`, `s`, `m`; only `0` needs none.
/// Fractions are allowed (`1.5ms`), rounded to a nanosecond.
///
/// # Errors
/// [`UnitError::Duration`] or [`UnitError::TooLarge`], naming the input.
pub fn parse_duration_ns(text: &str) -> Result<u64, UnitError> {
    if text.trim() == "0" {
        return Ok(0);
    }
    parse(text, TIME_UNITS, UnitError::Duration)
}

fn parse(
    text: &str,
    units: &[(&str, u64)],
    malformed: fn(String) -> UnitError,
) -> Result<u64, UnitError> {
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let unit = unit.trim_start().to_lowercase();
    let scale = units
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, scale)| *scale)
        .ok_or_else(|| malformed(text.to_owned()))?;
    let (whole, fraction) = match number.split_once('.') {
        None => (number, ""),
        Some((whole, fraction)) if !fraction.is_empty() && !fraction.contains('.') => {
            (whole, fraction)
        }
        Some(_) => return Err(malformed(text.to_owned())),
    };
    if whole.is_empty() {
        return Err(malformed(text.to_owned()));
    }
    let too_large = || UnitError::TooLarge(text.to_owned());
    let whole: u64 = whole.parse().map_err(|_| too_large())?;
    let mut value = u128::from(whole) * u128::from(scale);
    if !fraction.is_empty() {
        // Eighteen digits are finer than any unit here; the rest cannot matter.
        let digits: String = fraction.chars().take(18).collect();
        let numerator: u64 = digits.parse().map_err(|_| malformed(text.to_owned()))?;
        let denominator = 10u128.pow(digits.len() as u32);
        value += (u128::from(numerator) * u128::from(scale) + denominator / 2) / denominator;
    }
    u64::try_from(value).map_err(|_| too_large())
}

/// Writes a size with the largest binary unit that divides it: `1G`, `1536M`, `4097`.
pub fn format_size(bytes: u64) -> String {
    for (unit, scale) in [("T", 1u64 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)] {
        if bytes >= scale && bytes.is_multiple_of(scale) {
            return format!("{}{unit}", bytes / scale);
        }
    }
    bytes.to_string()
}

/// Writes a duration with a unit that keeps it short: `6ms`, `1.5ms`, `100us`, `0`.
pub fn format_duration(ns: u64) -> String {
    for (unit, scale) in [("s", 1_000_000_000u64), ("ms", 1_000_000), ("us", 1_000)] {
        if ns >= scale {
            let text = format!("{:.3}", ns as f64 / scale as f64);
            let text = text.trim_end_matches('0').trim_end_matches('.');
            return format!("{text}{unit}");
        }
    }
    if ns == 0 { "0".to_owned() } else { format!("{ns}ns") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_with_and_without_units() {
        for (text, bytes) in [
            ("4096", 4096),
            ("512b", 512),
            ("1k", 1024),
            ("1KB", 1000),
            ("1G", 1 << 30),
            ("1.5GiB", 3 << 29),
            (" 64 MiB ", 64 << 20),
        ] {
            assert_eq!(parse_size_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "G", "1X", "-1G", "1..5G", "1.G", ".5G", "1e9", "ten"] {
            assert_eq!(parse_size_bytes(text), Err(UnitError::Size(text.into())), "{text}");
        }
        assert_eq!(parse_size_bytes("99999999T"), Err(UnitError::TooLarge("99999999T".into())));
        assert!(matches!(parse_size_bytes("99999999999999999999"), Err(UnitError::TooLarge(_))));
    }

    #[test]
    fn durations_need_a_unit() {
        for (text, ns) in [
            ("0", 0),
            ("100us", 100_000),
            ("100µs", 100_000),
            ("6ms", 6_000_000),
            ("1.5ms", 1_500_000),
            ("2 s", 2_000_000_000),
            ("7ns", 7),
        ] {
            assert_eq!(parse_duration_ns(text), Ok(ns), "{text}");
        }
        for text in ["5", "6 parsecs", "ms", "-1ms", ""] {
            assert_eq!(parse_duration_ns(text), Err(UnitError::Duration(text.into())), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(bytes: u64, us in 0u64..10_000_000) {
            prop_assert_eq!(parse_size_bytes(&format_size(bytes)), Ok(bytes));
            let ns = us * 1000;
            let back = parse_duration_ns(&format_duration(ns)).expect("own output");
            prop_assert!(back.abs_diff(ns) <= ns / 1000);
        }

        #[test]
        fn no_input_panics(text in "\\PC{0,20}") {
            let _ = parse_size_bytes(&text);
            let _ = parse_duration_ns(&text);
        }
    }
}
