//! Candidates: file systems and options that are worth trying.

use luc_disk::MkfsSpec;
use luc_units::format_size;
use serde::Serialize;

use super::error::AdviseError;
use luc_sweep::{
    SweepPolicy, SweepTarget, distribution_has, guest_needs, kernel_has, least_bytes, shown_size,
};
use luc_workload::name_suggestion::meant;

/// A file system, where it is found, and options for it.
struct FileSystem {
    name: &'static str,
    /// Advice for a kernel that lacks it.
    kernel: &'static str,
    /// Label, options of mkfs and of mount, the default first.
    options: &'static [(&'static str, &'static str, &'static str)],
}

/// Options of mkfs and mount by default.
const DEFAULT: (&str, &str, &str) = ("default", "", "");
const NOATIME: (&str, &str, &str) = ("noatime", "", "noatime");

/// Options that cost nothing in a power cut, and ones that do, which [`SweepTarget::danger`] knows.
const FILE_SYSTEMS: &[FileSystem] = &[
    FileSystem {
        name: "ext4",
        kernel: "load the module ext4, or build a kernel with CONFIG_EXT4_FS",
        options: &[
            DEFAULT,
            NOATIME,
            ("fast-commit", "-O fast_commit", ""),
            ("journal-data", "", "data=journal"),
            ("inode-1k", "-I 1024", ""),
            ("block-1k", "-b 1024", ""),
            ("big-journal", "-J size=256", ""),
            ("writeback-data", "", "data=writeback"),
            ("no-barrier", "", "barrier=0"),
            ("no-journal", "-O ^has_journal", ""),
        ],
    },
    FileSystem {
        name: "xfs",
        kernel: "load the module xfs, or build a kernel with CONFIG_XFS_FS",
        options: &[
            DEFAULT,
            NOATIME,
            ("inode-1k", "-i size=1024", ""),
            ("block-1k", "-b size=1024", ""),
        ],
    },
    FileSystem {
        name: "btrfs",
        kernel: "load the module btrfs, or build a kernel with CONFIG_BTRFS_FS",
        options: &[
            DEFAULT,
            NOATIME,
            ("nodatacow", "", "nodatacow"),
            ("no-barrier", "", "nobarrier"),
        ],
    },
    FileSystem {
        name: "f2fs",
        kernel: "load the module f2fs, or build a kernel with CONFIG_F2FS_FS",
        options: &[
            DEFAULT,
            NOATIME,
            ("strict-fsync", "", "fsync_mode=strict"),
            ("no-barrier", "", "fsync_mode=nobarrier"),
        ],
    },
    FileSystem {
        name: "ext3",
        kernel: "load the module ext4, which mounts it, or build a kernel with CONFIG_EXT4_FS",
        options: &[
            DEFAULT,
            ("journal-data", "", "data=journal"),
            ("writeback-data", "", "data=writeback"),
        ],
    },
    FileSystem {
        name: "ext2",
        kernel: "load the module ext4, which mounts it, or build a kernel with CONFIG_EXT4_FS",
        options: &[DEFAULT],
    },
    FileSystem {
        name: "reiserfs",
        kernel: "Linux 6.13 removed it; older ones have it as CONFIG_REISERFS_FS",
        options: &[DEFAULT, ("notail", "", "notail")],
    },
];

/// A candidate that was left out, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotTried {
    /// File system, or file system and options.
    pub what: String,
    /// Why, and how to try it nevertheless.
    pub why: String,
}

/// Candidates that the user wants.
#[derive(Debug)]
pub(super) struct CandidateFilter<'a> {
    /// File systems; all, if there are none.
    pub(super) only: &'a [String],
    /// Labels of options; all, if there are none.
    pub(super) options: &'a [String],
    /// Whether options that lose data are tried as well.
    pub(super) unsafe_too: bool,
    /// The version of the distribution's kernel that guests run; without: this machine's kernel.
    pub(super) kernel: Option<&'a str>,
}

/// Splits the candidates into targets to be tried and those that this machine lacks.
pub(super) fn targets(
    wanted: &CandidateFilter<'_>,
) -> Result<(Vec<SweepTarget>, Vec<NotTried>), AdviseError> {
    check_names("--only", wanted.only, FILE_SYSTEMS.iter().map(|known| known.name))?;
    let labels = FILE_SYSTEMS.iter().flat_map(|known| known.options).map(|option| option.0);
    check_names("--options", wanted.options, labels)?;
    let (mut targets, mut not_tried) = (Vec::new(), Vec::new());
    for known in FILE_SYSTEMS {
        if !is_wanted(wanted.only, known.name) {
            continue;
        }
        if let Some(why) = known.is_missing(wanted.kernel) {
            let what = known.name.to_owned();
            not_tried.push(NotTried { what, why });
            continue;
        }
        for &option in known.options {
            if !is_wanted(wanted.options, option.0) {
                continue;
            }
            let target = known.target(option);
            match target.danger() {
                Some(danger) if !wanted.unsafe_too => not_tried.push(NotTried {
                    what: format!("{} {}", known.name, option.0),
                    why: format!("{danger} (--unsafe tries it)"),
                }),
                _ => targets.push(target),
            }
        }
    }
    Ok((targets, not_tried))
}

/// Returns the `targets` whose file systems fit on a disk of `size_bytes`; adds the others to `not_tried`.
pub(super) fn that_fit(
    targets: Vec<SweepTarget>,
    size_bytes: u64,
    not_tried: &mut Vec<NotTried>,
) -> Vec<SweepTarget> {
    let mut fit = Vec::new();
    for target in targets {
        let fs = target.fs.clone().unwrap_or_default();
        let Some(least) = least_bytes(&fs).filter(|&least| size_bytes < least) else {
            fit.push(target);
            continue;
        };
        let reason = NotTried {
            what: fs,
            why: format!(
                "it needs a disk of {} or more, and this one has {}",
                format_size(least),
                shown_size(size_bytes)
            ),
        };
        if !not_tried.contains(&reason) {
            not_tried.push(reason);
        }
    }
    fit
}

fn is_wanted(names: &[String], name: &str) -> bool {
    names.is_empty() || names.iter().any(|wanted| wanted == name)
}

fn check_names<'a>(
    option: &'static str,
    given: &[String],
    known: impl Iterator<Item = &'a str>,
) -> Result<(), AdviseError> {
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    known.dedup();
    match given.iter().find(|name| !known.contains(&name.as_str())) {
        Some(name) => {
            Err(AdviseError::Unknown { option, given: name.clone(), hint: meant(name, &known) })
        }
        None => Ok(()),
    }
}

impl FileSystem {
    /// Returns the reason why it cannot be tried here, and a remedy.
    fn is_missing(&self, guests: Option<&str>) -> Option<String> {
        let Self { name, kernel, .. } = self;
        match guests {
            None if !kernel_has(name) => {
                return Some(format!("this kernel has none: {kernel}"));
            }
            Some(version) if !distribution_has(version, name) => {
                return Some(format!("Linux {version} has none: {kernel} (--kernel 6.1)"));
            }
            _ => {}
        }
        let mkfs = MkfsSpec { fs: (*name).to_owned(), options: String::new() };
        luc_disk::check_mkfs(&mkfs)
            .is_err()
            .then(|| format!("mkfs.{name} is not installed: install {}", guest_needs(name).package))
    }

    fn target(&self, (label, mkfs, mount): (&str, &str, &str)) -> SweepTarget {
        SweepTarget {
            name: format!("{}-{label}", self.name),
            fs: Some(self.name.to_owned()),
            mkfs: mkfs.to_owned(),
            mount: mount.to_owned(),
            ..SweepTarget::default()
        }
    }
}

/// Lists the commands that make `target`, and the prefix of the program for the gate.
pub(super) fn commands(target: &SweepTarget, policy: SweepPolicy) -> Vec<String> {
    let joined = |words: &[&str]| {
        let words: Vec<&str> = words.iter().copied().filter(|word| !word.is_empty()).collect();
        words.join(" ")
    };
    let mut commands = Vec::new();
    if let Some(fs) = &target.fs {
        commands.push(joined(&[&format!("mkfs.{fs}"), &target.mkfs, "DEVICE"]));
        let option = if target.mount.is_empty() { "" } else { "-o" };
        commands.push(joined(&["mount", "-t", fs, option, &target.mount, "DEVICE DIR"]));
    }
    if policy == SweepPolicy::AUTO {
        commands.push("luc run --level gate --policy auto -- PROGRAM".to_owned());
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: CandidateFilter<'_> =
        CandidateFilter { only: &[], options: &[], unsafe_too: true, kernel: None };

    #[test]
    fn guests_have_what_their_kernel_has() {
        let missing = |version: &'static str| {
            let wanted = CandidateFilter { kernel: Some(version), ..ALL };
            let (_, not_tried) = targets(&wanted).expect("names are right");
            let of_kernel = not_tried.into_iter().filter(|one| one.why.contains("has none"));
            of_kernel.map(|one| one.what).collect::<Vec<_>>()
        };
        assert!(missing("6.1").is_empty());
        assert_eq!(missing("6.13"), ["reiserfs"]);
    }

    #[test]
    fn names_differ_and_defaults_come_first() {
        for known in FILE_SYSTEMS {
            assert_eq!(known.options[0], DEFAULT);
            let mut labels: Vec<&str> = known.options.iter().map(|option| option.0).collect();
            labels.sort_unstable();
            labels.dedup();
            assert_eq!(labels.len(), known.options.len(), "{}", known.name);
        }
    }

    #[test]
    fn what_loses_data_is_only_there_when_asked_for() {
        let safe = CandidateFilter { unsafe_too: false, ..ALL };
        let (targets, _) = targets(&safe).expect("names are right");
        assert!(targets.iter().all(|target| target.danger().is_none()));
        let dangers = FILE_SYSTEMS.iter().flat_map(|known| {
            let targets = known.options.iter().map(|&option| known.target(option));
            targets.filter(|target| target.danger().is_some())
        });
        let names: Vec<String> = dangers.map(|target| target.name).collect();
        for name in [
            "ext2-default",
            "ext4-no-journal",
            "ext4-no-barrier",
            "ext4-fast-commit",
            "ext4-writeback-data",
            "ext3-writeback-data",
            "btrfs-no-barrier",
            "f2fs-no-barrier",
        ] {
            assert!(names.iter().any(|found| found == name), "{names:?}");
        }
    }

    #[test]
    fn a_wrong_name_has_the_nearest() {
        let only = ["ext5".to_owned()];
        let error = targets(&CandidateFilter { only: &only, ..ALL }).expect_err("refused");
        assert!(error.to_string().contains("did you mean 'ext"), "{error}");
        let options = ["fastcommit".to_owned()];
        let wanted = CandidateFilter { options: &options, ..ALL };
        let error = targets(&wanted).expect_err("refused");
        assert!(error.to_string().contains("'fast-commit'"), "{error}");
    }

    #[test]
    fn commands_can_be_typed() {
        let ext4 = &FILE_SYSTEMS[0];
        let fast = ext4.options.iter().find(|option| option.0 == "fast-commit");
        let target = ext4.target(*fast.expect("there"));
        assert_eq!(
            commands(&target, SweepPolicy::AUTO),
            [
                "mkfs.ext4 -O fast_commit DEVICE",
                "mount -t ext4 DEVICE DIR",
                "luc run --level gate --policy auto -- PROGRAM"
            ]
        );
        let noatime = ext4.target(NOATIME);
        assert_eq!(commands(&noatime, SweepPolicy::Off)[1], "mount -t ext4 -o noatime DEVICE DIR");
    }
}
