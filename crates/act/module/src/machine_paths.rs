//! Paths of a machine that the module needs.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Variable with a directory tree that stands for the machine. For tests only: commands read the tree, but nothing is
/// ever loaded.
pub const TEST_ROOT_VARIABLE: &str = "LUC_KERNEL_TEST_ROOT";

/// A machine: this one, or a directory tree that stands for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachinePaths {
    root: PathBuf,
}

impl MachinePaths {
    /// This machine, unless a test says otherwise by [`TEST_ROOT_VARIABLE`].
    pub fn from_environment() -> Self {
        Self::at(env::var_os(TEST_ROOT_VARIABLE).map_or_else(|| "/".into(), PathBuf::from))
    }

    /// The machine whose `/` is `root`.
    pub fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// The path in the machine's tree of the absolute path `path`.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Whether this process may load and unload modules here: root, and not on a tree that stands for a
    /// machine.
    pub(crate) fn is_ours(&self) -> bool {
        self.root == Path::new("/") && rustix::process::geteuid().is_root()
    }

    /// The release of the running kernel, as `uname -r` prints it; empty if /proc does not tell.
    pub fn running_kernel(&self) -> String {
        self.text("/proc/sys/kernel/osrelease").unwrap_or_default()
    }

    /// A small file without the blanks around; `None` if it cannot be read.
    pub(crate) fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = fs::read_to_string(self.path(path)).ok()?;
        Some(text.trim().to_owned())
    }

    /// Whether there is a file or directory.
    pub(crate) fn has(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).exists()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_root() {
        let machine = MachinePaths::at("/tmp/tree".into());
        assert_eq!(machine.path("/sys/kernel"), Path::new("/tmp/tree/sys/kernel"));
        assert_eq!(MachinePaths::at("/".into()).path("/sys"), Path::new("/sys"));
    }
}
