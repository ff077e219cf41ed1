//! The sweep's repeats, by point and speed, and what is computed of them.

use std::collections::BTreeMap;

use luc_stats::median;
use luc_sweep::Record;

use super::super::report::number;

/// A line of the thesis' figures: everything of a point but its speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) workload: &'static str,
    pub(super) threads: usize,
    pub(super) target: &'static str,
    pub(super) policy: &'static str,
}

impl Line {
    /// On ext4, with a policy of the module.
    pub(super) const fn new(workload: &'static str, threads: usize, policy: &'static str) -> Self {
        Self {
            workload,
            threads,
            target: "ext4",
            policy,
        }
    }

    /// The same without commits.
    pub(super) const fn nojc(self) -> Self {
        Self {
            target: "nojc",
            policy: "off",
            ..self
        }
    }

    /// The same with another policy.
    pub(super) const fn with(self, policy: &'static str) -> Self {
        Self { policy, ..self }
    }

    /// Its name in tables.
    pub(super) fn name(self) -> String {
        let setting = match (self.target, self.policy) {
            ("nojc", _) => "NOJC",
            ("nofsync", _) => "NOFSYNC",
            (_, "kernel:off") => "ext4",
            (_, "kernel:delay") => "delayJC",
            (_, "kernel:pid") => "PID batching",
            (_, "kernel:copy-out") => "heuristic copy-out",
            (_, "kernel:luc") => "LUC (both)",
            (_, "kernel:auto") => "auto",
            (_, policy) => policy,
        };
        format!("{} {}, {setting}", self.workload, self.threads)
    }
}

/// A repeat of a line at a speed.
#[derive(Debug, Clone)]
pub(super) struct Repeat {
    pub(super) round: usize,
    pub(super) value: f64,
    pub(super) counters: BTreeMap<String, f64>,
}

/// Median and range over the repeats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Spread {
    pub(super) fn of(values: &[f64]) -> Option<Self> {
        Some(Self {
            median: median(values)?,
            least: values.iter().copied().reduce(f64::min)?,
            most: values.iter().copied().reduce(f64::max)?,
        })
    }

    /// For a table.
    pub(super) fn text(self) -> String {
        let Self {
            median,
            least,
            most,
        } = self;
        let [middle, low, high] = [median, least, most].map(number);
        if low == high {
            middle
        } else {
            format!("{middle} ({low} to {high})")
        }
    }
}

/// A fall of the rate when the processor gets faster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fall {
    pub(super) from: u64,
    pub(super) to: u64,
    /// Of the medians.
    pub(super) share: f64,
    /// Whether every repeat at the faster speed is below every one at the slower.
    pub(super) is_sure: bool,
}

/// A figure at each speed.
pub(super) type Curve = Vec<(u64, Spread)>;

/// All that there is.
#[derive(Debug, Default)]
pub(super) struct Data {
    points: BTreeMap<String, Vec<Repeat>>,
    /// Speeds of the plan, the slowest first.
    pub(super) speeds: Vec<u64>,
}

impl Data {
    pub(super) fn new(speeds: &[u64], records: &[Record]) -> Self {
        let mut data = Self {
            speeds: speeds.to_vec(),
            ..Self::default()
        };
        data.speeds.sort_unstable();
        for record in records {
            let repeats = data.points.entry(record.key.clone()).or_default();
            repeats.push(Repeat {
                round: record.round,
                value: record.value,
                counters: record.counters.clone(),
            });
        }
        data
    }

    /// Points and their repeats, for the raw data.
    pub(super) fn points(&self) -> impl Iterator<Item = (&String, &Vec<Repeat>)> {
        self.points.iter()
    }

    pub(super) fn repeats(&self, line: Line, mips: u64) -> &[Repeat] {
        let Line {
            workload,
            threads,
            target,
            policy,
        } = line;
        let key = format!("{workload},{threads},{target},{policy},{mips}");
        self.points.get(&key).map(Vec::as_slice).unwrap_or_default()
    }

    /// Speeds at which a line has repeats.
    pub(super) fn speeds_of(&self, line: Line) -> Vec<u64> {
        let is_there = |mips: &u64| !self.repeats(line, *mips).is_empty();
        self.speeds.iter().copied().filter(is_there).collect()
    }

    /// A figure of each repeat, at each speed.
    pub(super) fn curve(&self, line: Line, of: impl Fn(&Repeat) -> Option<f64>) -> Curve {
        let at = |mips: u64| {
            let values: Vec<f64> = self.repeats(line, mips).iter().filter_map(&of).collect();
            Some((mips, Spread::of(&values)?))
        };
        self.speeds.iter().copied().filter_map(at).collect()
    }

    /// The line's figure.
    pub(super) fn rates(&self, line: Line) -> Curve {
        self.curve(line, |repeat| Some(repeat.value))
    }

    /// `line` over `to` at each speed, round by round.
    pub(super) fn over(&self, line: Line, to: Line) -> Curve {
        let at = |mips: u64| {
            let ratios = ratios(self.repeats(line, mips), self.repeats(to, mips));
            Some((mips, Spread::of(&ratios)?))
        };
        self.speeds.iter().copied().filter_map(at).collect()
    }

    /// Each speed over the slowest, round by round: the thesis' normalized speedup.
    pub(super) fn normalized(&self, line: Line) -> Curve {
        let speeds = self.speeds_of(line);
        let Some(&slowest) = speeds.first() else {
            return Vec::new();
        };
        let at = |&mips: &u64| {
            let ratios = ratios(self.repeats(line, mips), self.repeats(line, slowest));
            Some((mips, Spread::of(&ratios)?))
        };
        speeds.iter().filter_map(at).collect()
    }

    /// The greatest fall from any speed to any faster one.
    pub(super) fn greatest_fall(&self, line: Line) -> Option<Fall> {
        let rates = self.rates(line);
        let falls = rates.iter().enumerate().flat_map(|(at, (from, slow))| {
            rates[at + 1..].iter().map(move |(to, fast)| Fall {
                from: *from,
                to: *to,
                share: 1.0 - fast.median / slow.median,
                is_sure: fast.most < slow.least,
            })
        });
        falls.max_by(|a, b| a.share.total_cmp(&b.share))
    }
}

/// Of repeats of the same round.
fn ratios(with: &[Repeat], without: &[Repeat]) -> Vec<f64> {
    let pair = |repeat: &Repeat| {
        let other = without.iter().find(|other| other.round == repeat.round)?;
        Some(repeat.value / other.value)
    };
    with.iter().filter_map(pair).collect()
}

/// The least and the greatest median of a curve.
pub(super) fn range(curve: &Curve) -> Option<(f64, f64)> {
    let medians = || curve.iter().map(|(_, spread)| spread.median);
    Some((medians().reduce(f64::min)?, medians().reduce(f64::max)?))
}

fn ratio(repeat: &Repeat, numerator: &str, denominator: &str) -> Option<f64> {
    let denominator = *repeat.counters.get(denominator)?;
    let numerator = *repeat.counters.get(numerator)?;
    (denominator > 0.0).then(|| numerator / denominator)
}

/// Commits that an fsync waited for on average: its own, and the one under way before it.
pub(super) fn commits_waited(repeat: &Repeat) -> Option<f64> {
    Some(1.0 + ratio(repeat, "luc.fsyncs_waited_two", "luc.fsyncs")?)
}

/// Commits for each fsync.
pub(super) fn commits_per_fsync(repeat: &Repeat) -> Option<f64> {
    ratio(repeat, "luc.commits_by_fsync", "luc.fsyncs")
}

/// Share of changes of metadata that waited for a commit, in percent.
pub(super) fn delayed_percent(repeat: &Repeat) -> Option<f64> {
    Some(100.0 * ratio(repeat, "luc.writes_delayed", "luc.writes")?)
}

/// How long those waited, ms.
pub(super) fn mean_delay_ms(repeat: &Repeat) -> Option<f64> {
    Some(ratio(repeat, "luc.write_delay_ns", "luc.writes_delayed")? / 1e6)
}

/// Writes that waited for a commit, for each file written.
pub(super) fn delays_per_file(repeat: &Repeat) -> Option<f64> {
    ratio(repeat, "luc.writes_delayed", "operation.fsync.count")
}

/// Mean of all fsyncs of the workload, ms.
pub(super) fn fsync_ms(repeat: &Repeat) -> Option<f64> {
    let mut count = 0.0;
    let mut total_us = 0.0;
    for name in ["fsync", "fsyncfile2", "fsyncfile3", "logfsync"] {
        let figure = |figure: &str| repeat.counters.get(&format!("operation.{name}.{figure}"));
        if let (Some(calls), Some(mean_us)) = (figure("count"), figure("mean_us")) {
            count += calls;
            total_us += calls * mean_us;
        }
    }
    (count > 0.0).then(|| total_us / count / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Line = Line::new("w", 4, "kernel:off");

    fn data(rates: &[(u64, [f64; 2])]) -> Data {
        let speeds: Vec<u64> = rates.iter().map(|(mips, _)| *mips).collect();
        let mut data = Data::new(&speeds, &[]);
        for (mips, values) in rates {
            let repeat = |(round, value): (usize, &f64)| Repeat {
                round,
                value: *value,
                counters: BTreeMap::new(),
            };
            let repeats = values.iter().enumerate().map(repeat).collect();
            data.points
                .insert(format!("w,4,ext4,kernel:off,{mips}"), repeats);
        }
        data
    }

    #[test]
    fn a_fall_is_from_any_speed_to_any_faster_one() {
        let data = data(&[(1, [9.0, 11.0]), (2, [12.0, 12.0]), (3, [5.0, 7.0])]);
        let fall = data.greatest_fall(LINE).expect("a fall");
        assert_eq!((fall.from, fall.to, fall.is_sure), (2, 3, true));
        assert!((fall.share - 0.5).abs() < 1e-9);
    }

    #[test]
    fn speeds_are_set_against_the_slowest_round_by_round() {
        let data = data(&[(1, [10.0, 20.0]), (2, [20.0, 20.0])]);
        let curve = data.normalized(LINE);
        assert_eq!(curve[0].1.median, 1.0);
        assert_eq!((curve[1].1.least, curve[1].1.most), (1.0, 2.0));
        assert!(data.over(LINE, LINE.nojc()).is_empty());
        assert_eq!(range(&curve), Some((1.0, 1.5)));
    }

    #[test]
    fn figures_of_counters() {
        let counters = [
            ("luc.fsyncs", 10.0),
            ("luc.fsyncs_waited_two", 5.0),
            ("luc.writes", 50.0),
            ("luc.writes_delayed", 5.0),
            ("luc.write_delay_ns", 1e7),
            ("operation.fsync.count", 4.0),
            ("operation.fsync.mean_us", 2000.0),
        ];
        let repeat = Repeat {
            round: 0,
            value: 1.0,
            counters: counters
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
        };
        assert_eq!(commits_waited(&repeat), Some(1.5));
        assert_eq!(delayed_percent(&repeat), Some(10.0));
        assert_eq!(mean_delay_ms(&repeat), Some(2.0));
        assert_eq!(delays_per_file(&repeat), Some(1.25));
        assert_eq!(fsync_ms(&repeat), Some(2.0));
        assert_eq!(commits_per_fsync(&repeat), None);
    }
}
