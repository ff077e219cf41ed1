//! File systems that a sweep makes, and options with which they lose data.

use std::fs;

use super::SweepTarget;

/// File systems as mkfs and mount name them, with the smallest disk that their mkfs takes, in bytes.
pub(super) const FILE_SYSTEMS: [(&str, u64); 7] = [
    ("ext2", 8 << 20),
    ("ext3", 16 << 20),
    ("ext4", 16 << 20),
    ("xfs", 300 << 20),
    ("btrfs", 128 << 20),
    ("f2fs", 64 << 20),
    ("reiserfs", 64 << 20),
];

/// Returns the least device that its mkfs takes, bytes; `None` of one that is not known.
pub fn least_bytes(name: &str) -> Option<u64> {
    let known = FILE_SYSTEMS.iter().find(|(known, _)| *known == name);
    known.map(|(_, least)| *least)
}

/// Returns whether the running kernel can mount it: built in, loaded, or as a module.
pub fn kernel_has(name: &str) -> bool {
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if known.split_whitespace().any(|word| word == name) {
        return true;
    }
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    let aliases = fs::read_to_string(format!("/lib/modules/{release}/modules.alias"));
    let wanted = format!("alias fs-{name} ");
    aliases.is_ok_and(|aliases| aliases.lines().any(|line| line.starts_with(&wanted)))
}

/// Returns whether a distribution's kernel of that version, as `6.1`, has it. Linux 6.13 removed ReiserFS.
pub fn distribution_has(version: &str, name: &str) -> bool {
    let mut numbers =
        version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    name != "reiserfs" || version < (6, 13)
}

impl SweepTarget {
    /// Describes what a power cut may cost on it, beyond the risk that the program itself takes.
    pub fn danger(&self) -> Option<&'static str> {
        let options = |text: &str| -> Vec<String> {
            let words = text.split(|c: char| c == ',' || c.is_whitespace());
            words.map(str::to_owned).collect()
        };
        let mount = options(&self.mount);
        let mounted_with = |names: &[&str]| mount.iter().any(|word| names.contains(&word.as_str()));
        if self.no_fsync {
            return Some(
                "the workload's fsyncs do nothing: a power cut loses what they would have kept",
            );
        }
        if mounted_with(&["nobarrier", "barrier=0", "barrier=none", "fsync_mode=nobarrier"]) {
            return Some("no flushes: a power cut loses what fsync has promised");
        }
        if mounted_with(&["noload", "norecovery"]) {
            return Some("the journal is not replayed");
        }
        let has_no_journal = self.fs.as_deref() == Some("ext2")
            || options(&self.mkfs).iter().any(|word| word == "^has_journal");
        if has_no_journal {
            return Some("no journal: a power cut may damage the file system itself");
        }
        let is_fast_commit = |word: &String| word == "fast_commit";
        if options(&self.mkfs).iter().any(is_fast_commit) {
            return Some(
                "fast_commit: power cuts on Linux 6.18 lost files that fsync had acknowledged \
                 (docs/evaluation/head-to-head.md)",
            );
        }
        mounted_with(&["data=writeback"])
            .then_some("data=writeback: after a power cut files may hold others' old data")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(fs: &str, mkfs: &str, mount: &str) -> SweepTarget {
        SweepTarget {
            name: "t".to_owned(),
            fs: Some(fs.to_owned()),
            mkfs: mkfs.to_owned(),
            mount: mount.to_owned(),
            ..SweepTarget::default()
        }
    }

    #[test]
    fn what_loses_data_is_known() {
        for (fs, mkfs, mount) in [
            ("ext2", "", ""),
            ("ext4", "-O ^has_journal", ""),
            ("ext4", "-b 4096 -O extent,^has_journal", "noatime"),
            ("ext4", "", "noatime,barrier=0"),
            ("xfs", "", "nobarrier"),
            ("ext4", "", "data=writeback"),
            ("ext4", "-O fast_commit", ""),
        ] {
            let target = target(fs, mkfs, mount);
            assert!(target.danger().is_some(), "{target:?}");
        }
        let no_fsync = SweepTarget { no_fsync: true, ..target("ext4", "", "") };
        assert!(no_fsync.danger().is_some());
        for (fs, mkfs, mount) in [
            ("ext3", "", "data=ordered"),
            ("ext4", "-J size=64", "noatime,data=journal"),
            ("xfs", "", "noatime"),
            ("btrfs", "", "compress=zstd"),
        ] {
            assert_eq!(target(fs, mkfs, mount).danger(), None);
        }
    }

    #[test]
    fn old_kernels_have_the_old_file_system() {
        for (version, has) in [
            ("6.1", true),
            ("6.1.0-56-amd64", true),
            ("5.10", true),
            ("6.12.117+deb12-amd64", true),
            ("6.13", false),
            ("7.0", false),
        ] {
            assert_eq!(distribution_has(version, "reiserfs"), has, "{version}");
            assert!(distribution_has(version, "f2fs"));
        }
    }

    #[test]
    fn a_file_system_of_no_kernel_is_not_there() {
        assert!(!kernel_has("nosuchfs"));
        // Wherever there is a /proc, it has itself.
        assert!(kernel_has("proc"));
    }
}
