//! Arrival times of the clients of a round. They are spread over a time that does not depend on the processor's
//! speed. Processes that are started one after another arrive like that, and so do requests from a network.

use std::fmt;
use std::fs;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use luc_stats::seeded_random;
use luc_units::{format_duration, parse_duration_ns};
use rand::RngExt as _;
use rand_distr::Exp1;

use super::WorkloadClient;
use crate::error::BenchError;

/// First random stream of arrivals, apart from the streams of contents and pauses.
const FIRST_STREAM: u64 = 1 << 40;
/// Longest time over which clients arrive, ns: a minute.
const MAX_ARRIVAL_NS: u64 = 60_000_000_000;
const MAX_FILE_BYTES: u64 = 16 << 20;
/// Lead time between the start and the first possible arrival, ns, plus a part for each client. Until then all clients
/// have been woken and wait for their turn.
const LEAD_NS: u64 = 1_000_000;
const LEAD_NS_PER_CLIENT: u64 = 20_000;

/// Distribution of the clients' arrivals after all are released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrivals {
    /// Uniform over this time, ns.
    Uniform(u64),
    /// Exponentially distributed with this mean, ns.
    Exponential(u64),
    /// Listed in a file.
    Listed {
        path: PathBuf,
        /// Times of the file, ns: for the clients of the first round, then of the second, and so on cyclically.
        offsets_ns: Vec<u64>,
    },
}

impl Arrivals {
    /// Parses `40us`, `uniform:40us`, `exponential:40us` or `file:PATH`, a file with a duration on each line.
    ///
    /// # Errors
    /// [`BenchError::Input`] naming the text, or the file and its line.
    pub fn parse(text: &str) -> Result<Self, BenchError> {
        if let Some(path) = text.strip_prefix("file:") {
            return Self::read(Path::new(path));
        }
        let (is_exponential, time) = match text.split_once(':') {
            Some(("exponential", time)) => (true, time),
            Some(("uniform", time)) => (false, time),
            _ => (false, text),
        };
        let ns = arrival_ns(time).ok_or_else(|| BenchError::Input {
            option: format!("--arrivals {text}"),
            reason: "not a spread of at most a minute",
            advice: "write 40us, exponential:40us, or file:PATH",
        })?;
        Ok(if is_exponential { Self::Exponential(ns) } else { Self::Uniform(ns) })
    }

    /// Returns the same with its times changed by `stretch`, which makes ns of ns; times of a file stay as they are.
    #[must_use]
    pub fn stretched(self, stretch: impl Fn(u64) -> u64) -> Self {
        match self {
            Self::Uniform(ns) => Self::Uniform(stretch(ns)),
            Self::Exponential(ns) => Self::Exponential(stretch(ns)),
            listed @ Self::Listed { .. } => listed,
        }
    }

    fn read(path: &Path) -> Result<Self, BenchError> {
        let option = || format!("--arrivals file:{}", path.display());
        let refuse = |option, reason| BenchError::Input {
            option,
            reason,
            advice: "name a file with a duration on each line, as in 12us",
        };
        let size = fs::metadata(path).map(|about| about.len());
        if size.is_ok_and(|bytes| bytes > MAX_FILE_BYTES) {
            return Err(refuse(option(), "larger than 16 MiB"));
        }
        let text = fs::read_to_string(path)
            .map_err(|error| refuse(format!("{} ({error})", option()), "cannot be read"))?;
        let lines = (1..).zip(text.lines().map(str::trim));
        let offsets_ns = lines
            .filter(|(_, line)| !line.is_empty())
            .map(|(number, line)| {
                let option = || format!("{}, line {number}", option());
                arrival_ns(line)
                    .ok_or_else(|| refuse(option(), "not a duration of at most a minute"))
            })
            .collect::<Result<Vec<u64>, _>>()?;
        if offsets_ns.is_empty() {
            return Err(refuse(option(), "no line with a duration"));
        }
        Ok(Self::Listed { path: path.to_owned(), offsets_ns })
    }

    /// Returns the offset of a client's arrival in `round` from the earliest possible moment, ns.
    fn offset_ns(&self, seed: u64, round: usize, client: usize, clients: usize) -> u64 {
        let number = round as u64 * clients as u64 + client as u64;
        let mut random = seeded_random::stream(seed, FIRST_STREAM + number);
        match self {
            Self::Uniform(0) => 0,
            Self::Uniform(ns) => random.random_range(0..*ns),
            Self::Exponential(ns) => {
                let drawn = *ns as f64 * random.sample::<f64, _>(Exp1);
                (drawn as u64).min(MAX_ARRIVAL_NS)
            }
            Self::Listed { offsets_ns, .. } => {
                offsets_ns[(number % offsets_ns.len() as u64) as usize]
            }
        }
    }

    /// Waits for the arrival of `client`, one of `clients`, in `round`.
    pub(crate) fn wait(
        &self,
        client: &WorkloadClient<'_>,
        seed: u64,
        round: usize,
        clients: usize,
    ) {
        let offset_ns = self.offset_ns(seed, round, client.index, clients);
        let lead_ns = LEAD_NS + LEAD_NS_PER_CLIENT * clients as u64;
        // Without it the kernel may wake a thread 50 us late; a refusal costs accuracy only.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        client.sleep_until(client.start_ns() + lead_ns + offset_ns);
    }
}

fn arrival_ns(text: &str) -> Option<u64> {
    parse_duration_ns(text).ok().filter(|&ns| ns <= MAX_ARRIVAL_NS)
}

/// Formats a time, with a short unit if that is exact.
fn format_exactly(ns: u64) -> String {
    let short = format_duration(ns);
    match arrival_ns(&short) {
        Some(same) if same == ns => short,
        _ => format!("{ns}ns"),
    }
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform(ns) => write!(f, "uniform:{}", format_exactly(*ns)),
            Self::Exponential(ns) => write!(f, "exponential:{}", format_exactly(*ns)),
            Self::Listed { path, .. } => write!(f, "file:{}", path.display()),
        }
    }
}

impl serde::Serialize for Arrivals {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_their_distribution_and_repeat() {
        let draws = |arrivals: &Arrivals, seed| -> Vec<u64> {
            let of_round = |round| (0..4).map(move |client| (round, client));
            let all = (0..5000).flat_map(of_round);
            all.map(|(round, client)| arrivals.offset_ns(seed, round, client, 4)).collect()
        };
        let mean = |draws: &[u64]| draws.iter().sum::<u64>() as f64 / draws.len() as f64;
        let uniform = Arrivals::Uniform(40_000);
        let first = draws(&uniform, 1);
        assert!(first.iter().all(|&ns| ns < 40_000));
        assert!((mean(&first) / 20_000.0 - 1.0).abs() < 0.03);
        assert_eq!(first, draws(&uniform, 1));
        assert_ne!(first, draws(&uniform, 2));
        let exponential = draws(&Arrivals::Exponential(40_000), 1);
        assert!((mean(&exponential) / 40_000.0 - 1.0).abs() < 0.03);
        let longer = exponential.iter().filter(|&&ns| ns > 40_000).count() as f64;
        assert!((longer / exponential.len() as f64 - (-1.0_f64).exp()).abs() < 0.02);
    }

    #[test]
    fn a_file_s_times_are_taken_in_turn() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("arrivals");
        fs::write(&path, "1us\n\n 5us \n9us\n").expect("a file");
        let arrivals = Arrivals::parse(&format!("file:{}", path.display())).expect("fine");
        let offsets: Vec<u64> = (0..2)
            .flat_map(|round| (0..2).map(move |client| (round, client)))
            .map(|(round, client)| arrivals.offset_ns(1, round, client, 2))
            .collect();
        assert_eq!(offsets, [1000, 5000, 9000, 1000]);
        for (text, words) in [("1us\nlater\n", "line 2"), ("\n", "no line")] {
            fs::write(&path, text).expect("a file");
            let error = Arrivals::parse(&format!("file:{}", path.display())).expect_err(words);
            assert!(error.to_string().contains(words), "{error}");
        }
    }

    #[test]
    fn what_is_no_spread_is_refused() {
        for (text, shown) in [
            ("40us", "uniform:40us"),
            ("exponential:1ms", "exponential:1ms"),
            ("uniform:1234567ns", "uniform:1234567ns"),
        ] {
            assert_eq!(Arrivals::parse(text).expect(text).to_string(), shown);
        }
        for text in ["soon", "exponential:", "2m", "normal:3us"] {
            let error = Arrivals::parse(text).expect_err(text).to_string();
            assert!(error.contains(&format!("--arrivals {text}")), "{error}");
        }
        assert!(Arrivals::parse("file:/no/such").is_err());
    }
}
