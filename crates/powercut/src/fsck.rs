//! Each file system's own checker, told to change nothing.

use std::path::Path;
use std::process::Command;

use luc_units::OnPath as _;

use super::error::PowercutError;

/// A program that checks an unmounted file system; its status is 0 if that is clean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Checker {
    tool: &'static str,
    options: &'static [&'static str],
    package: &'static str,
}

impl Checker {
    /// The checker of `fs`; `None` if none is known.
    ///
    /// # Errors
    /// [`PowercutError::NoChecker`] if it is known and missing.
    pub(super) fn of(fs: &str) -> Result<Option<Self>, PowercutError> {
        let Some(checker) = Self::known(fs) else {
            return Ok(None);
        };
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places = std::env::split_paths(&path)
            .chain(["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(Into::into));
        if places
            .map(|place| place.join(checker.tool))
            .any(|file| file.is_file())
        {
            return Ok(Some(checker));
        }
        let Self { tool, package, .. } = checker;
        Err(PowercutError::NoChecker {
            fs: fs.to_owned(),
            tool,
            package,
        })
    }

    fn known(fs: &str) -> Option<Self> {
        let (tool, options, package): (_, &[_], _) = match fs {
            "ext2" | "ext3" | "ext4" => ("e2fsck", &["-fn"], "e2fsprogs"),
            "xfs" => ("xfs_repair", &["-n"], "xfsprogs"),
            "btrfs" => ("btrfs", &["check", "--readonly"], "btrfs-progs"),
            "f2fs" => ("fsck.f2fs", &["--dry-run"], "f2fs-tools"),
            _ => return None,
        };
        Some(Self {
            tool,
            options,
            package,
        })
    }

    /// Its command line, for the report.
    pub(super) fn command_line(&self) -> String {
        format!("{} {}", self.tool, self.options.join(" "))
    }

    /// Checks `device`. `Ok(Some(words))` if it is unclean, with the checker's last words.
    pub(super) fn check(&self, device: &Path) -> Result<Option<String>, PowercutError> {
        let mut path = std::env::var_os("PATH").unwrap_or_default();
        path.push(":/usr/sbin:/sbin:/usr/bin:/bin");
        let output = Command::new(self.tool)
            .args(self.options)
            .arg(device)
            .env("PATH", path)
            .env("LC_ALL", "C")
            .output()
            .map_err(PowercutError::io(
                "running the file system's checker",
                device,
            ))?;
        if output.status.success() {
            return Ok(None);
        }
        let said = String::from_utf8_lossy(&output.stdout);
        let problem = said
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty() && !line.starts_with("Pass"))
            .unwrap_or_default();
        Ok(Some(format!(
            "{} ({}): {problem}",
            self.tool, output.status
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_and_unknown() {
        assert_eq!(
            Checker::known("ext4").map(|c| c.command_line()).as_deref(),
            Some("e2fsck -fn")
        );
        assert_eq!(Checker::known("ramfs"), None);
    }
}
