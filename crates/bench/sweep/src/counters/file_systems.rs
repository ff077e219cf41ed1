//! Counters that file systems keep.

use std::fs;
use std::path::Path;

use super::{CounterValues, name_figures};

/// Text of their files; empty if there is none.
#[derive(Debug, Default)]
pub(super) struct FileSystemTexts {
    jbd2: String,
    fast_commit: String,
    xfs: String,
    btrfs: String,
    /// Files of /sys/fs/f2fs/DISK, a line each: name and value.
    f2fs: String,
}

impl FileSystemTexts {
    /// Reads the files for the file system on `disk`; `procfs` and `sysfs` are the roots of both.
    pub(super) fn now(procfs: &Path, sysfs: &Path, disk: &str) -> Self {
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        Self {
            // The journal's inode has number 8 (EXT4_JOURNAL_INO).
            jbd2: read(&procfs.join(format!("fs/jbd2/{disk}-8/info"))),
            fast_commit: read(&procfs.join(format!("fs/ext4/{disk}/fc_info"))),
            xfs: read(&sysfs.join(format!("fs/xfs/{disk}/stats/stats"))),
            btrfs: of_member(&sysfs.join("fs/btrfs"), disk),
            f2fs: F2FS
                .map(|(_, file)| {
                    let value = read(&sysfs.join(format!("fs/f2fs/{disk}/{file}")));
                    format!("{file} {value}\n")
                })
                .concat(),
        }
    }

    pub(super) fn totals(&self) -> CounterValues {
        let mut totals = CounterValues::new();
        let words: Vec<&str> = self.jbd2.lines().next().unwrap_or_default().split(' ').collect();
        totals.extend(name_figures(
            "jbd2",
            [
                ("commits", number(words.first())),
                ("requested_commits", number(words.get(2)).filter(|_| words.len() > 3)),
            ],
        ));
        totals.extend(name_figures(
            "ext4",
            [
                ("fast_commits", before_word(&self.fast_commit, "commits")),
                ("ineligible_fast_commits", before_word(&self.fast_commit, "ineligible")),
                ("fast_commit_blocks", before_word(&self.fast_commit, "numblks")),
            ],
        ));
        let xfs = |line: &str, field: usize| {
            let fields = self.xfs.lines().find_map(|text| text.strip_prefix(line))?;
            number(fields.split(' ').nth(field).as_ref())
        };
        totals.extend(name_figures(
            "xfs",
            [
                ("synchronous_transactions", xfs("trans ", 0)),
                ("log_writes", xfs("log ", 0)),
                ("log_written_bytes", xfs("log ", 1).map(|blocks| blocks * 512.0)),
                ("log_forces", xfs("log ", 3)),
                ("log_force_sleeps", xfs("log ", 4)),
            ],
        ));
        totals.extend(name_figures(
            "btrfs",
            [
                ("commits", after_word(&self.btrfs, "commits")),
                ("commit_ms", after_word(&self.btrfs, "total_commit_ms")),
            ],
        ));
        totals.extend(name_figures(
            "f2fs",
            F2FS.map(|(name, file)| (name, after_word(&self.f2fs, file))),
        ));
        totals
    }

    /// Returns means since the mount.
    pub(super) fn levels(&self) -> CounterValues {
        let ends = |words: &str| {
            let text = self.jbd2.lines().find_map(|line| line.strip_suffix(words))?;
            number(Some(&text.trim()))
        };
        let mut levels: CounterValues = name_figures(
            "jbd2",
            [
                ("mean_commit_us", ends("us average transaction commit time")),
                ("mean_wait_ms", ends("ms waiting for transaction")),
                ("mean_running_ms", ends("ms running transaction")),
                ("mean_locked_ms", ends("ms transaction was being locked")),
                ("mean_flushing_ms", ends("ms flushing data (in ordered mode)")),
                ("mean_logging_ms", ends("ms logging transaction")),
                ("handles_per_commit", ends(" handles per transaction")),
                ("blocks_per_commit", ends(" blocks per transaction")),
                ("logged_blocks_per_commit", ends(" logged blocks per transaction")),
            ],
        )
        .collect();
        let mean =
            self.fast_commit.lines().find_map(|line| line.strip_suffix("us avg_commit_time"));
        levels.extend(name_figures("ext4", [("mean_fast_commit_us", number(mean.as_ref()))]));
        levels
    }
}

/// Counters and their files.
const F2FS: [(&str, &str); 4] = [
    ("foreground_checkpoints", "cp_foreground_calls"),
    ("background_checkpoints", "cp_background_calls"),
    ("foreground_collections", "gc_foreground_calls"),
    ("background_collections", "gc_background_calls"),
];

fn number(word: Option<&&str>) -> Option<f64> {
    word?.trim().parse().ok()
}

/// Finds `12 commits` on a line of its own.
fn before_word(text: &str, word: &str) -> Option<f64> {
    let line = |line: &str| {
        let (value, name) = line.trim().split_once(' ')?;
        (name == word).then(|| value.parse().ok())?
    };
    text.lines().find_map(line)
}

/// Finds `commits 12` on a line of its own.
fn after_word(text: &str, word: &str) -> Option<f64> {
    let line = |line: &str| {
        let (name, value) = line.trim().split_once(' ')?;
        (name == word).then(|| value.trim().parse().ok())?
    };
    text.lines().find_map(line)
}

/// Returns the commits of the btrfs that has `disk`: its folder has the name of its UUID.
fn of_member(root: &Path, disk: &str) -> String {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .find(|path| path.join("devices").join(disk).exists())
        .and_then(|path| fs::read_to_string(path.join("commit_stats")).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const JBD2: &str = "52 transactions (50 requested), each up to 4096 blocks\naverage: \n  1ms waiting for \
                        transaction\n  0ms request delay\n  20ms running transaction\n  0ms transaction was being \
                        locked\n  3ms flushing data (in ordered mode)\n  7ms logging transaction\n  6123us average \
                        transaction commit time\n  31 handles per transaction\n  5 blocks per transaction\n  6 logged \
                        blocks per transaction\n";

    #[test]
    fn journals() {
        let texts = FileSystemTexts {
            jbd2: JBD2.to_owned(),
            fast_commit: "fc stats:\n12 commits\n3 ineligible\n40 numblks\n17us avg_commit_time\n"
                .to_owned(),
            ..FileSystemTexts::default()
        };
        let totals = texts.totals();
        assert_eq!(totals["jbd2.commits"], 52.0);
        assert_eq!(totals["ext4.fast_commits"], 12.0);
        assert_eq!(totals["ext4.fast_commit_blocks"], 40.0);
        let levels = texts.levels();
        assert_eq!(levels["jbd2.mean_commit_us"], 6123.0);
        assert_eq!(levels["jbd2.mean_running_ms"], 20.0);
        assert_eq!(levels["jbd2.handles_per_commit"], 31.0);
        assert_eq!(levels["jbd2.blocks_per_commit"], 5.0);
        assert_eq!(levels["jbd2.logged_blocks_per_commit"], 6.0);
        assert_eq!(levels["ext4.mean_fast_commit_us"], 17.0);
    }

    #[test]
    fn others() {
        let texts = FileSystemTexts {
            xfs: "trans 217 9 0\nlog 15 20 31 25 37\nxpc 1 2 3\n".to_owned(),
            btrfs: "commits 3\nlast_commit_ms 1\nmax_commit_ms 9\ntotal_commit_ms 14\n".to_owned(),
            f2fs: "cp_foreground_calls 4\n\ncp_background_calls \n".to_owned(),
            ..FileSystemTexts::default()
        };
        let totals = texts.totals();
        assert_eq!(totals["xfs.synchronous_transactions"], 217.0);
        assert_eq!(totals["xfs.log_written_bytes"], 20.0 * 512.0);
        assert_eq!(totals["xfs.log_force_sleeps"], 37.0);
        assert_eq!(totals["btrfs.commit_ms"], 14.0);
        assert_eq!(totals["f2fs.foreground_checkpoints"], 4.0);
        assert!(!totals.contains_key("f2fs.background_checkpoints"));
        assert!(texts.levels().is_empty());
    }

    #[test]
    fn files_are_found() {
        let root = tempfile::tempdir().expect("a folder");
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, text).expect("written");
        };
        put("fs/jbd2/sda1-8/info", "5 transactions (4 requested), each up to 9 blocks\n");
        put("fs/btrfs/features/raid56", "0");
        put("fs/btrfs/1-2/devices/sda1", "");
        put("fs/btrfs/1-2/commit_stats", "commits 8\n");
        let totals = FileSystemTexts::now(root.path(), root.path(), "sda1").totals();
        assert_eq!(totals["jbd2.commits"], 5.0);
        assert_eq!(totals["btrfs.commits"], 8.0);
        assert!(FileSystemTexts::now(root.path(), root.path(), "sdb").totals().is_empty());
    }
}
