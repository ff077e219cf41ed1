//! The modules' sources, which are a part of this program: no writable file decides what root compiles.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use luc_units::OnPath as _;

use crate::Error;

/// The sources of a module: file names and contents.
#[derive(Clone, Copy, Debug)]
pub struct ModuleSources {
    files: &'static [(&'static str, &'static str)],
}

macro_rules! sources {
    ($folder:literal: $($name:literal)*) => {
        ModuleSources {
            files: &[$((
                $name,
                include_str!(concat!(
                    env!("CARGO_MANIFEST_DIR"),
                    "/../../../kernel/",
                    $folder,
                    "/",
                    $name
                )),
            )),*],
        }
    };
}

pub const LUC: ModuleSources = sources!("luc": "Kbuild" "Makefile" "clock.h" "compat.h" "control.c" "control.h" "control_auto.c"
    "control_returns.c" "control_trial.c" "copyout.c" "fsync.c" "hold.c" "hook.c" "journal.c" "layout.c" "luc.h" "main.c"
    "policy.c" "stats.c" "symbols.c" "sysfs.c" "trace.c" "trace_luc.h");

/// `lagdisk.ko`, the disk of virtual machines.
pub const LAGDISK: ModuleSources = sources!("lagdisk": "Kbuild" "Makefile" "attributes.c" "compat.h" "lagdisk.h" "main.c"
    "store.c");

/// Whether a kernel build reads a file. Objects of another build are left alone.
fn is_source(name: &Path) -> bool {
    let by_name = name.to_str().is_some_and(|n| n == "Kbuild" || n == "Makefile");
    let by_kind = name.extension().is_some_and(|kind| kind == "c" || kind == "h");
    // The build makes this one itself.
    let is_made = name.to_string_lossy().ends_with(".mod.c");
    (by_name || by_kind) && !is_made
}

impl ModuleSources {
    /// Writes the files that differ into `folder`, which is made if it is missing, and removes other sources there.
    /// Returns whether anything has changed.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(self, folder: &Path) -> Result<bool, Error> {
        fs::create_dir_all(folder).map_err(Error::io("make", folder))?;
        let mut has_changed = false;
        for (name, content) in self.files {
            let path = folder.join(name);
            if fs::read(&path).ok().as_deref() != Some(content.as_bytes()) {
                fs::write(&path, content).map_err(Error::io("write", &path))?;
                has_changed = true;
            }
        }
        for name in list(folder)? {
            if is_source(&name) && !self.files.iter().any(|(ours, _)| Path::new(ours) == name) {
                let path = folder.join(&name);
                fs::remove_file(&path).map_err(Error::io("remove", &path))?;
                has_changed = true;
            }
        }
        Ok(has_changed)
    }
}

/// The names in a folder that are not hidden.
fn list(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries: io::Result<Vec<_>> = fs::read_dir(folder).and_then(Iterator::collect);
    let entries = entries.map_err(Error::io("list", folder))?;
    Ok(entries
        .into_iter()
        .map(|entry| PathBuf::from(entry.file_name()))
        .filter(|name| !name.to_string_lossy().starts_with('.'))
        .collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn folder(module: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../kernel").join(module)
    }

    #[test]
    fn all_that_a_build_reads_is_embedded() {
        for (module, sources) in [("luc", LUC), ("lagdisk", LAGDISK)] {
            let names = list(&folder(module)).unwrap().into_iter();
            let there: BTreeMap<String, String> = names
                .filter(|name| is_source(name))
                .map(|name| {
                    let text = fs::read_to_string(folder(module).join(&name)).unwrap();
                    (name.display().to_string(), text)
                })
                .collect();
            let embedded = sources.files.iter();
            let embedded = embedded.map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
            assert_eq!(embedded.collect::<BTreeMap<_, _>>(), there, "{module}");
        }
    }

    #[test]
    fn sources_are_written_once_and_objects_stay() {
        let tree = tempfile::tempdir().unwrap();
        let folder = tree.path().join("luc");
        let first = ModuleSources { files: &[("Kbuild", "obj-m"), ("a.c", "a"), ("b.h", "b")] };
        assert!(first.write(&folder).unwrap());
        for made in ["a.o", "luc.mod.c"] {
            fs::write(folder.join(made), "built").unwrap();
        }
        assert!(!first.write(&folder).unwrap());
        let second = ModuleSources { files: &[("Kbuild", "obj-m"), ("a.c", "changed")] };
        assert!(second.write(&folder).unwrap());
        assert!(!folder.join("b.h").exists());
        assert_eq!(fs::read_to_string(folder.join("a.c")).unwrap(), "changed");
        assert!(folder.join("a.o").exists() && folder.join("luc.mod.c").exists());
    }

    #[test]
    fn the_module_has_our_version() {
        for (file, line) in [
            ("dkms.conf", "PACKAGE_VERSION=\"VERSION\""),
            ("luc.h", "#define LUC_VERSION \"VERSION\""),
        ] {
            let text = fs::read_to_string(folder("luc").join(file)).unwrap();
            let line = line.replace("VERSION\"", concat!(env!("CARGO_PKG_VERSION"), "\""));
            assert!(text.lines().any(|have| have == line), "{file}: {line}");
        }
    }
}
