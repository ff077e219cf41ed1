//! Checkers of the file systems, run without changes.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use luc_host::installed_programs::{has_tool, tool};
use luc_units::OnPath as _;

use super::error::PowercutError;

/// Time for other users to release a device that is to be checked.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// A program that checks an unmounted file system; its status is 0 if that is clean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FsckProgram {
    tool: &'static str,
    options: &'static [&'static str],
    package: &'static str,
}

impl FsckProgram {
    /// Returns the checker of `fs`; `None` if none is known.
    ///
    /// # Errors
    /// [`PowercutError::NoChecker`] if it is known and missing.
    pub(super) fn of(fs: &str) -> Result<Option<Self>, PowercutError> {
        let Some(checker) = Self::known(fs) else {
            return Ok(None);
        };
        if has_tool(checker.tool) {
            return Ok(Some(checker));
        }
        let Self { tool, package, .. } = checker;
        Err(PowercutError::NoChecker { fs: fs.to_owned(), tool, package })
    }

    fn known(fs: &str) -> Option<Self> {
        let (tool, options, package): (_, &[_], _) = match fs {
            "ext2" | "ext3" | "ext4" => ("e2fsck", &["-fn"], "e2fsprogs"),
            "xfs" => ("xfs_repair", &["-n"], "xfsprogs"),
            "btrfs" => ("btrfs", &["check", "--readonly"], "btrfs-progs"),
            "f2fs" => ("fsck.f2fs", &["--dry-run"], "f2fs-tools"),
            _ => return None,
        };
        Some(Self { tool, options, package })
    }

    pub(super) fn command_line(&self) -> String {
        format!("{} {}", self.tool, self.options.join(" "))
    }

    /// Checks `device`. `Ok(Some(words))` if it is unclean, with the checker's last words.
    pub(super) fn check(&self, device: &Path) -> Result<Option<String>, PowercutError> {
        wait_until_free(device).map_err(PowercutError::io("waiting to check", device))?;
        let output = tool(self.tool)
            .args(self.options)
            .arg(device)
            // A Ctrl-C of the terminal must not end it, since that would look like an unclean file system.
            .process_group(0)
            .stdin(Stdio::null())
            .output()
            .map_err(PowercutError::io("running the file system's checker", device))?;
        if output.status.success() {
            return Ok(None);
        }
        // A checker that was killed has found nothing.
        if output.status.signal().is_some() {
            let ended = std::io::Error::other(format!("it was ended ({})", output.status));
            return Err(PowercutError::io("running the file system's checker", device)(ended));
        }
        let said = String::from_utf8_lossy(&output.stdout);
        let problem = said
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty() && !line.starts_with("Pass"))
            .unwrap_or_default();
        Ok(Some(format!("{} ({}): {problem}", self.tool, output.status)))
    }
}

/// Waits until nobody has the device mounted. Mount namespaces that were made meanwhile keep it mounted until they end,
/// and a mounted file system looks unclean.
fn wait_until_free(device: &Path) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        let opened =
            OpenOptions::new().read(true).custom_flags(libc::O_EXCL | libc::O_CLOEXEC).open(device);
        match opened {
            Err(error)
                if error.kind() == io::ErrorKind::ResourceBusy
                    && begun.elapsed() < BUSY_TIMEOUT =>
            {
                thread::sleep(BUSY_TIMEOUT / 100);
            }
            opened => return opened.map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_and_unknown() {
        assert_eq!(
            FsckProgram::known("ext4").map(|c| c.command_line()).as_deref(),
            Some("e2fsck -fn")
        );
        assert_eq!(FsckProgram::known("ramfs"), None);
    }
}
