//! Formats of figures for people: times, sizes, shares, digits.

use std::fmt;

/// A time in nanoseconds, shown with a fitting unit: `950 ns`, `12.6 ms`, `1.25 s`.
#[derive(Clone, Copy, Debug)]
pub struct FormattedTime(pub f64);

impl FormattedTime {
    #[must_use]
    pub fn from_us(us: f64) -> Self {
        Self(us * 1e3)
    }
}

impl From<u64> for FormattedTime {
    fn from(ns: u64) -> Self {
        Self(ns as f64)
    }
}

impl fmt::Display for FormattedTime {
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
pub struct FormattedSize(pub f64);

impl fmt::Display for FormattedSize {
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
pub struct FormattedShare(pub f64);

impl FormattedShare {
    /// The share of a part in a whole; 0 if the whole is 0.
    #[must_use]
    pub fn of(part: u64, whole: u64) -> Self {
        if whole == 0 { Self(0.0) } else { Self(part as f64 / whole as f64) }
    }
}

impl fmt::Display for FormattedShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.1} %", self.0 * 100.0))
    }
}

/// Formats a number with three significant digits, and above 100 as a whole number.
#[must_use]
pub fn three_digits(value: f64) -> String {
    // The sum of nothing is -0.0, which has a sign.
    let value = value + 0.0;
    match value.abs() {
        size if size >= 99.95 || size == size.trunc() => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Formats a number with about four significant digits, and above 1000 as a whole number.
#[must_use]
pub fn digits(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return "-".to_owned();
    }
    if size != 0.0 && size < 1e-4 {
        return format!("{value:.2e}");
    }
    let is_whole = (size - size.round()).abs() <= 1e-9 * size;
    let places = match size {
        size if size >= 999.5 || is_whole => 0,
        size if size >= 99.95 => 1,
        size if size >= 0.9995 => 2,
        _ => 4,
    };
    // The sum of nothing is -0.0, which has a sign.
    format!("{:.places$}", value + 0.0)
}

/// Date and time of seconds since 1970, by the inverse of days_from_civil
/// (<https://howardhinnant.github.io/date_algorithms.html>).
#[must_use]
pub fn utc(seconds: u64) -> String {
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// A figure with about four digits, as tables show it.
#[derive(Debug, Clone, Copy)]
pub struct FourDigits(pub f64);

impl fmt::Display for FourDigits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = (3 - self.0.abs().max(1e-9).log10().floor() as i32).clamp(0, 9);
        write!(f, "{:.*}", digits.unsigned_abs() as usize, self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_unit() {
        let shown: Vec<String> = [0.0, 950.0, 12_640.0, 999_960.0, 12.6e6, 1.254e9, 300e9]
            .into_iter()
            .map(|ns| FormattedTime(ns).to_string())
            .collect();
        assert_eq!(shown, ["0 ns", "950 ns", "12.6 us", "1000 us", "12.6 ms", "1.25 s", "300 s"]);
    }

    #[test]
    fn a_sum_of_nothing_has_no_sign() {
        let nothing: [f64; 0] = [];
        assert_eq!(FormattedTime(nothing.iter().sum()).to_string(), "0 ns");
    }

    #[test]
    fn sizes_are_binary() {
        assert_eq!(FormattedSize(4096.0).to_string(), "4 KiB");
        assert_eq!(FormattedSize(1.5 * 1024.0 * 1024.0).to_string(), "1.50 MiB");
        assert_eq!(FormattedSize(5e15).to_string(), "4547 TiB");
    }

    #[test]
    fn a_share_of_nothing_is_nothing() {
        assert_eq!(FormattedShare::of(1, 0).to_string(), "0.0 %");
        assert_eq!(FormattedShare::of(461, 1000).to_string(), "46.1 %");
    }

    #[test]
    fn digits_that_matter() {
        let shown: Vec<String> =
            [0.0, 50.0 * 1.1, 0.012345, 1.2345, 12.345, 123.45, 12345.6, 2e-7, f64::NAN]
                .into_iter()
                .map(digits)
                .collect();
        assert_eq!(shown, ["0", "55", "0.0123", "1.23", "12.35", "123.5", "12346", "2.00e-7", "-"]);
    }

    #[test]
    fn dates_are_those_of_date() {
        // date -u -d @N '+%F %T'
        assert_eq!(utc(0), "1970-01-01 00:00:00");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(utc(1_795_294_296), "2026-11-21 20:51:36");
    }
}
