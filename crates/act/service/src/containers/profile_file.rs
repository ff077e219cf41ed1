//! Makes a profile from a file.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use luc_units::OnPath as _;
use serde::Serialize;
use serde_json::Value;

use super::profile_refusal::ProfileRefusal;
use super::runtime_support::{self, RuntimeSupport};
use super::seccomp_profile::{SOCKET, derive};

/// Default profiles of Podman, Buildah and CRI-O: the machine's own, and their package's.
const DEFAULT_PATHS: [&str; 2] =
    ["/etc/containers/seccomp.json", "/usr/share/containers/seccomp.json"];

/// Maximum size of a profile; Docker's has 14,000 bytes.
const MAX_BYTES: u64 = 4 << 20;

/// A profile derived from a file, and the runtimes that can use it.
#[derive(Clone, Debug, Serialize)]
pub struct WrittenProfile {
    /// File that it was made from.
    pub of: PathBuf,
    /// Socket that its containers' listeners go to.
    pub socket: &'static str,
    pub calls: [&'static str; 2],
    /// Runtimes that were asked, with their answers.
    pub runtimes: Vec<RuntimeSupport>,
    #[serde(skip)]
    pub profile: Value,
}

/// Makes a profile from `file`, or from the runtimes' default, for `runtime`, or for each runtime that is there.
///
/// # Errors
/// [`ProfileRefusal`]: the reason why it would not work.
pub fn make(file: Option<&Path>, runtime: Option<&str>) -> Result<WrittenProfile, ProfileRefusal> {
    luc_notify::available().map_err(|_| ProfileRefusal::Kernel)?;
    let runtimes = match runtime {
        Some(name) => vec![runtime_support::ask(name)?],
        None => runtime_support::ask_all()?,
    };
    let path = match file {
        Some(path) => path,
        None => {
            find_default().ok_or_else(|| ProfileRefusal::NoProfile(DEFAULT_PATHS.join(" or ")))?
        }
    };
    let text = read(path)?;
    let profile = derive(&text)
        .map_err(|reason| ProfileRefusal::Profile { path: path.to_owned(), reason })?;
    Ok(WrittenProfile {
        of: path.to_owned(),
        socket: SOCKET,
        calls: luc_notify::seccomp_filter::NAMES,
        runtimes,
        profile,
    })
}

fn find_default() -> Option<&'static Path> {
    let mut paths = DEFAULT_PATHS.iter().map(Path::new);
    paths.find(|path| path.exists())
}

fn read(path: &Path) -> Result<String, ProfileRefusal> {
    let mut text = Vec::new();
    let file = File::open(path).map_err(ProfileRefusal::io("read", path))?;
    let mut file = file.take(MAX_BYTES + 1);
    file.read_to_end(&mut text).map_err(ProfileRefusal::io("read", path))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(ProfileRefusal::Long { path: path.to_owned(), most: MAX_BYTES });
    }
    // What is no text is no JSON, which is said of it.
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Writes a profile to `path`: whole, or not at all.
///
/// # Errors
/// [`ProfileRefusal::File`]
pub fn write(profile: &Value, path: &Path) -> Result<(), ProfileRefusal> {
    let text = format!("{profile:#}\n");
    luc_host::write_whole::write(path, text.as_bytes(), 0o644)
        .map_err(ProfileRefusal::io("written", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_end_is_no_profile() {
        let error = read(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.starts_with("/dev/zero: it is longer"), "{error}");
    }

    #[test]
    fn a_profile_appears_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("luc.json");
        let profile = derive(r#"{"defaultAction":"SCMP_ACT_ALLOW"}"#).unwrap();
        write(&profile, &path).unwrap();
        write(&profile, &path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), profile);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let error = write(&profile, &folder.path().join("x/luc.json")).unwrap_err();
        assert!(error.to_string().contains("luc.json cannot be written"), "{error}");
    }
}
