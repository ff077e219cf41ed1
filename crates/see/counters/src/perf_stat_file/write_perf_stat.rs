//! Writes a recording as `perf stat` would have. Its text is read back and compared with the recording.

use std::fmt::Write as _;

use crate::counter_recording::CounterRecording;

/// Form of perf's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PerfOutputFormat {
    /// `perf stat -I -x,`.
    Csv,
    /// `perf stat -I -j`.
    Json,
}

/// Returns a recording's text, with numbers rounded as perf does. Scaled values are whole numbers in CSV, and have
/// six decimals in JSON. Shares have two decimals.
#[must_use]
pub fn write(recording: &CounterRecording, style: PerfOutputFormat) -> String {
    let mut text = "# written from a recording\n\n".to_owned();
    for (at, end_ns) in recording.ends_ns().iter().enumerate() {
        let seconds = *end_ns as f64 / 1e9;
        for (place, event) in recording.events().iter().enumerate() {
            let reading = recording.readings(place)[at];
            let running_ns = reading.running_ns;
            let share = reading.running_share();
            let percent = 100.0 * share.unwrap_or(1.0);
            let value = if running_ns == 0 {
                "<not counted>".to_owned()
            } else {
                let whole = reading.value / share.unwrap_or(1.0);
                match style {
                    PerfOutputFormat::Csv => format!("{whole:.0}"),
                    PerfOutputFormat::Json => format!("{whole:.6}"),
                }
            };
            // Writing to a string does not fail.
            let _ = match style {
                PerfOutputFormat::Csv => {
                    writeln!(text, "{seconds:>16.9},{value},,{event},{running_ns},{percent:.2},,")
                }
                PerfOutputFormat::Json => writeln!(
                    text,
                    "{{\"interval\" : {seconds:.9}, \"counter-value\" : \"{value}\", \"unit\" : \"\", \"event\" : \
                     \"{event}\", \"event-runtime\" : {running_ns}, \"pcnt-running\" : {percent:.2}}}"
                ),
            };
        }
    }
    text
}
