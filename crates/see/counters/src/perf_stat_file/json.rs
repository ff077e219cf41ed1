//! A line of `perf stat -j`: an object with strings and numbers (`man perf-stat`, JSON FORMAT).

use serde::Deserialize;
use serde_json::Value;

use super::csv::DECIMAL_COMMAS;
use super::perf_row::{PerfRow, RowCount, nanoseconds, reading};

/// The members that are read; the others are perf's metrics.
#[derive(Debug, Deserialize)]
struct Line {
    interval: Option<f64>,
    event: Option<String>,
    #[serde(default)]
    unit: String,
    #[serde(rename = "counter-value")]
    value: Option<Value>,
    #[serde(rename = "event-runtime")]
    running_ns: Option<u64>,
    #[serde(rename = "pcnt-running")]
    percent: Option<f64>,
}

/// Parses a line; `None` for lines of metrics.
pub(super) fn row(line: &str) -> Result<Option<PerfRow>, String> {
    let parsed: Line = serde_json::from_str(line).map_err(|error| {
        if has_decimal_commas(line) { DECIMAL_COMMAS.to_owned() } else { error.to_string() }
    })?;
    let (Some(event), Some(value)) = (parsed.event, parsed.value) else {
        return Ok(None);
    };
    let end_ns = match parsed.interval {
        Some(seconds) => Some(nanoseconds(seconds).ok_or_else(|| format!("{seconds} is no time"))?),
        None => None,
    };
    let times = || match (parsed.running_ns, parsed.percent) {
        (Some(running_ns), Some(percent)) if percent >= 0.0 => Ok((running_ns, percent)),
        _ => Err("it does not say for how long the event had a counter".to_owned()),
    };
    let text = value.as_str().map(str::trim);
    let counted = match text {
        Some("<not supported>") => RowCount::NotSupported,
        Some("<not counted>") => reading(0.0, 0, times()?.1),
        _ => {
            let number = text.map_or_else(|| value.as_f64(), |text| text.parse().ok());
            let number = number.filter(|number| number.is_finite() && *number >= 0.0);
            let number = number.ok_or_else(|| format!("{value} is no count"))?;
            let (running_ns, percent) = times()?;
            reading(number, running_ns, percent)
        }
    };
    Ok(Some(PerfRow { end_ns, event, unit: parsed.unit, counted }))
}

/// Returns whether a value is a number with a comma, after which another name would have to follow.
fn has_decimal_commas(line: &str) -> bool {
    line.split(" : ").any(|rest| {
        let (whole, part) = rest.split_once(',').unwrap_or_default();
        let is_digit = |byte: u8| byte.is_ascii_digit();
        !whole.is_empty()
            && whole.bytes().all(is_digit)
            && part.bytes().next().is_some_and(is_digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter_recording::CounterReading;

    #[test]
    fn lines_as_perf_writes_them() {
        let line = r#"{"interval" : 0.100067155, "cpu" : "0", "counter-value" : "70.000000", "unit" : "", "event" : "cycles:u", "event-runtime" : 1000, "pcnt-running" : 50.00, "metric-value" : 1.3, "metric-unit" : "K/sec"}"#;
        let found = row(line).expect("read").expect("a row");
        assert_eq!((found.end_ns, found.event.as_str()), (Some(100_067_155), "cycles:u"));
        let expected = CounterReading { value: 35.0, enabled_ns: 2000, running_ns: 1000 };
        assert_eq!(found.counted, RowCount::Reading(expected));
        let line = r#"{"counter-value" : "<not supported>", "unit" : "", "event" : "cycles", "event-runtime" : 0, "pcnt-running" : 100.00}"#;
        assert_eq!(row(line).expect("read").expect("a row").counted, RowCount::NotSupported);
        assert_eq!(row(r#"{"interval" : 1.0, "metric-value" : 3.0}"#), Ok(None));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, what) in [
            ("{", "EOF"),
            (
                r#"{"interval" : 0,100067155, "counter-value" : "70,000000", "event" : "cycles", "event-runtime" : 1000, "pcnt-running" : 50,00}"#,
                "LC_ALL=C",
            ),
            (r#"{"event" : "cycles", "counter-value" : "x"}"#, "is no count"),
            (r#"{"event" : "cycles", "counter-value" : 5}"#, "for how long"),
            (r#"{"interval" : -1, "event" : "cycles", "counter-value" : 5}"#, "-1 is no time"),
        ] {
            let error = row(line).expect_err(line);
            assert!(error.contains(what), "{line}: {error}");
        }
    }
}
