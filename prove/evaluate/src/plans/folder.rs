//! The folder in which a part's sweep keeps its repeats until all are made.

use std::fs;
use std::hash::{DefaultHasher, Hasher as _};
use std::path::{Path, PathBuf};

use super::super::EvaluateError;

/// The folder of a sweep that may go on later. A file beside it names the build of `luc` that measures.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    build: PathBuf,
}

impl Folder {
    /// Opens the folder of a part, or of its workloads that `only` names, beside the program `myself`.
    ///
    /// # Errors
    ///
    /// When another build of `luc` began the sweep: the figures of two builds would be mixed.
    pub(super) fn open(
        part: &'static str,
        only: Option<&str>,
        myself: &Path,
        luc: &Path,
    ) -> Result<Self, EvaluateError> {
        let name = only.map_or_else(|| part.to_owned(), |only| format!("{part}-{only}"));
        let folder = Self {
            path: myself.with_file_name(format!("{name}.sweep")),
            build: myself.with_file_name(format!("{name}.sweep.build")),
        };
        let build = build(luc)?;
        let begun = folder.path.exists();
        if begun && fs::read_to_string(&folder.build).ok().as_deref() != Some(&build) {
            return Err(EvaluateError::OtherBuild { part, folder: folder.path });
        }
        fs::write(&folder.build, build).map_err(EvaluateError::file("write", &folder.build))?;
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the folder once the raw data are complete.
    pub(super) fn remove(self) -> Result<(), EvaluateError> {
        fs::remove_dir_all(&self.path).map_err(EvaluateError::file("remove", &self.path))?;
        fs::remove_file(&self.build).map_err(EvaluateError::file("remove", &self.build))
    }
}

/// Returns a hash of the program `luc` and of the gate's library beside it.
fn build(luc: &Path) -> Result<String, EvaluateError> {
    let mut hasher = DefaultHasher::new();
    hasher.write(&fs::read(luc).map_err(EvaluateError::file("read", luc))?);
    // A luc without the library cannot measure the gate, and says so itself.
    if let Ok(library) = fs::read(luc.with_file_name("libluc_gate_preload.so")) {
        hasher.write(&library);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_build_does_not_go_on() {
        let place = tempfile::tempdir().unwrap();
        let (myself, luc) = (place.path().join("luc-evaluate"), place.path().join("luc"));
        fs::write(&luc, "one build").unwrap();
        let open = || Folder::open("varmail", None, &myself, &luc);
        // The sweep makes its folder.
        fs::create_dir(open().unwrap().path()).unwrap();
        assert!(open().is_ok());

        fs::write(&luc, "another build").unwrap();
        let refused = open().unwrap_err().to_string();
        assert!(refused.contains("varmail.sweep"), "{refused}");

        fs::write(&luc, "one build").unwrap();
        open().unwrap().remove().unwrap();
        fs::write(&luc, "another build").unwrap();
        assert!(open().is_ok());
    }
}
