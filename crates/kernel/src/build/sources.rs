//! The module's sources: in the build tree that luc runs from, or installed.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::{Error, Machine};

/// What a kernel build reads. Objects and the like of another build are left behind.
fn is_source(name: &Path) -> bool {
    let by_name = name
        .to_str()
        .is_some_and(|n| n == "Kbuild" || n == "Makefile");
    let by_kind = name
        .extension()
        .is_some_and(|kind| kind == "c" || kind == "h");
    // The build makes this one itself.
    let is_made = name.to_string_lossy().ends_with(".mod.c");
    (by_name || by_kind) && !is_made
}

/// The directory with the module's sources.
///
/// # Errors
///
/// [`Error::NoSources`] with all places.
pub fn find(machine: &Machine) -> Result<PathBuf, Error> {
    let program = env::current_exe().unwrap_or_default();
    let places = places(&program, machine);
    match places.iter().find(|place| is_there(place)) {
        Some(place) => Ok(place.clone()),
        None => Err(Error::NoSources(places)),
    }
}

fn is_there(place: &Path) -> bool {
    place.join("Kbuild").exists() || place.join("Makefile").exists()
}

/// The build tree above the program, the prefix that it is installed in, and DKMS' place.
fn places(program: &Path, machine: &Machine) -> Vec<PathBuf> {
    let checkout = program
        .ancestors()
        .find(|above| above.join("Cargo.toml").exists())
        .map(|tree| tree.join("kernel/luc"));
    let installed = program
        .parent()
        .and_then(Path::parent)
        .map(|prefix| prefix.join("share/luc/kernel"));
    let dkms = machine.path(concat!("/usr/src/luc-", env!("CARGO_PKG_VERSION")));
    checkout
        .into_iter()
        .chain(installed)
        .chain([dkms])
        .collect()
}

/// Copies sources that differ, not those in folders below; whether any did. Files that are no longer among the sources go.
pub(super) fn copy(from: &Path, to: &Path) -> Result<bool, Error> {
    let mut has_changed = false;
    fs::create_dir_all(to).map_err(Error::io("make", to))?;
    for entry in list(from)? {
        let (source, target) = (from.join(&entry), to.join(&entry));
        if is_source(&entry) {
            let content = fs::read(&source).map_err(Error::io("read", &source))?;
            if fs::read(&target).ok().as_ref() != Some(&content) {
                fs::write(&target, content).map_err(Error::io("write", &target))?;
                has_changed = true;
            }
        }
    }
    for entry in list(to)? {
        if is_source(&entry) && !from.join(&entry).exists() {
            let target = to.join(&entry);
            fs::remove_file(&target).map_err(Error::io("remove", &target))?;
            has_changed = true;
        }
    }
    Ok(has_changed)
}

/// The names in a directory that are not hidden.
fn list(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries: io::Result<Vec<_>> = fs::read_dir(dir).and_then(Iterator::collect);
    let entries = entries.map_err(Error::io("list", dir))?;
    Ok(entries
        .into_iter()
        .map(|entry| PathBuf::from(entry.file_name()))
        .filter(|name| !name.to_string_lossy().starts_with('.'))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_copied_once_and_objects_never() {
        let tree = tempfile::tempdir().unwrap();
        let (from, to) = (tree.path().join("from"), tree.path().join("to"));
        fs::create_dir_all(from.join("build")).unwrap();
        for (name, content) in [
            ("Kbuild", "obj-m"),
            ("a.c", "a"),
            ("b.h", "b"),
            ("build/a.c", "a"),
            ("a.o", "object"),
            ("luc.mod.c", "made"),
        ] {
            fs::write(from.join(name), content).unwrap();
        }
        assert!(copy(&from, &to).unwrap());
        assert!(to.join("Kbuild").exists() && to.join("b.h").exists());
        assert!(
            !to.join("build").exists()
                && !to.join("a.o").exists()
                && !to.join("luc.mod.c").exists()
        );
        fs::write(to.join("a.o"), "built").unwrap();
        assert!(!copy(&from, &to).unwrap());
        fs::write(from.join("a.c"), "changed").unwrap();
        fs::remove_file(from.join("b.h")).unwrap();
        assert!(copy(&from, &to).unwrap());
        assert!(!to.join("b.h").exists() && to.join("a.o").exists());
    }

    #[test]
    fn the_module_has_our_version() {
        let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernel/luc");
        for (file, line) in [
            ("dkms.conf", "PACKAGE_VERSION=\"VERSION\""),
            ("luc.h", "#define LUC_VERSION \"VERSION\""),
        ] {
            let text = fs::read_to_string(module.join(file)).unwrap();
            let line = line.replace("VERSION\"", concat!(env!("CARGO_PKG_VERSION"), "\""));
            assert!(text.lines().any(|have| have == line), "{file}: {line}");
        }
    }

    #[test]
    fn places_are_the_build_tree_the_prefix_and_dkms() {
        let tree = tempfile::tempdir().unwrap();
        fs::write(tree.path().join("Cargo.toml"), "").unwrap();
        let machine = Machine::at("/nowhere".into());
        let found = places(&tree.path().join("target/release/luc"), &machine);
        assert_eq!(found[0], tree.path().join("kernel/luc"));
        let found = places(Path::new("/usr/local/bin/luc"), &machine);
        assert_eq!(found[0], Path::new("/usr/local/share/luc/kernel"));
        assert!(found[1].starts_with("/nowhere/usr/src"));
    }
}
