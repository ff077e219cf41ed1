//! What the matrix is made of: four servers, seven file systems with their options, and groups of them for a guest.

/// The slides' figures are divided by this: number of files, or of the database their size; memory.
pub(super) const SCALE: u64 = 16;

/// A server of the slides, scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Load {
    /// Its name in tables.
    pub(super) name: &'static str,
    /// Its workload file's text.
    pub(super) text: &'static str,
    /// Its variables.
    pub(super) settings: &'static [&'static str],
    /// What the benchmark and the page cache get.
    pub(super) memory_mib: u64,
    /// Its file set, in words.
    pub(super) files: &'static str,
}

/// Threads have buffers of `iosize`; with the slides' 1 MB they would need more than the scaled memory. Few files
/// of the web server and none of the mail server are larger than 128 KB.
pub(super) const LOADS: [Load; 4] = [
    Load {
        name: "web",
        text: include_str!("../../../../crates/workload/personalities/slides-web.f"),
        // 9: as deep as the slides' tree, ln(files) / ln(width) = 3.2.
        settings: &["nfiles=1250", "meandirwidth=9", "iosize=128k"],
        memory_mib: 60,
        files: "1250 files of 32 KiB, 39 MiB",
    },
    Load {
        name: "mail",
        text: include_str!("../../../../crates/workload/personalities/slides-mail.f"),
        settings: &["nfiles=3125", "iosize=128k"],
        memory_mib: 60,
        files: "3125 files of 16 KiB, 4/5 of them there, 39 MiB",
    },
    Load {
        name: "database",
        text: include_str!("../../../../crates/workload/personalities/slides-database.f"),
        settings: &["filesize=32m", "usermode=2000"],
        memory_mib: 64,
        files: "10 files of 32 MiB, 320 MiB",
    },
    Load {
        name: "file",
        text: include_str!("../../../../crates/workload/personalities/slides-file.f"),
        settings: &["nfiles=3125", "meandirwidth=9", "iosize=256k"],
        memory_mib: 128,
        files: "3125 files of 256 KiB, 4/5 of them there, 625 MiB",
    },
];

/// Seconds of each run, of virtual time, after files are made and caches dropped.
pub(super) const SECONDS: u64 = 15;
/// The rounds: with a seed's draws every file system has the same files and choices. Three are the fewest to compare.
pub(super) const SEEDS: [u64; 6] = [1, 2, 3, 4, 5, 6];
/// The disk, whose whole stroke it uses.
pub(super) const DISK_MIB: u64 = 2048;

/// A file system with options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Config {
    /// As mkfs and mount call it.
    pub(super) file_system: &'static str,
    /// What its options are called.
    pub(super) options: &'static str,
    pub(super) mkfs: &'static str,
    pub(super) mount: &'static str,
    /// What a power cut may cost.
    pub(super) danger: Option<&'static str>,
    /// The only server that it is for.
    pub(super) only: Option<&'static str>,
}

impl Config {
    /// Whether it is what one gets without asking for anything.
    pub(super) fn is_default(self) -> bool {
        self.options == DEFAULT
    }
}

pub(super) const DEFAULT: &str = "default";

const fn config(
    file_system: &'static str,
    options: &'static str,
    mkfs: &'static str,
    mount: &'static str,
) -> Config {
    Config {
        file_system,
        options,
        mkfs,
        mount,
        danger: None,
        only: None,
    }
}

const fn unsafe_config(config: Config, danger: &'static str) -> Config {
    Config {
        danger: Some(danger),
        ..config
    }
}

const NO_JOURNAL: &str = "no journal";

/// All of them.
pub(super) const CONFIGS: [Config; 25] = [
    unsafe_config(config("ext2", DEFAULT, "", "defaults"), NO_JOURNAL),
    unsafe_config(config("ext2", "noatime", "", "noatime"), NO_JOURNAL),
    unsafe_config(
        config("ext2", "2K blocks", "-b 2048", "defaults"),
        NO_JOURNAL,
    ),
    config("ext3", DEFAULT, "", "defaults"),
    config("ext3", "noatime", "", "noatime"),
    config("ext3", "data=journal", "", "data=journal"),
    config("ext3", "2K blocks", "-b 2048", "defaults"),
    config("ext4", DEFAULT, "", "defaults"),
    config("ext4", "noatime", "", "noatime"),
    config("ext4", "fast_commit", "-O fast_commit", "defaults"),
    config("ext4", "2K blocks", "-b 2048", "defaults"),
    config("xfs", DEFAULT, "", "defaults"),
    config("xfs", "noatime", "", "noatime"),
    config("xfs", "1K inodes", "-i size=1024", "defaults"),
    config("xfs", "2K blocks", "-b size=2048", "defaults"),
    Config {
        only: Some("file"),
        ..config("xfs", "16 groups", "-d agcount=16", "defaults")
    },
    config("reiserfs", DEFAULT, "", "defaults"),
    config("reiserfs", "noatime", "", "noatime"),
    config("reiserfs", "notail", "", "notail"),
    config("btrfs", DEFAULT, "", "defaults"),
    config("btrfs", "noatime", "", "noatime"),
    config("btrfs", "nodatacow", "", "nodatacow"),
    config("f2fs", DEFAULT, "", "defaults"),
    config("f2fs", "noatime", "", "noatime"),
    config("f2fs", "mode=lfs", "", "mode=lfs"),
];

/// File systems that share a guest: booting costs as much as a run.
const FAMILIES: [(&str, &[&str]); 3] = [
    ("ext2 ext3", &["ext2", "ext3"]),
    ("ext4 xfs", &["ext4", "xfs"]),
    ("reiserfs btrfs f2fs", &["reiserfs", "btrfs", "f2fs"]),
];

/// What one guest runs: a server with a seed on some file systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) load: Load,
    pub(super) seed: u64,
    family: (&'static str, &'static [&'static str]),
}

impl Group {
    /// All groups, whole rounds first.
    pub(super) fn all() -> Vec<Self> {
        let mut groups = Vec::new();
        for seed in SEEDS {
            for load in LOADS {
                groups.extend(FAMILIES.map(|family| Self { load, seed, family }));
            }
        }
        groups
    }

    /// Those of a server and a seed.
    pub(super) fn of(load: Load, seed: u64) -> [Self; FAMILIES.len()] {
        FAMILIES.map(|family| Self { load, seed, family })
    }

    /// Its name in the raw data, and what `--only` looks at.
    pub(super) fn name(&self) -> String {
        format!("{}, {}, seed {}", self.load.name, self.family.0, self.seed)
    }

    /// What it runs, in order.
    pub(super) fn configs(&self) -> Vec<Config> {
        let wanted = |config: &Config| {
            self.family.1.contains(&config.file_system)
                && config.only.is_none_or(|only| only == self.load.name)
        };
        CONFIGS.into_iter().filter(wanted).collect()
    }
}
