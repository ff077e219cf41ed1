//! Finds the file systems that a command uses, however it is linked: the devices of the files that it and its children
//! have open for writing.
//!
//! It is a sample, for programs that the gate's library does not reach: a file that is opened and closed between two
//! looks is not seen.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use luc_host::descendants::with_descendants;
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use crate::BlockDeviceNumber;

/// Maximum number of open files in one sample, so that a look at a large tree stays short.
const MAX_FILES: usize = 4096;
/// Maximum number of processes in one sample.
const MAX_PROCESSES: usize = 256;

/// The devices on which `process` and its descendants have regular files open for writing.
pub fn sample(process: u32) -> BTreeSet<BlockDeviceNumber> {
    let mut devices = BTreeSet::new();
    let mut files = 0;
    for process in with_descendants(process, MAX_PROCESSES) {
        if files > MAX_FILES {
            break;
        }
        let directory = Path::new("/proc").join(process.to_string());
        let Ok(open) = fs::read_dir(directory.join("fd")) else {
            continue;
        };
        for entry in open.flatten().take(MAX_FILES) {
            files += 1;
            devices.extend(written_device(&entry.path()));
        }
    }
    devices
}

/// The device of a descriptor's file, if that is a regular file open for writing.
fn written_device(descriptor: &Path) -> Option<BlockDeviceNumber> {
    const OWNER_MAY_WRITE: u32 = 0o200;
    const KIND: u16 = 0o170_000;
    const REGULAR: u16 = 0o100_000;

    // The link's own mode says how the file is open.
    let link = fs::symlink_metadata(descriptor).ok()?;
    if std::os::unix::fs::MetadataExt::mode(&link) & OWNER_MAY_WRITE == 0 {
        return None;
    }
    // Asks no server for what is known here: a hung one must not hang us.
    let file = statx(CWD, descriptor, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE).ok()?;
    (file.stx_mode & KIND == REGULAR)
        .then_some(BlockDeviceNumber { major: file.stx_dev_major, minor: file.stx_dev_minor })
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::MetadataExt as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_grandchild_s_open_file_is_seen_and_read_only_ones_are_not() {
        if !Path::new("/proc/self/task")
            .join(std::process::id().to_string())
            .join("children")
            .exists()
        {
            luc_testkit::skipped!("this kernel has no /proc/PID/task/TID/children");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("written");
        let device = BlockDeviceNumber::from_raw(fs::metadata(place.path()).unwrap().dev());
        let open = |redirection: &str| {
            // What the test has inherited may be open for writing on the same device.
            let script = format!(
                "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; (exec 5{redirection}'{}'; echo; read line); :",
                file.display()
            );
            let mut shell = Command::new("sh")
                .args(["-c", &script])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            shell.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
            let found = sample(shell.id());
            drop(shell.stdin.take());
            shell.wait().unwrap();
            found
        };
        assert!(open(">").contains(&device));
        assert!(!open("<").contains(&device));
    }
}
