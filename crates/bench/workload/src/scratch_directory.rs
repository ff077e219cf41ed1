//! A fresh directory to work in, removed whatever happens.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;

use crate::error::BenchError;

/// A subdirectory that nobody else uses and that goes away with this value. Forked clients must
/// leave by `_exit`, so that only the process that made it removes it.
#[derive(Debug)]
pub struct ScratchDirectory {
    path: PathBuf,
    removed: bool,
}

impl ScratchDirectory {
    /// Makes `parent/luc-bench-PID-K`. Errors: [`BenchError::Directory`] with advice.
    pub fn create(parent: &Path) -> Result<Self, BenchError> {
        let parent = parent.canonicalize().map_err(|error| BenchError::directory(parent, error))?;
        for attempt in 0_u32.. {
            let path = parent.join(format!("luc-bench-{}-{attempt}", process::id()));
            match fs::create_dir(&path) {
                Ok(()) => {
                    return Ok(Self { path, removed: false });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(BenchError::directory(&parent, error)),
            }
        }
        Err(BenchError::directory(&parent, io::ErrorKind::AlreadyExists.into()))
    }

    /// Returns its absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it now, and reports failures.
    pub fn remove(mut self) -> Result<(), BenchError> {
        self.removed = true;
        fs::remove_dir_all(&self.path).map_err(|reason| BenchError::Operation {
            path: self.path.clone(),
            what: "removing the benchmark's files".to_owned(),
            reason,
            advice: "remove them by hand",
        })
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        if !self.removed {
            // An error is on its way to the user already; this one would hide it.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_at_once_differ_and_both_go() {
        let parent = std::env::temp_dir();
        let first = ScratchDirectory::create(&parent).expect("first");
        let second = ScratchDirectory::create(&parent).expect("second");
        assert_ne!(first.path(), second.path());
        fs::write(first.path().join("file"), "x").expect("write");
        let paths = [first.path().to_owned(), second.path().to_owned()];
        first.remove().expect("remove");
        drop(second);
        assert!(paths.iter().all(|path| !path.exists()));
    }

    #[test]
    fn a_missing_parent_is_named() {
        let error = ScratchDirectory::create(Path::new("/no/such/place")).expect_err("must fail");
        assert!(error.to_string().contains("/no/such/place"), "{error}");
        assert!(error.to_string().contains("--dir"), "{error}");
    }
}
