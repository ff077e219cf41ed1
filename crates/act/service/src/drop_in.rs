//! luc's file beside a unit: it is there whole, or not at all.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use luc_units::OnPath as _;

use crate::ServiceError;

/// Folder of the system's own units and drop-ins.
const UNIT_FOLDER: &str = "/etc/systemd/system";
const FILE_NAME: &str = "50-luc.conf";

/// luc's drop-in file in a unit's folder.
#[derive(Clone, Debug)]
pub struct UnitDropIn {
    directory: PathBuf,
}

impl UnitDropIn {
    /// The drop-in of `unit`, which is the unit's own name.
    #[must_use]
    pub fn of(unit: &str) -> Self {
        Self::below(Path::new(UNIT_FOLDER), unit)
    }

    fn below(units: &Path, unit: &str) -> Self {
        Self { directory: units.join(format!("{unit}.d")) }
    }

    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.directory.join(FILE_NAME)
    }

    /// Reads its text; `None` if there is none.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&self) -> Result<Option<String>, ServiceError> {
        match fs::read_to_string(self.path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some).map_err(ServiceError::io("read", self.path())),
        }
    }

    /// Puts `text` in its place; `None` removes it.
    ///
    /// # Errors
    /// It cannot be changed; it is then as it was.
    pub fn set(&self, text: Option<&str>) -> Result<(), ServiceError> {
        match text {
            Some(text) => {
                let written = self.write(text);
                if written.is_err() {
                    self.remove_empty();
                }
                written.map_err(ServiceError::io("written", self.path()))
            }
            None => {
                let removed = fs::remove_file(self.path());
                self.remove_empty();
                match removed {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                    removed => removed.map_err(ServiceError::io("removed", self.path())),
                }
            }
        }
    }

    fn write(&self, text: &str) -> io::Result<()> {
        match DirBuilder::new().mode(0o755).create(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        luc_host::write_whole::write(&self.path(), text.as_bytes(), 0o644)
    }

    /// Removes the directory if it is empty.
    fn remove_empty(&self) {
        let _ = fs::remove_dir(&self.directory);
    }
}

/// The units that have one, sorted.
///
/// # Errors
/// The directory of units cannot be read.
pub fn enabled() -> Result<Vec<String>, ServiceError> {
    enabled_below(Path::new(UNIT_FOLDER))
}

fn enabled_below(units: &Path) -> Result<Vec<String>, ServiceError> {
    let entries = match fs::read_dir(units) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(ServiceError::io("read", units))?,
    };
    let mut enabled: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().join(FILE_NAME).is_file())
        .filter_map(|entry| {
            let name = entry.file_name();
            Some(name.to_str()?.strip_suffix(".d")?.to_owned())
        })
        .collect();
    enabled.sort();
    Ok(enabled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_there_as_a_whole_and_goes_with_its_directory() {
        let units = tempfile::tempdir().unwrap();
        let drop_in = UnitDropIn::below(units.path(), "a@b.service");
        assert_eq!(drop_in.read().unwrap(), None);
        drop_in.set(Some("[Service]\n")).unwrap();
        drop_in.set(Some("[Unit]\n")).unwrap();
        assert_eq!(drop_in.read().unwrap().as_deref(), Some("[Unit]\n"));
        assert_eq!(enabled_below(units.path()).unwrap(), ["a@b.service"]);
        assert_eq!(fs::read_dir(&drop_in.directory).unwrap().count(), 1);
        drop_in.set(None).unwrap();
        drop_in.set(None).unwrap();
        assert_eq!(fs::read_dir(units.path()).unwrap().count(), 0);
    }

    #[test]
    fn another_drop_in_keeps_the_directory() {
        let units = tempfile::tempdir().unwrap();
        let drop_in = UnitDropIn::below(units.path(), "a.service");
        drop_in.set(Some("x")).unwrap();
        let other = drop_in.directory.join("override.conf");
        fs::write(&other, "").unwrap();
        drop_in.set(None).unwrap();
        assert!(other.exists());
        assert!(enabled_below(units.path()).unwrap().is_empty());
    }

    #[test]
    fn what_cannot_be_written_leaves_what_was_there() {
        let units = tempfile::tempdir().unwrap();
        let drop_in = UnitDropIn::below(units.path(), "a.service");
        // A directory in the way of the new text.
        fs::create_dir_all(drop_in.directory.join(".50-luc.conf.new")).unwrap();
        fs::write(drop_in.path(), "old").unwrap();
        let error = drop_in.set(Some("new")).unwrap_err();
        assert!(error.to_string().contains("50-luc.conf cannot be written"), "{error}");
        assert_eq!(drop_in.read().unwrap().as_deref(), Some("old"));
    }
}
