//! Formats titles, times and counts.

use std::fmt;

use luc_units::number_formats::FormattedTime;

/// Style of printed text: with colours or without.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextStyle(pub(super) bool);

impl TextStyle {
    pub(super) fn title(self, f: &mut fmt::Formatter<'_>, title: &str) -> fmt::Result {
        if self.0 { writeln!(f, "\n\x1b[1m{title}\x1b[0m") } else { writeln!(f, "\n{title}") }
    }
}

/// Formats a time that may be negative.
pub(crate) fn signed(ns: i64) -> String {
    let time = FormattedTime(ns.unsigned_abs() as f64);
    if ns < 0 { format!("-{time}") } else { time.to_string() }
}

/// Formats a value; a dash for `None`.
pub(crate) fn dash_or<T>(value: Option<T>, format: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), format)
}

/// Formats a time; a dash for `None`.
pub(crate) fn time(ns: Option<u64>) -> String {
    dash_or(ns, |ns| FormattedTime::from(ns).to_string())
}

/// Formats a count with its noun, which is in the plural but for 1.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_sign_or_a_dash() {
        assert_eq!(signed(-1_500), "-1.50 us");
        assert_eq!(signed(0), "0 ns");
        assert_eq!(signed(i64::MIN), "-9223372037 s");
        assert_eq!(time(None), "-");
        assert_eq!(time(Some(2_000_000)), "2 ms");
    }

    #[test]
    fn one_is_no_plural() {
        assert_eq!(count(1, "end", "ends"), "1 end");
        assert_eq!(count(0, "end", "ends"), "0 ends");
    }
}
