//! A guest's system: an image with the packages that a service needs, as they are installed here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::EvaluateError;
use crate::harness::Harness;

/// Format of a line for each package, tab-separated: its state, whether every system has it, its name, its
/// dependencies, and what it provides.
const FORMAT: &str =
    "${db:Status-Status}\t${Essential}\t${Package}\t${Pre-Depends}, ${Depends}\t${Provides}\n";

/// Folders that no program reads in a run.
const LEFT_OUT: [&str; 6] = [
    "/usr/share/doc/",
    "/usr/share/man/",
    "/usr/share/locale/",
    "/usr/share/info/",
    "/usr/share/lintian/",
    "/usr/share/i18n/",
];

/// Folders that are links into `usr`.
const MERGED: [&str; 4] = ["bin", "lib", "lib64", "sbin"];

const PROGRAMS: [&str; 2] = ["/usr/bin", "/usr/sbin"];
/// Folder of the targets of links to programs that are in no package, for instance awk's.
const ALTERNATIVES: &str = "/etc/alternatives";

/// Bytes for data that a run writes outside its own folder, and for the file system's own data.
const SPARE_BYTES: u64 = 128 << 20;
/// Block size of the file system.
const BLOCK_BYTES: u64 = 4096;

/// Creation time of each image, so that one made anew is the same: seconds since 1970.
const CREATION_S: u64 = 1_700_000_000;

/// A system with packages, all their dependencies, and this machine's settings.
pub(super) struct System<'a> {
    harness: &'a Harness,
    root: PathBuf,
}

impl<'a> System<'a> {
    /// Copies the packages' files.
    ///
    /// # Errors
    /// [`EvaluateError`]: a package is not installed, or its files cannot be copied.
    pub(super) fn of(harness: &'a Harness, packages: &[&str]) -> Result<Self, EvaluateError> {
        for package in packages {
            harness.package_version(package)?;
        }
        let mut query = Command::new("dpkg-query");
        query.args(["--show", "--showformat", FORMAT]);
        let installed = Installed::parse(&harness.execute(&mut query, &[0])?.stdout);
        let mut list = Command::new("dpkg");
        list.arg("--listfiles").args(installed.with_all(packages));
        let mut files = files(&harness.execute(&mut list, &[0])?.stdout);
        for folder in PROGRAMS {
            files.extend(alternatives(folder)?);
        }

        let root = harness.path("system");
        let (names, archive) = (harness.path("system.files"), harness.path("system.tar"));
        let text: String = files.iter().map(|file| format!("{file}\n")).collect();
        fs::write(&names, text).map_err(EvaluateError::file("write", &names))?;
        fs::create_dir(&root).map_err(EvaluateError::file("make", &root))?;
        let mut pack = Command::new("tar");
        pack.args(["--create", "--directory=/", "--file"])
            .arg(&archive)
            .args(["--recursion", "etc", "--no-recursion", "--files-from"])
            .arg(&names);
        harness.execute(&mut pack, &[0])?;
        let mut unpack = Command::new("tar");
        unpack
            .args(["--extract", "--preserve-permissions", "--directory"])
            .arg(&root)
            .arg("--file")
            .arg(&archive);
        harness.execute(&mut unpack, &[0])?;
        fs::remove_file(&archive).map_err(EvaluateError::file("remove", &archive))?;
        Ok(Self { harness, root })
    }

    /// Makes the image of this system whose UUID and hash seed follow from `seed`. The order of hashed data follows
    /// from them.
    ///
    /// # Errors
    /// [`EvaluateError`]: the image cannot be made.
    pub(super) fn image(&self, seed: usize) -> Result<PathBuf, EvaluateError> {
        let image = self.harness.path("system.img");
        // The one before would show through where this one has nothing.
        let _ = fs::remove_file(&image);
        let uuid = format!("11111111-1111-1111-1111-{seed:012x}");
        let mut make = Command::new("mke2fs");
        make.env("E2FSPROGS_FAKE_TIME", CREATION_S.to_string());
        // No journal: there is one alone in the guest.
        make.args(["-q", "-F", "-t", "ext4", "-O", "^has_journal"])
            .args(["-U", &uuid, "-E", &format!("hash_seed={uuid}"), "-d"])
            .arg(&self.root)
            .arg(&image)
            .arg(format!("{}k", (bytes(&self.root)? + SPARE_BYTES) >> 10));
        self.harness.execute(&mut make, &[0])?;
        Ok(image)
    }
}

impl Drop for System<'_> {
    fn drop(&mut self) {
        // The rest goes with the harness's folder.
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// The packages of this machine.
#[derive(Debug, Default)]
struct Installed {
    /// Dependencies of each package: any name of a list is enough.
    needs: BTreeMap<String, Vec<Vec<String>>>,
    /// Providers of names that belong to no package; of several, the one that is used here.
    providers: BTreeMap<String, String>,
    essential: Vec<String>,
}

impl Installed {
    fn parse(text: &str) -> Self {
        let mut this = Self::default();
        for line in text.lines() {
            let [state, essential, package, needs, provides] =
                line.split('\t').collect::<Vec<_>>()[..]
            else {
                continue;
            };
            if state != "installed" {
                continue;
            }
            if essential == "yes" {
                this.essential.push(package.to_owned());
            }
            let needs = needs.split(',').map(|any| any.split('|').map(name).collect());
            this.needs.insert(package.to_owned(), needs.collect());
            for provided in provides.split(',').map(name) {
                if !this.providers.contains_key(&provided) || is_used_for(package, &provided) {
                    this.providers.insert(provided, package.to_owned());
                }
            }
        }
        this
    }

    /// Returns these packages, those of every system, and all their dependencies. Packages that are not installed are
    /// left out.
    fn with_all(&self, packages: &[&str]) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        let wanted = packages.iter().map(|package| (*package).to_owned());
        let mut open: Vec<String> = wanted.chain(self.essential.iter().cloned()).collect();
        while let Some(package) = open.pop() {
            let Some(needs) = self.needs.get(&package) else {
                continue;
            };
            if all.insert(package) {
                open.extend(needs.iter().filter_map(|any| self.find_package(any)).cloned());
            }
        }
        all
    }

    /// Returns the package of the first of these names that an installed one has or provides.
    fn find_package<'a>(&'a self, any: &'a [String]) -> Option<&'a String> {
        any.iter().find_map(|name| match self.needs.contains_key(name) {
            true => Some(name),
            false => self.providers.get(name),
        })
    }
}

/// Whether the program of this name belongs to the package, as awk may to gawk.
fn is_used_for(package: &str, name: &str) -> bool {
    let used = fs::read_link(Path::new(ALTERNATIVES).join(name));
    used.is_ok_and(|used| used.file_name().is_some_and(|file| file == package))
}

/// Returns the name in `name:any (>= 1.0)`.
fn name(word: &str) -> String {
    let end = |c: char| c == ':' || c == '(' || c.is_whitespace();
    let word = word.trim();
    word.split(end).next().unwrap_or_default().to_owned()
}

/// Returns the files of `dpkg --listfiles`, relative to the root and without those left out. Folders come before their
/// contents.
fn files(listed: &str) -> BTreeSet<String> {
    let wanted = |path: &&str| {
        path.starts_with('/')
            && !LEFT_OUT.iter().any(|folder| path.starts_with(folder))
            && fs::symlink_metadata(path).is_ok()
    };
    let listed = listed.lines().filter(wanted).map(|path| merged(&path[1..]));
    let links = MERGED.iter().map(|name| (*name).to_owned());
    listed
        .chain(links)
        .filter(|path| !path.is_empty() && path != "." && !path.starts_with("etc"))
        .collect()
}

/// Returns the links of a folder to alternatives, relative to the root.
fn alternatives(folder: &str) -> Result<Vec<String>, EvaluateError> {
    let mut links = Vec::new();
    for entry in fs::read_dir(folder).map_err(EvaluateError::file("read", folder))? {
        let path = entry.map_err(EvaluateError::file("read", folder))?.path();
        if fs::read_link(&path).is_ok_and(|target| target.starts_with(ALTERNATIVES)) {
            links.extend(path.to_str().map(|path| path[1..].to_owned()));
        }
    }
    Ok(links)
}

/// Returns a path without a link into `usr`.
fn merged(path: &str) -> String {
    let above = path.split('/').next().unwrap_or_default();
    if MERGED.contains(&above) && above != path {
        return format!("usr/{path}");
    }
    path.to_owned()
}

/// Returns the size of the files below a folder, bytes.
fn bytes(folder: &Path) -> Result<u64, EvaluateError> {
    let mut sum = 0;
    for entry in fs::read_dir(folder).map_err(EvaluateError::file("read", folder))? {
        let entry = entry.map_err(EvaluateError::file("read", folder))?;
        let path = entry.path();
        let metadata = fs::symlink_metadata(&path).map_err(EvaluateError::file("read", &path))?;
        sum += if metadata.is_dir() {
            BLOCK_BYTES + bytes(&path)?
        } else {
            metadata.len().next_multiple_of(BLOCK_BYTES)
        };
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "installed\tno\tserver\tlibc6 (>= 2.36), perl:any | ruby, awk\t\n\
        installed\tyes\tbash\t, libc6\t\n\
        installed\tno\tlibc6\t, \t\n\
        installed\tno\tmawk\t, libc6\tawk\n\
        config-files\tno\tperl\t, \t\n\
        installed\tno\truby\t, gone\t\n\
        installed\tno\tother\t, \t\n";

    #[test]
    fn packages_come_with_what_they_depend_on() {
        let all = Installed::parse(TEXT).with_all(&["server", "unknown"]);
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        assert_eq!(all, ["bash", "libc6", "mawk", "ruby", "server"]);
    }

    #[test]
    fn files_are_where_links_lead() {
        assert_eq!(merged("lib/x86_64-linux-gnu/libc.so.6"), "usr/lib/x86_64-linux-gnu/libc.so.6");
        assert_eq!(merged("lib"), "lib");
        assert_eq!(merged("usr/bin/awk"), "usr/bin/awk");
        let found =
            files("/.\n/usr\n/usr/bin\n/usr/share/doc/nothing\n/etc/passwd\n/no/such/file\n");
        assert!(found.contains("usr/bin") && found.contains("lib"));
        assert!(found.iter().all(|file| !file.contains("doc") && !file.starts_with("etc")));
        assert!(!found.contains("no/such/file") && !found.contains("."));
    }
}
