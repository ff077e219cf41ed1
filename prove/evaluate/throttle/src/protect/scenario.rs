//! A client, the batch beside it, and the client's latencies.

use serde_json::Value;

use crate::mixes::Mix;

/// A client and the batch beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scenario {
    /// Reads 4 KiB at random every 10 ms, beside three streams.
    Reads,
    /// Appends 4 KiB and fsyncs every 10 ms, beside two tasks that overwrite and fsync files, and one that reads.
    Fsyncs,
}

impl Scenario {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Fsyncs => "fsyncs",
        }
    }

    pub(super) fn about(self) -> &'static str {
        match self {
            Self::Reads => {
                "a client reads 4 KiB at a random place and pauses for 10 ms, again and again, beside three tasks that \
                 read files from end to end"
            }
            Self::Fsyncs => {
                "a client appends 4 KiB to a log, calls fsync and pauses for 10 ms, again and again, beside two tasks \
                 that write a file of 40 MiB over and fsync it, again and again, and one that reads such a file"
            }
        }
    }

    /// Number of batch tasks.
    pub(super) fn batch(self) -> usize {
        3
    }

    /// The tasks' files. The client that reads has the last.
    pub(super) fn files(self) -> Mix {
        let mix = match self {
            Self::Reads => Mix::streams(4, 96),
            Self::Fsyncs => Mix::streams(3, 40),
        };
        Mix { name: format!("protect, {}", self.name()), ..mix }
    }

    pub(super) fn client(self, seconds: f64, seed: u64) -> String {
        match self {
            Self::Reads => format!(
                "\"$LUC\" bench ranking \"$MNT/4\" --cold --random {seed} --block 4K --think 10ms --for {seconds}s --json"
            ),
            Self::Fsyncs => format!(
                "\"$LUC\" bench append --dir \"$MNT\" --threads 1 --record-size 4k --call fsync --think 10ms \
                 --seconds {seconds} --json"
            ),
        }
    }

    /// Command of a batch task, which goes on until it is ended.
    pub(super) fn batch_task(self, number: usize) -> String {
        let options = if self == Self::Fsyncs && number < 3 { "--write" } else { "--cold" };
        format!(
            "while :; do \"$LUC\" bench ranking \"$MNT/{number}\" {options} 2>/dev/null || exit 1; done"
        )
    }

    /// Returns the client's latencies in its output.
    pub(super) fn latency(self, printed: &Value) -> Option<Latency> {
        let of = match self {
            Self::Reads => &printed["latency"],
            Self::Fsyncs => printed["operations"]
                .as_array()?
                .iter()
                .find(|figures| figures["operation"] == "fsync")?,
        };
        let ms = |name: &str| Some(of[name].as_f64()? / 1e3);
        Some(Latency {
            requests: of["count"].as_f64()?,
            mean_ms: ms("mean_us")?,
            p50_ms: ms("p50_us")?,
            p99_ms: ms("p99_us")?,
            max_ms: ms("max_us")?,
            seconds: printed["measured_s"].as_f64()?,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Latency {
    pub(super) requests: f64,
    pub(super) mean_ms: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) max_ms: f64,
    pub(super) seconds: f64,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_clients_figures_are_found_where_they_are() {
        let figures = json!({
            "operation": "fsync", "count": 300, "mean_us": 31_000.0, "p50_us": 30_000.0, "p99_us": 40_000.0,
            "max_us": 50_000.0,
        });
        let appended =
            json!({ "measured_s": 20.0, "operations": [{ "operation": "write" }, figures] });
        let latency = Scenario::Fsyncs.latency(&appended).expect("figures");
        assert_eq!((latency.requests, latency.p99_ms), (300.0, 40.0));
        let read = json!({ "measured_s": 20.0, "latency": figures });
        assert_eq!(Scenario::Reads.latency(&read), Some(latency));
        assert_eq!(Scenario::Reads.latency(&appended), None);
    }
}
