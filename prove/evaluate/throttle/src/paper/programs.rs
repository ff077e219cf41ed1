//! The paper's seven programs (its table 2), scaled to a disk of 2 GiB. Similar programs of the distribution replace
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use luc_stats::seeded_random;
use rand::seq::SliceRandom as _;

/// Programs of the host that tasks use.
pub(super) const OF_HOST: [&str; 7] = ["gzip", "cmp", "md5sum", "wc", "xargs", "seq", "head"];
/// Memory of a breadth-first search, MiB, which is less than its file.
const SEARCH_MEMORY_MIB: u64 = 5;
/// Number of files in a tree that is built.
const TREE_FILES: usize = 48;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Program {
    /// Parallel building: 8 processes read a tree of small files, and each writes objects.
    Build,
    /// Paper similarity: compares a paper with three others at the same time.
    Similarity,
    /// Kmeans: reads its file, then computes on it in memory.
    Kmeans,
    /// A breadth-first search over a mapped file that is larger than its memory.
    Search,
    /// An encoder: reads, computes, writes less than it reads, and fsyncs.
    Encode,
    Swaptions,
    Wordcount,
    /// Counts words with this many threads, each in a file of its own.
    Mappers(usize),
}

/// The seven programs that the paper draws mixes from.
pub(super) const SEVEN: [Program; 7] = [
    Program::Build,
    Program::Similarity,
    Program::Kmeans,
    Program::Search,
    Program::Encode,
    Program::Swaptions,
    Program::Wordcount,
];

/// A program on one of its data sets, which are numbered from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Task {
    pub(super) program: Program,
    pub(super) data: usize,
}

impl Program {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Build => "PB",
            Self::Similarity => "PS",
            Self::Kmeans => "KM",
            Self::Search => "BFS",
            Self::Encode => "X264",
            Self::Swaptions => "SW",
            Self::Wordcount | Self::Mappers(_) => "WD",
        }
    }

    /// Size of each of its files, MiB; 0 if it has none of its own.
    fn file_mib(self) -> u64 {
        match self {
            Self::Similarity | Self::Kmeans | Self::Wordcount => 16,
            Self::Search => 8,
            Self::Encode => 6,
            Self::Mappers(_) => 4,
            Self::Build | Self::Swaptions => 0,
        }
    }

    fn files(self, data: usize) -> Vec<String> {
        match self {
            Self::Mappers(threads) => (1..=threads).map(|file| format!("WD.{file}")).collect(),
            _ if self.file_mib() == 0 => Vec::new(),
            _ => vec![format!("{}.{data}", self.name())],
        }
    }
}

impl Task {
    /// MiB that it reads and writes in all.
    pub(super) fn mib(self) -> u64 {
        let files = self.program.files(self.data).len() as u64;
        4 + files * self.program.file_mib()
    }

    /// Returns its commands. Its output files have its number.
    fn commands(self, number: usize) -> String {
        let Self { program, data } = self;
        match program {
            Program::Build => format!(
                "cd \"$MNT/PB.{data}\" && ls | xargs -P 8 -n 6 sh -c 'gzip -1 -c \"$@\" >\"$MNT/out.{number}.$$\"' sh"
            ),
            Program::Similarity => {
                let compare = |paper: u64| {
                    let file = format!("\"$MNT/PS.{data}\"");
                    format!("cmp -n 4M -i 0:{}M {file} {file} & all+=($!)\n", 4 * paper)
                };
                let all: String = (1..=3).map(compare).collect();
                format!("{all}for one in ${{all[@]}}; do wait $one || exit 1; done")
            }
            Program::Kmeans => format!("md5sum \"$MNT/KM.{data}\" && md5sum \"$MNT/KM.{data}\""),
            Program::Search => format!("bfs \"$MNT/BFS.{data}\""),
            Program::Encode => format!(
                "set -o pipefail\ngzip -1 -c \"$MNT/X264.{data}\" | dd of=\"$MNT/out.{number}\" bs=128k conv=fsync 2>/dev/null"
            ),
            Program::Swaptions => {
                "set -o pipefail\ndd if=/dev/zero bs=1M count=40 2>/dev/null | md5sum".to_owned()
            }
            Program::Wordcount => format!("wc -w \"$MNT/WD.{data}\""),
            Program::Mappers(threads) => format!("mappers \"$MNT/WD.\" {threads}"),
        }
    }
}

/// Returns the script that makes the tasks' files and commands. The seed decides the place of each file on the disk.
pub(super) fn preparation(tasks: &[Task], seed: u64) -> String {
    let mut script = String::from(
        "echo +memory >/sys/fs/cgroup/cgroup.subtree_control || fail 'no memory controller'\n\
         seq 1000000 9999999 | head -c 16M >/root/text\n",
    );
    let mut add = |line: &str| {
        let _ = writeln!(script, "{line}"); // a String takes any text
    };
    let data: BTreeSet<Task> = tasks.iter().copied().collect();
    let mut sizes: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for task in &data {
        let files = task.program.files(task.data);
        sizes.entry(task.program.file_mib()).or_default().extend(files);
    }
    for (mib, mut files) in sizes {
        files.sort();
        files.dedup();
        if mib == 0 || files.is_empty() {
            continue;
        }
        files.shuffle(&mut seeded_random::stream(seed, mib));
        let places: Vec<String> = files.iter().map(|file| format!("\"$MNT/{file}\"")).collect();
        add(&format!(
            "luc bench ranking --create {mib}M --spread {} >/dev/null || fail 'no files'",
            places.join(" ")
        ));
        for file in &files {
            add(&format!(
                "dd if=/root/text of=\"$MNT/{file}\" bs=1M count={mib} conv=notrunc 2>/dev/null || fail 'no text'"
            ));
        }
    }
    for task in &data {
        let number = task.data;
        match task.program {
            Program::Build => add(&format!(
                "mkdir \"$MNT/PB.{number}\" || fail 'no tree'\nfor file in $(seq {TREE_FILES}); do dd if=/root/text \
                 of=\"$MNT/PB.{number}/$file\" bs=64k count=1 skip=$file 2>/dev/null || fail 'no tree'; done"
            )),
            Program::Similarity => add(&format!(
                "for at in 1 2 3; do dd if=/root/text of=\"$MNT/PS.{number}\" bs=4M count=1 seek=$at conv=notrunc \
                 2>/dev/null || fail 'no papers'; done"
            )),
            Program::Search => add(&format!("bfs --make \"$MNT/BFS.{number}\" || fail 'no graph'")),
            _ => {}
        }
    }
    for (number, task) in (1..).zip(tasks) {
        if task.program == Program::Search {
            add(&format!("echo {SEARCH_MEMORY_MIB}M >\"$WORK/memory.{number}\""));
        }
        add(&format!("cat >\"$WORK/task.{number}\" <<'END'\n{}\nEND", task.commands(number)));
    }
    add("rm /root/text; sync");
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_on_the_same_data_share_files() {
        let task = |data| Task { program: Program::Kmeans, data };
        let script = preparation(&[task(1), task(2), task(1)], 1);
        let made = script.lines().find(|line| line.contains("--create")).expect("files");
        assert_eq!(made.matches("KM.").count(), 2, "{made}");
        assert!(script.contains("task.3"));
    }

    #[test]
    fn each_program_has_commands_and_only_a_search_has_a_limit() {
        let tasks = SEVEN.map(|program| Task { program, data: 1 });
        let script = preparation(&tasks, 1);
        assert_eq!(script.matches("memory.").count(), 1, "{script}");
        assert!(script.contains("out.5"));
    }
}
