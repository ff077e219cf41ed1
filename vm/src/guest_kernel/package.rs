//! The `linux-image` package of a release: choosing it, fetching it, unpacking it.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::kernel_sources::KernelArchive;
use super::{bzimage, headers};
use crate::error::Error;
use crate::host_tools;

/// Parts of a package that a guest can use: file systems, block devices, networks and their dependencies.
const PARTS: [&str; 10] = [
    "arch",
    "block",
    "crypto",
    "drivers/block",
    "drivers/char",
    "drivers/md",
    "drivers/virtio",
    "fs",
    "lib",
    "net",
];
/// Single modules of large parts.
const MODULES: [&str; 3] =
    ["drivers/net/net_failover.ko", "drivers/net/veth.ko", "drivers/net/virtio_net.ko"];
/// Endings of the releases of ordinary kernels: Debian's, Ubuntu's.
const FLAVOURS: [&str; 2] = ["-amd64", "-generic"];

/// Returns the release that `version` stands for.
pub(super) fn release(version: &str, cache: &Path) -> Result<String, Error> {
    let valid = |c: char| c.is_ascii_alphanumeric() || ".+-~_".contains(c);
    if version.is_empty() || version.starts_with(['.', '-']) || !version.chars().all(valid) {
        return Err(Error::no_kernel(
            version,
            "this is no version: give one like 6.1 or 6.1.0-56-amd64",
        ));
    }
    if cache.join(version).join("vmlinux").is_file() || headers(version).is_some() {
        return Ok(version.to_owned());
    }
    let installed =
        newest(version, folders(Path::new("/lib/modules")).filter(|name| headers(name).is_some()));
    let cached = || {
        newest(version, folders(cache).filter(|name| cache.join(name).join("vmlinux").is_file()))
    };
    if let Some(release) = installed.or_else(cached) {
        return Ok(release);
    }
    let archives = KernelArchive::all(version)?;
    let images = archives.iter().map(KernelArchive::images).collect::<Result<Vec<_>, _>>()?;
    // A kernel without headers can run a guest, but no module can be built for it; and images of old releases stay in
    // an archive after their modules have gone.
    for (archive, images) in archives.iter().zip(&images) {
        let headers = archive.releases("linux-headers-")?;
        let whole = images.iter().filter(|image| headers.contains(image));
        if let Some(release) = newest(version, whole.cloned()) {
            return Ok(release);
        }
    }
    newest(version, images.into_iter().flatten()).ok_or_else(|| {
        Error::no_kernel(
            version,
            "no archive has such a linux-image: `scripts/setup-kernels.sh` adds those of other distributions; see \
             `apt-cache search linux-image`",
        )
    })
}

/// Returns the newest ordinary kernel of `releases` that is `version` or begins with it.
fn newest(version: &str, releases: impl Iterator<Item = String>) -> Option<String> {
    let fits = |release: &String| {
        release == version
            || release.strip_prefix(version).is_some_and(|rest| rest.starts_with(['.', '-', '+']))
                && FLAVOURS.iter().any(|flavour| release.ends_with(flavour))
                && !["-rt-", "-cloud-"].iter().any(|variant| release.contains(variant))
    };
    releases.filter(fits).max_by_key(|release| numbers(release))
}

/// Returns the numbers in a release, which order it: 6.1.0-9 comes before 6.1.0-10.
pub(super) fn numbers(release: &str) -> Vec<u64> {
    release.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

pub(super) fn folders(parent: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

/// Fetches the package of `release` and unpacks it to `folder`, completely or not at all.
pub(super) fn unpack(release: &str, cache: &Path, folder: &Path) -> Result<(), Error> {
    let work = Work::new(cache, release)?;
    let packages = download(release, &work.0)?;
    for package in &packages {
        extract(package, release, &work.0)?;
    }
    let image = bzimage::extract(&host_tools::read(&image(release, &work.0)?)?)?;
    write(&work.0.join("vmlinux"), &image)?;
    let file = |source| Error::File { path: folder.to_owned(), source };
    merge_usr(&work.0).map_err(file)?;
    decompress_modules(&work.0.join("lib"))?;
    let mut depmod = Command::new(host_tools::find("depmod")?);
    host_tools::output(depmod.arg("-b").arg(&work.0).arg(release))?;
    for package in &packages {
        fs::remove_file(package).map_err(file)?;
    }
    match fs::rename(&work.0, folder) {
        Ok(()) => Ok(()),
        // Another process was faster.
        Err(_) if folder.join("vmlinux").is_file() => Ok(()),
        Err(source) => Err(file(source)),
    }
}

/// Paths of the compressed image in a package.
fn images(release: &str) -> [String; 2] {
    [format!("boot/vmlinuz-{release}"), format!("usr/lib/modules/{release}/vmlinuz")]
}

fn image(release: &str, work: &Path) -> Result<PathBuf, Error> {
    let found = images(release).map(|name| work.join(name));
    let missing =
        || Error::no_kernel(release, "its packages have no vmlinuz: choose another release");
    found.into_iter().find(|path| path.is_file()).ok_or_else(missing)
}

/// Moves the modules to `lib`, even if packages have them in `usr/lib`. Both names lead to them, since programs of the
/// host use either.
fn merge_usr(work: &Path) -> io::Result<()> {
    let (merged, below_usr) = (work.join("lib"), work.join("usr/lib"));
    if !merged.exists() {
        fs::rename(&below_usr, &merged)?;
    }
    if below_usr.exists() {
        fs::remove_dir_all(&below_usr)?;
    }
    fs::create_dir_all(work.join("usr"))?;
    symlink("../lib", &below_usr)
}

/// A temporary folder, removed when this value is dropped. The next process for the same release removes what a killed
/// one left.
struct Work(PathBuf);

impl Work {
    fn new(cache: &Path, release: &str) -> Result<Self, Error> {
        let prefix = format!("{release}.unpacking.");
        for left in folders(cache).filter(|name| name.starts_with(&prefix)) {
            let owner = left.trim_start_matches(&prefix);
            if !Path::new("/proc").join(owner).exists() {
                // What cannot be removed does no harm.
                let _ = fs::remove_dir_all(cache.join(left));
            }
        }
        let path = cache.join(format!("{prefix}{}", std::process::id()));
        fs::create_dir_all(&path).map_err(|source| Error::File { path: path.clone(), source })?;
        Ok(Self(path))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // It has been renamed, or there is nobody to tell.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Fetches the packages of the image into `work`.
fn download(release: &str, work: &Path) -> Result<Vec<PathBuf>, Error> {
    let name = format!("linux-image-{release}");
    let mut archives = KernelArchive::all(release)?.into_iter();
    let archive = loop {
        let archive = archives.next().ok_or_else(|| {
            Error::no_kernel(
                release,
                "no archive has its linux-image: run `apt-get update`, or choose another release",
            )
        })?;
        if archive.images()?.iter().any(|image| image == release) {
            break archive;
        }
    };
    let mut command = archive.command("apt-get");
    // As root, apt would hand the download to a user who may not write here.
    command
        .args(["-qq", "-o", "APT::Sandbox::User=root", "download", &name])
        .args(archive.pieces(&name)?)
        .current_dir(work);
    host_tools::output(&mut command).map_err(|error| {
        Error::no_kernel(
            release,
            &format!("{error}: run `apt-get update`, or choose another release"),
        )
    })?;
    let found: Vec<PathBuf> =
        folders(work).filter(|name| name.ends_with(".deb")).map(|name| work.join(name)).collect();
    if found.is_empty() {
        return Err(Error::no_kernel(release, "apt-get download brought no package"));
    }
    Ok(found)
}

/// Unpacks the image and the modules of [`PARTS`], a quarter of the package.
fn extract(package: &Path, release: &str, work: &Path) -> Result<(), Error> {
    let system = |source| Error::System { what: "unpacking the kernel's package", source };
    let mut source = Command::new(host_tools::find("dpkg-deb")?)
        .arg("--fsys-tarfile")
        .arg(package)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(system)?;
    let mut tar = Command::new(host_tools::find("tar")?);
    tar.arg("-x").arg("-C").arg(work).arg("--wildcards");
    tar.args(images(release).map(|name| format!("./{name}")));
    tar.arg(format!("*lib/modules/{release}/modules.*"));
    tar.args(PARTS.map(|part| format!("*lib/modules/{release}/kernel/{part}/*")));
    tar.args(MODULES.map(|module| format!("*lib/modules/{release}/kernel/{module}*")));
    if let Some(stdout) = source.stdout.take() {
        tar.stdin(stdout);
    }
    // Parts that a package does not have make tar fail in the end; what matters is checked later.
    tar.output().map_err(system)?;
    source.wait().map_err(system)?;
    Ok(())
}

/// Decompresses modules, since busybox cannot load compressed ones.
fn decompress_modules(folder: &Path) -> Result<(), Error> {
    let file = |source| Error::File { path: folder.to_owned(), source };
    for entry in fs::read_dir(folder).map_err(file)? {
        let path = entry.map_err(file)?.path();
        let program = match path.extension().and_then(|extension| extension.to_str()) {
            _ if path.is_symlink() => continue,
            _ if path.is_dir() => {
                decompress_modules(&path)?;
                continue;
            }
            Some("xz") => "xz",
            Some("zst") => "zstd",
            _ => continue,
        };
        write(&path.with_extension(""), &bzimage::decompress(program, &host_tools::read(&path)?)?)?;
        fs::remove_file(&path).map_err(file)?;
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    fs::write(path, bytes).map_err(|source| Error::File { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(version: &str) -> Option<String> {
        let releases = [
            "6.1.0-9-amd64",
            "6.1.0-56-amd64",
            "6.1.0-56-rt-amd64",
            "6.1.0-99-cloud-amd64",
            "6.12.117+deb12-amd64",
            "6.12-amd64",
            "6.17.0-9-generic",
            "6.17.0-42-generic",
            "6.17.0-42-lowlatency",
            "amd64",
        ];
        newest(version, releases.iter().map(|release| (*release).to_owned()))
    }

    #[test]
    fn the_newest_plain_release_is_chosen() {
        assert_eq!(of("6.1").as_deref(), Some("6.1.0-56-amd64"));
        assert_eq!(of("6.12").as_deref(), Some("6.12.117+deb12-amd64"));
        assert_eq!(of("6.1.0-9-amd64").as_deref(), Some("6.1.0-9-amd64"));
        assert_eq!(of("6.17").as_deref(), Some("6.17.0-42-generic"));
        assert_eq!(of("6"), Some("6.17.0-42-generic".to_owned()));
        assert_eq!(of("5.10"), None);
    }
}
