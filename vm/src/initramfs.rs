//! A guest's file system in memory, as an archive for one run.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use crate::cpio;
use crate::error::Error;
use crate::guest_programs::ProgramRoot;
use crate::host_tools;

/// The first process. It loads modules, runs the script and sends the results.
const INIT: &[u8] = include_bytes!("init.sh");

/// Folders in every guest. `bin`, `lib` and the like are links into `usr`, as on today's distributions.
const FOLDERS: [&str; 14] = [
    "dev", "proc", "sys", "run", "tmp", "mnt", "root", "etc", "var", "luc", "usr", "usr/bin",
    "usr/sbin", "usr/lib",
];
const LINKS: [(&str, &str); 5] = [
    ("bin", "usr/bin"),
    ("sbin", "usr/sbin"),
    ("lib", "usr/lib"),
    ("lib64", "usr/lib64"),
    ("var/run", "../run"),
];

#[derive(Debug)]
pub(crate) struct Initramfs<'a> {
    root: ProgramRoot<'a>,
    archive: cpio::CpioWriter,
    folders: BTreeSet<String>,
    files: BTreeSet<String>,
}

impl<'a> Initramfs<'a> {
    /// Makes an archive with busybox, its init, and the folders that programs expect.
    pub(crate) fn new(root: ProgramRoot<'a>) -> Result<Self, Error> {
        let mut this = Self {
            root,
            archive: cpio::CpioWriter::default(),
            folders: BTreeSet::new(),
            files: BTreeSet::new(),
        };
        for folder in FOLDERS {
            this.folder(folder);
        }
        this.folder("usr/lib64");
        for (name, target) in LINKS {
            this.archive.link(name, target);
        }
        let busybox = match root {
            ProgramRoot::Host => host_tools::find("busybox")?,
            ProgramRoot::Folder(_) => root.locate(Path::new("busybox"))?,
        };
        this.file_of_host(Path::new("/usr/bin/busybox"), &busybox)?;
        this.libraries(&busybox)?;
        this.archive.link("usr/bin/sh", "busybox");
        this.content(
            Path::new("/etc/passwd"),
            0o644,
            b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n",
        );
        this.content(Path::new("/etc/group"), 0o644, b"root:x:0:\nnogroup:x:65534:\n");
        this.content(Path::new("/init"), 0o755, INIT);
        Ok(this)
    }

    /// Adds a file with this content. An existing file stays unchanged.
    pub(crate) fn content(&mut self, path: &Path, mode: u32, content: &[u8]) {
        let name = name(path);
        if !self.files.insert(name.clone()) {
            return;
        }
        if let Some((folder, _)) = name.rsplit_once('/') {
            self.folder(folder);
        }
        self.archive.file(&name, mode, content);
    }

    /// Adds a file of the host at `path`, with its permission bits.
    pub(crate) fn file_of_host(&mut self, path: &Path, source: &Path) -> Result<(), Error> {
        let file = |error| Error::File { path: source.to_owned(), source: error };
        let mode = std::fs::metadata(source).map_err(file)?.permissions().mode();
        self.content(path, mode, &host_tools::read(source)?);
        Ok(())
    }

    /// Adds a program of the host as `/luc/bin/NAME`, which comes before busybox's tools in `PATH`. Its libraries go
    /// where the loader looks for them.
    pub(crate) fn program(&mut self, program: &Path) -> Result<(), Error> {
        let found = self.root.locate(program)?;
        let name = found.file_name().unwrap_or_default();
        self.file_of_host(&Path::new("/luc/bin").join(name), &found)?;
        self.libraries(&found)
    }

    /// Adds the shared libraries of a file of the host.
    pub(crate) fn libraries(&mut self, of: &Path) -> Result<(), Error> {
        for (guest, library) in self.root.libraries(of)? {
            self.file_of_host(&guest, &library)?;
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.archive.finish()
    }

    /// Adds a folder and those above it.
    fn folder(&mut self, name: &str) {
        if name.is_empty() || self.folders.contains(name) {
            return;
        }
        if let Some((above, _)) = name.rsplit_once('/') {
            self.folder(above);
        }
        self.archive.folder(name);
        self.folders.insert(name.to_owned());
    }
}

/// Returns a path in the archive: relative, without `.` and `..`, and below `usr` where `/bin` and the like are links.
fn name(path: &Path) -> String {
    let parts = path.components().filter(|part| matches!(part, Component::Normal(_)));
    let path: PathBuf = parts.collect();
    let merged = ["bin", "sbin", "lib", "lib64"].iter().any(|folder| path.starts_with(folder));
    let path = if merged { Path::new("usr").join(path) } else { path };
    path.to_string_lossy().into_owned()
}
