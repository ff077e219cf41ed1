//! Durations and sizes as people write them: `20us`, `1.5s`, `64k`, `1MiB`.

use crate::error::BenchError;

/// Nanoseconds of a duration: a number followed by `ns`, `us`, `ms`, `s` or `m`; a bare 0 needs no
/// unit. `option` is named in the error.
///
/// # Errors
/// [`BenchError::Input`] if `text` is no such duration or is longer than a day.
pub fn duration_ns(option: &str, text: &str) -> Result<u64, BenchError> {
    const DAY_NS: f64 = 86_400e9;
    let (number, unit) = split(text);
    let scale = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        "" if number.parse() == Ok(0.0) => 1.0,
        _ => f64::NAN,
    };
    number
        .parse::<f64>()
        .ok()
        .map(|value| value * scale)
        .filter(|ns| (0.0..=DAY_NS).contains(ns))
        .map(|ns| ns.round() as u64)
        .ok_or_else(|| BenchError::Input {
            option: format!("{option} {text:?}"),
            reason: "not a duration between 0 and a day",
            advice: "write a number with ns, us, ms, s or m, as in 1.5ms",
        })
}

/// Nanoseconds of a number of seconds greater than 0, at most a day. `option` is named in the
/// error.
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

/// Bytes of a size: a whole or decimal number followed by nothing or `b`, `k`, `m`, `g` (powers of
/// 1024, also as `kb` or `kib`, in any case). `option` is named in the error.
///
/// # Errors
/// [`BenchError::Input`] if `text` is no such size or is above 1 TiB.
pub fn size_bytes(option: &str, text: &str) -> Result<u64, BenchError> {
    const TIB: f64 = (1_u64 << 40) as f64;
    let lower = text.to_ascii_lowercase();
    let (number, unit) = split(&lower);
    let scale = match unit {
        "" | "b" => 1.0,
        "k" | "kb" | "kib" => 1024.0,
        "m" | "mb" | "mib" => 1024.0 * 1024.0,
        "g" | "gb" | "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => f64::NAN,
    };
    number
        .parse::<f64>()
        .ok()
        .map(|value| value * scale)
        .filter(|bytes| (0.0..=TIB).contains(bytes))
        .map(|bytes| bytes.round() as u64)
        .ok_or_else(|| BenchError::Input {
            option: format!("{option} {text:?}"),
            reason: "not a size between 0 and 1 TiB",
            advice: "write a number of bytes or one with k, m or g, as in 64k",
        })
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_in_every_unit() {
        for (text, ns) in [
            ("0", 0),
            ("5ns", 5),
            ("20us", 20_000),
            ("1.5 ms", 1_500_000),
            ("2s", 2_000_000_000),
            ("1m", 60_000_000_000),
        ] {
            assert_eq!(duration_ns("--think", text).ok(), Some(ns), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_named() {
        for text in [
            "",
            "5",
            "ms",
            "-1s",
            "1e3s",
            "2 parsecs",
            "1..5s",
            "9999999s",
            "NaNs",
        ] {
            let error = duration_ns("--think", text).map_err(|error| error.to_string());
            assert!(error.is_err_and(|line| line.contains("--think")), "{text}");
        }
    }

    #[test]
    fn sizes_in_every_unit() {
        for (text, bytes) in [
            ("0", 0),
            ("1k", 1024),
            ("64KiB", 65_536),
            ("1.5m", 1_572_864),
            ("2G", 1 << 31),
        ] {
            assert_eq!(size_bytes("--file-size", text).ok(), Some(bytes), "{text}");
        }
        for text in ["", "k", "-1", "1x", "2t", "9999g"] {
            assert!(size_bytes("--file-size", text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in ".{0,12}") {
            let _ = duration_ns("--x", &text);
            let _ = size_bytes("--x", &text);
        }

        #[test]
        fn whole_microseconds_are_exact(us in 0_u64..1_000_000_000) {
            prop_assert_eq!(duration_ns("--x", &format!("{us}us")).ok(), Some(us * 1000));
        }
    }
}
