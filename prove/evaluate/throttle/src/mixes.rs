//! Tasks that run together, and their disks.

use std::fmt::Write as _;

use luc_stats::seeded_random;
use rand::RngExt as _;
use rand::seq::SliceRandom as _;

/// Work of a task, all of it once on cold files of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Reads a file as fast as it can.
    Stream,
    /// Sleeps 2 ms after each 128 KiB, as a program that waits for others.
    Think,
    /// Computes about as long as the disk needs.
    Compute,
    /// Reads blocks of 64 KiB in random order.
    Random,
    /// Writes a file over, then fsyncs it.
    Write,
    /// Reads a hundred files of 64 KiB.
    Tree,
    /// Copies a file and fsyncs the copy.
    Copy,
}

/// Kinds of tasks in compounded mixes.
const KINDS: [Kind; 7] =
    [Kind::Stream, Kind::Think, Kind::Compute, Kind::Random, Kind::Write, Kind::Tree, Kind::Copy];
/// Sizes of files in compounded mixes.
const SIZES_MIB: [u64; 4] = [8, 16, 32, 64];
/// Number of files in a tree.
const TREE_FILES: usize = 100;
/// Bytes of each file in a tree, as in `make_tree`.
const TREE_FILE_BYTES: u64 = 64 << 10;

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Think => "think",
            Self::Compute => "compute",
            Self::Random => "random",
            Self::Write => "write",
            Self::Tree => "tree",
            Self::Copy => "copy",
        }
    }

    /// Returns its commands, for the file with this number.
    fn commands(self, number: usize) -> String {
        let ranking = |options: &str| format!("\"$LUC\" bench ranking \"$MNT/{number}\" {options}");
        match self {
            Self::Stream => ranking(""),
            Self::Think => ranking("--think 2ms"),
            Self::Compute => ranking("--nops 400000"),
            Self::Random => ranking("--block 64K --random 1"),
            Self::Write => ranking("--write"),
            Self::Tree => format!("cat \"$MNT/tree.{number}\"/*"),
            Self::Copy => {
                format!("dd if=\"$MNT/{number}\" of=\"$MNT/copy.{number}\" bs=128k conv=fsync")
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Model {
    /// A hard disk of 7200 rpm whose full stroke covers the whole small disk.
    Hdd,
    /// A SATA solid-state disk.
    Ssd,
    Cloud,
}

impl Model {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Hdd => "hard disk",
            Self::Ssd => "ssd",
            Self::Cloud => "cloud",
        }
    }

    /// Returns the file for `luc disk create --model`.
    pub(super) fn file(self, disk_bytes: u64) -> String {
        match self {
            Self::Hdd => format!("model = \"hdd\"\ncapacity_bytes = {disk_bytes}\n"),
            Self::Ssd => "model = \"ssd\"\n".to_owned(),
            Self::Cloud => "model = \"cloud\"\n".to_owned(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mix {
    pub(super) name: String,
    pub(super) model: Model,
    pub(super) kinds: Vec<Kind>,
    /// Size of each task's file, MiB.
    pub(super) file_mib: Vec<u64>,
    /// Number of tasks at work at a time, if that is not all.
    pub(super) at_a_time: Option<usize>,
}

impl Mix {
    fn of(name: String, kinds: Vec<Kind>, file_mib: u64) -> Self {
        Self {
            name,
            model: Model::Hdd,
            file_mib: vec![file_mib; kinds.len()],
            kinds,
            at_a_time: None,
        }
    }

    pub(super) fn streams(count: usize, file_mib: u64) -> Self {
        Self::of(format!("{count} streams"), vec![Kind::Stream; count], file_mib)
    }

    /// Makes streams over files, each twice as large as the one before.
    pub(super) fn unequal(count: usize, least_mib: u64) -> Self {
        let sizes = (0..count).map(|number| least_mib << number);
        Self {
            file_mib: sizes.collect(),
            ..Self::of(format!("{count} unequal streams"), vec![Kind::Stream; count], 0)
        }
    }

    /// Makes equal streams on another disk.
    pub(super) fn on(model: Model, file_mib: u64) -> Self {
        Self { name: format!("4 streams, {}", model.name()), model, ..Self::streams(4, file_mib) }
    }

    /// Makes tasks that think most of the time, on a disk that serves each at once.
    pub(super) fn light(count: usize, file_mib: u64) -> Self {
        Self {
            model: Model::Ssd,
            ..Self::of(
                format!("{count} thinking tasks, {}", Model::Ssd.name()),
                vec![Kind::Think; count],
                file_mib,
            )
        }
    }

    /// Makes the paper's batch mode: 8 of `count` at a time, streams and others in turn.
    pub(super) fn batch(count: usize, file_mib: u64) -> Self {
        let kinds = (0..count).map(|number| match number % 4 {
            3 => Kind::Think,
            _ => Kind::Stream,
        });
        Self {
            at_a_time: Some(8),
            ..Self::of(format!("batch of {count}, 8 at a time"), kinds.collect(), file_mib)
        }
    }

    /// Makes the compounded mix `number`: 8 tasks drawn at random, and the sizes of their files.
    pub(super) fn compounded(number: u64) -> Self {
        let mut random = seeded_random::stream(17, number);
        let kinds: Vec<Kind> = (0..8).map(|_| KINDS[random.random_range(0..KINDS.len())]).collect();
        let sizes = (0..8).map(|_| SIZES_MIB[random.random_range(0..SIZES_MIB.len())]);
        Self { file_mib: sizes.collect(), ..Self::of(format!("C{number}"), kinds, 0) }
    }

    /// Lists the tasks by kind: `3 stream, 1 think`.
    pub(super) fn about(&self) -> String {
        let mut all = Vec::new();
        for kind in KINDS {
            let count = self.kinds.iter().filter(|other| **other == kind).count();
            if count > 0 {
                all.push(format!("{count} {}", kind.name()));
            }
        }
        all.join(", ")
    }

    /// Sizes of the files: `32`, or `8 to 64`.
    pub(super) fn sizes(&self) -> String {
        let (least, most) = (self.file_mib.iter().min(), self.file_mib.iter().max());
        match (least, most) {
            (Some(least), Some(most)) if least != most => format!("{least} to {most}"),
            (Some(size), _) => size.to_string(),
            _ => "0".to_owned(),
        }
    }

    /// Bytes of all files, including copies.
    pub(super) fn bytes(&self) -> u64 {
        let of = |(kind, mib): (&Kind, &u64)| match kind {
            Kind::Copy => mib << 21,
            Kind::Tree => (mib << 20) + (TREE_FILES as u64 * TREE_FILE_BYTES),
            _ => mib << 20,
        };
        self.kinds.iter().zip(&self.file_mib).map(of).sum()
    }

    /// Returns the script that makes the files and the tasks' commands, for a shell with `$LUC`, `$MNT` and `$WORK`.
    /// The seed decides the place of each task's file on the disk.
    pub(super) fn preparation(&self, seed: u64) -> String {
        let mut places: Vec<usize> = (1..=self.kinds.len()).collect();
        places.shuffle(&mut seeded_random::stream(seed, 1));
        let mut sizes = self.file_mib.clone();
        sizes.sort_unstable();
        sizes.dedup();
        let mut script = String::new();
        for size in sizes {
            let files: Vec<String> = places
                .iter()
                .filter(|number| self.file_mib[**number - 1] == size)
                .map(|number| format!("\"$MNT/{number}\""))
                .collect();
            let _ = writeln!(
                script,
                "\"$LUC\" bench ranking --create {size}M --spread {} || fail 'no files'",
                files.join(" ")
            );
        }
        for (number, kind) in (1..).zip(&self.kinds) {
            if *kind == Kind::Tree {
                let _ = writeln!(script, "make_tree \"$MNT/tree.{number}\" {TREE_FILES}");
            }
            let _ = writeln!(script, "echo '{}' >\"$WORK/task.{number}\"", kind.commands(number));
        }
        script
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_has_a_file_and_a_command_for_each_task() {
        let mix = Mix::streams(2, 32);
        let script = mix.preparation(1);
        assert!(script.contains("--create 32M --spread"), "{script}");
        let last = "echo '\"$LUC\" bench ranking \"$MNT/2\" ' >\"$WORK/task.2\"";
        assert_eq!(script.lines().last(), Some(last));
        assert_eq!(mix.bytes(), 64 << 20);
        assert_eq!(Mix::batch(16, 8).about(), "12 stream, 4 think");
    }

    #[test]
    fn seeds_move_files_and_leave_the_tasks() {
        let mix = Mix::compounded(0);
        assert_eq!(mix, Mix::compounded(0));
        assert_ne!(mix.kinds, Mix::compounded(1).kinds);
        let is_place = |line: &&str| line.contains("--create");
        let parts = |seed| {
            let script = mix.preparation(seed);
            let all: (Vec<_>, Vec<_>) = script.lines().partition(is_place);
            (all.0.join("\n"), all.1.join("\n"))
        };
        let (one, two) = (parts(1), parts(2));
        assert_ne!(one.0, two.0);
        assert_eq!(one.1, two.1);
    }
}
