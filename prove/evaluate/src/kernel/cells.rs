//! What is measured: workloads, processor speeds, settings, and the groups that one guest runs.

/// A workload of the papers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Load {
    /// File creation, with the number of clients.
    Metarates(usize),
    /// IOzone's initial write, with the number of threads.
    InitialWrite(usize),
    /// The mail server, 64 threads on 256 files.
    Varmail,
    /// The database, 48 threads on 48 files and a log writer.
    Oltp,
}

impl Load {
    /// All, in the order of the tables.
    pub(super) const ALL: [Self; 8] = [
        Self::Metarates(4),
        Self::Metarates(8),
        Self::Metarates(16),
        Self::Metarates(32),
        Self::InitialWrite(64),
        Self::InitialWrite(256),
        Self::Varmail,
        Self::Oltp,
    ];

    /// Its name in tables.
    pub(super) fn name(self) -> String {
        match self {
            Self::Metarates(clients) => format!("metarates {clients}"),
            Self::InitialWrite(threads) => format!("initial-write {threads}"),
            Self::Varmail => "varmail".to_owned(),
            Self::Oltp => "oltp".to_owned(),
        }
    }

    /// What its rate counts.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Self::Metarates(_) => "files/s",
            Self::InitialWrite(_) => "MiB/s, children",
            Self::Varmail | Self::Oltp => "ops/s",
        }
    }

    /// The arguments of `luc bench`; times are stretched by `speed`.
    fn command(self, speed: Speed) -> String {
        let timed = |warmup_ms: u64, measured_ms: u64| {
            format!(
                "--warmup {}us --seconds {}",
                speed.stretch(warmup_ms * 1000),
                speed.stretch(measured_ms) as f64 / 1000.0
            )
        };
        match self {
            Self::Metarates(clients) => {
                format!("metarates --threads {clients} {}", timed(600, 1200))
            }
            Self::InitialWrite(threads) => {
                format!(
                    "initial-write --threads {threads} --rounds {}",
                    self.rounds()
                )
            }
            Self::Varmail => format!("varmail --parameters luc {}", timed(400, 800)),
            Self::Oltp => format!("oltp --parameters luc {}", timed(400, 800)),
        }
    }

    /// Rounds of an initial write: which children meet a commit is a matter of microseconds, and few
    /// rounds would show that.
    pub(super) fn rounds(self) -> usize {
        match self {
            Self::InitialWrite(threads) => 512 / threads.max(1) + 2,
            Self::Metarates(_) | Self::Varmail | Self::Oltp => 1,
        }
    }

    /// How its rate is found in the benchmark's report.
    pub(super) fn rate(self) -> Rate {
        match self {
            Self::Metarates(_) => Rate::At("/file_creation_rate_per_second", 1.0),
            Self::InitialWrite(_) => Rate::OfRounds("children_kib_per_second", 1024.0),
            Self::Varmail => Rate::OfLatencies,
            Self::Oltp => Rate::At("/flowops_per_second", 1.0),
        }
    }

    /// The second figure: what was counted in the interval, the parent's rate, or writes to the log.
    pub(super) fn second_rate(self) -> Rate {
        match self {
            Self::Metarates(_) => Rate::At("/creations_per_second", 1.0),
            Self::InitialWrite(_) => Rate::OfRounds("parent_kib_per_second", 1024.0),
            Self::Varmail => Rate::At("/flowops_per_second", 1.0),
            Self::Oltp => Rate::At("/log_writes_per_second", 1.0),
        }
    }

    /// The disk on which its delay can be seen.
    pub(super) fn disk(self) -> Disk {
        match self {
            Self::Metarates(_) | Self::Varmail => FLUSHING,
            Self::InitialWrite(_) | Self::Oltp => WRITING,
        }
    }

    /// The thesis' delay (section 4.6), µs: 1 ms for Metarates, 16 ms for IOzone.
    pub(super) fn delay_us(self) -> u64 {
        match self {
            Self::Metarates(_) | Self::Varmail => 1000,
            Self::InitialWrite(_) | Self::Oltp => 16_000,
        }
    }
}

/// Where a rate comes from. Clients that share commits end their work in bursts, and in a short
/// interval it matters how many bursts just fit: so for those the rate is that of their latencies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Rate {
    /// A figure of the report, divided by this.
    At(&'static str, f64),
    /// The mean of a figure of the report's rounds, divided by this.
    OfRounds(&'static str, f64),
    /// N clients / mean latency of all operations, as the papers' file creation rate is made.
    OfLatencies,
}

/// A disk's latencies at scale 1. Requests do not queue behind each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Disk {
    /// Its name in texts.
    pub(super) name: &'static str,
    /// Of a write, µs.
    pub(super) write_us: u64,
    /// Of a flush of its cache, µs.
    pub(super) flush_us: u64,
    /// Of a read, µs.
    pub(super) read_us: u64,
}

/// Waits are for the flush.
pub(super) const FLUSHING: Disk = Disk {
    name: "flushing",
    write_us: 2000,
    flush_us: 6000,
    read_us: 100,
};

/// A write takes about one revolution at 7200 a minute, a flush has little left to do.
pub(super) const WRITING: Disk = Disk {
    name: "writing",
    write_us: 8000,
    flush_us: 2000,
    read_us: 100,
};

/// A processor's speed: an instruction takes 2^`shift` ns, and all that is not instructions (the
/// disk, the module's times) takes `stretch_permille` thousandths of its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Speed {
    pub(super) shift: u32,
    pub(super) stretch_permille: u64,
}

/// Nine speeds over a range of 4, a fourth root of 2 apart; the coarse ones first.
pub(super) const SPEEDS: [Speed; 9] = [
    Speed::new(1, 1000),
    Speed::new(0, 2000),
    Speed::new(0, 1000),
    Speed::new(1, 1414),
    Speed::new(0, 1414),
    Speed::new(1, 1189),
    Speed::new(1, 1682),
    Speed::new(0, 1189),
    Speed::new(0, 1682),
];

impl Speed {
    const fn new(shift: u32, stretch_permille: u64) -> Self {
        Self {
            shift,
            stretch_permille,
        }
    }

    /// Instructions per second, in thousandths of 10^9.
    pub(super) fn mips(self) -> u64 {
        self.stretch_permille >> self.shift
    }

    /// A time as the guest must take it.
    pub(super) fn stretch(self, time: u64) -> u64 {
        time * self.stretch_permille / 1000
    }

    /// A rate that the guest saw, at this speed.
    pub(super) fn scale_rate(self, rate: f64) -> f64 {
        rate * self.stretch_permille as f64 / 1000.0
    }

    /// A time that the guest saw, at this speed.
    pub(super) fn scale_time(self, time: f64) -> f64 {
        time * 1000.0 / self.stretch_permille as f64
    }
}

/// How a file system is made and mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileSystem {
    Ext4,
    Ext4FastCommit,
    Ext4Writeback,
    Xfs,
}

/// One way of running a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Setting {
    /// Its name in tables.
    pub(super) name: &'static str,
    pub(super) file_system: FileSystem,
    /// Policy and copy-out of the module; absent: it is not loaded.
    pub(super) module: Option<(&'static str, &'static str)>,
}

const fn ext4(name: &'static str, policy: &'static str, copy_out: &'static str) -> Setting {
    Setting {
        name,
        file_system: FileSystem::Ext4,
        module: Some((policy, copy_out)),
    }
}

/// The settings of the sweep. Stock has the module loaded, which only counts.
pub(super) const SWEEP: [Setting; 8] = [
    ext4("stock", "off", "off"),
    ext4("delay", "delay", "off"),
    ext4("pid", "pid", "off"),
    ext4("auto", "auto", "off"),
    ext4("copy heuristic", "off", "heuristic"),
    ext4("copy on", "off", "on"),
    ext4("copy auto", "off", "auto"),
    ext4("both auto", "auto", "auto"),
];

const fn rival(
    name: &'static str,
    file_system: FileSystem,
    module: Option<(&'static str, &'static str)>,
) -> Setting {
    Setting {
        name,
        file_system,
        module,
    }
}

/// The rivals, with and without the module where it applies.
pub(super) const RIVALS: [Setting; 7] = [
    rival("ext4", FileSystem::Ext4, None),
    rival("ext4 + luc", FileSystem::Ext4, Some(("auto", "auto"))),
    rival("fast_commit", FileSystem::Ext4FastCommit, None),
    rival(
        "fast_commit + luc",
        FileSystem::Ext4FastCommit,
        Some(("auto", "auto")),
    ),
    rival("data=writeback", FileSystem::Ext4Writeback, None),
    rival(
        "data=writeback + luc",
        FileSystem::Ext4Writeback,
        Some(("auto", "auto")),
    ),
    rival("XFS", FileSystem::Xfs, None),
];

/// The setting of [`REPEATED`] without the module.
pub(super) const NOT_LOADED: &str = "not loaded";

/// What is repeated with other seeds: runs that differ by a microsecond go another way.
pub(super) const REPEATED: [Setting; 5] = [
    rival(NOT_LOADED, FileSystem::Ext4, None),
    ext4("stock", "off", "off"),
    ext4("auto", "auto", "off"),
    ext4("copy auto", "off", "auto"),
    ext4("both auto", "auto", "auto"),
];

/// Whose ratios depend on that. The figures of metarates hardly do, and it draws nothing at random.
pub(super) const REPEATED_LOADS: [Load; 4] = [
    Load::InitialWrite(64),
    Load::InitialWrite(256),
    Load::Varmail,
    Load::Oltp,
];

/// The seeds beside the sweep's, which is 1.
pub(super) const SEEDS: [u64; 3] = [2, 3, 4];

/// What the rivals run, at the first three of [`SPEEDS`].
const RIVAL_LOADS: [Load; 3] = [Load::Metarates(16), Load::Varmail, Load::Oltp];

/// Which settings a group has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sheet {
    /// All of [`SWEEP`].
    Sweep,
    /// All of [`RIVALS`].
    Rivals,
    /// [`SWEEP`] once more, to be compared with the first.
    Again,
    /// [`REPEATED`] with another seed.
    Seed(u64),
}

/// What one guest runs: all settings of a workload at a speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) sheet: Sheet,
    pub(super) load: Load,
    pub(super) speed: Speed,
}

impl Group {
    /// All groups, the most telling ones first.
    pub(super) fn all() -> Vec<Self> {
        let mut groups = Vec::new();
        for speed in &SPEEDS[..2] {
            groups.extend(Load::ALL.map(|load| (Sheet::Sweep, load, *speed)));
        }
        for speed in &SPEEDS[..2] {
            groups.extend(RIVAL_LOADS.map(|load| (Sheet::Rivals, load, *speed)));
        }
        groups.push((Sheet::Again, Load::Varmail, SPEEDS[0]));
        for speed in &SPEEDS[2..] {
            groups.extend(Load::ALL.map(|load| (Sheet::Sweep, load, *speed)));
        }
        groups.extend(RIVAL_LOADS.map(|load| (Sheet::Rivals, load, SPEEDS[2])));
        for seed in SEEDS {
            for speed in SPEEDS {
                groups.extend(REPEATED_LOADS.map(|load| (Sheet::Seed(seed), load, speed)));
            }
        }
        groups
            .into_iter()
            .map(|(sheet, load, speed)| Self { sheet, load, speed })
            .collect()
    }

    /// Its name in the raw data, and what `--only` looks at.
    pub(super) fn name(self) -> String {
        let sheet = match self.sheet {
            Sheet::Sweep => String::new(),
            Sheet::Rivals => ", rivals".to_owned(),
            Sheet::Again => ", again".to_owned(),
            Sheet::Seed(seed) => format!(", seed {seed}"),
        };
        let mips = self.speed.mips();
        format!("{} at {mips} MIPS{sheet}", self.load.name())
    }

    /// What it runs, in order.
    pub(super) fn settings(self) -> &'static [Setting] {
        match self.sheet {
            Sheet::Sweep | Sheet::Again => &SWEEP,
            Sheet::Rivals => &RIVALS,
            Sheet::Seed(_) => &REPEATED,
        }
    }

    /// The arguments of `luc bench`.
    pub(super) fn command(self) -> String {
        let command = self.load.command(self.speed);
        match self.sheet {
            Sheet::Seed(seed) => format!("{command} --seed {seed}"),
            Sheet::Sweep | Sheet::Rivals | Sheet::Again => command,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn nine_speeds_span_a_factor_of_four() {
        let mips: BTreeSet<u64> = SPEEDS.iter().map(|speed| speed.mips()).collect();
        assert_eq!(mips.len(), 9);
        assert_eq!(mips.first(), Some(&500));
        assert_eq!(mips.last(), Some(&2000));
    }

    #[test]
    fn groups_have_names_of_their_own() {
        let groups = Group::all();
        let names: BTreeSet<String> = groups.iter().map(|group| group.name()).collect();
        assert_eq!(names.len(), groups.len());
        let sweep = groups.iter().filter(|group| group.sheet == Sheet::Sweep);
        assert_eq!(sweep.count(), Load::ALL.len() * SPEEDS.len());
    }

    #[test]
    fn a_faster_processor_sees_a_slower_disk() {
        let speed = Speed::new(1, 1414);
        assert_eq!(speed.mips(), 707);
        assert_eq!(speed.stretch(6000), 8484);
        assert!((speed.scale_rate(100.0) - 141.4).abs() < 1e-9);
        assert!((speed.scale_time(141.4) - 100.0).abs() < 1e-9);
    }
}
