//! Durations and sizes of options, in the notation of [`luc_units`].

use crate::error::BenchError;

/// Parses a duration such as `20us` or `1.5ms`, at most a day, in ns. Errors name `option`.
///
/// # Errors
/// [`BenchError::Input`] if `text` is no duration in this range.
pub fn duration_ns(option: &str, text: &str) -> Result<u64, BenchError> {
    luc_units::parse_duration_ns(text).ok().filter(|&ns| ns <= 86_400_000_000_000).ok_or_else(
        || BenchError::Input {
            option: format!("{option} '{text}'"),
            reason: "not a duration between 0 and a day",
            advice: "write a number with ns, us, ms, s or m, as in 1.5ms",
        },
    )
}

/// Converts seconds, greater than 0 and at most a day, to nanoseconds. The error names `option`.
///
/// # Errors
/// [`BenchError::Input`] if it is out of range.
pub fn seconds_ns(option: &str, seconds: f64) -> Result<u64, BenchError> {
    if seconds > 0.0 && seconds <= 86_400.0 {
        return Ok((seconds * 1e9).round() as u64);
    }
    Err(BenchError::Input {
        option: format!("{option} {seconds}"),
        reason: "not a time between 0 and 86400 seconds",
        advice: "write a number of seconds, as in 10 or 0.5",
    })
}

/// Parses a file size such as `64k`, at most 1 GiB, in bytes. Errors name `option`.
///
/// # Errors
/// [`BenchError::Input`] if `text` is no size in this range.
pub fn file_size_bytes(option: &str, text: &str) -> Result<u64, BenchError> {
    luc_units::parse_size_bytes(text).ok().filter(|&bytes| bytes <= 1 << 30).ok_or_else(|| {
        BenchError::Input {
            option: format!("{option} '{text}'"),
            reason: "not a file size between 0 and 1G",
            advice: "write a number of bytes or one with k or m, as in 64k",
        }
    })
}

/// Parses a size such as `128K` without a limit, in bytes. Errors name `option`.
///
/// # Errors
/// [`BenchError::Input`] if `text` is no size.
pub fn size_bytes(option: &str, text: &str) -> Result<u64, BenchError> {
    luc_units::parse_size_bytes(text).map_err(|_| BenchError::Input {
        option: format!("{option} '{text}'"),
        reason: "not a size",
        advice: "write a number of bytes or one with K, M or G, as in 128K",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_is_named() {
        assert_eq!(duration_ns("--think", "1.5ms").ok(), Some(1_500_000));
        assert_eq!(file_size_bytes("--file-size", "4k").ok(), Some(4096));
        assert_eq!(size_bytes("--create", "192M").ok(), Some(192 << 20));
        assert!(size_bytes("--create", "much").is_err());
        assert_eq!(seconds_ns("--seconds", 0.5).ok(), Some(500_000_000));
        for text in ["", "5", "ms", "-1s", "2 parsecs", "9999999s"] {
            let error = duration_ns("--think", text).expect_err(text);
            assert!(error.to_string().contains("--think"), "{error}");
        }
        for text in ["", "k", "-1", "1x", "2g"] {
            assert!(file_size_bytes("--file-size", text).is_err(), "{text}");
        }
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e6] {
            assert!(seconds_ns("--seconds", seconds).is_err(), "{seconds}");
        }
    }
}
