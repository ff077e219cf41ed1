//! A profile made of a file.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use luc_units::OnPath as _;
use serde::Serialize;
use serde_json::Value;

use super::error::ContainerError;
use super::profile::{SOCKET, derive};
use super::runtime::{self, Answer};

/// Where Podman, Buildah and CRI-O have their default: the machine's own, and their package's.
const DEFAULTS: [&str; 2] = ["/etc/containers/seccomp.json", "/usr/share/containers/seccomp.json"];

/// No profile is longer; Docker's has 14,000 bytes.
const MOST_BYTES: u64 = 4 << 20;

/// A profile that was made.
#[derive(Clone, Debug, Serialize)]
pub struct Made {
    /// The file that it was made of.
    pub of: PathBuf,
    /// Where its containers' listeners go.
    pub socket: &'static str,
    /// The calls that are notified.
    pub calls: [&'static str; 2],
    /// The runtimes that were asked, and what they can.
    pub runtimes: Vec<Answer>,
    #[serde(skip)]
    pub profile: Value,
}

/// Makes a profile of `file`, or of the one that runtimes have by default, for `runtime`, or for whichever is there.
///
/// # Errors
/// [`ContainerError`] if it would not work, and why.
pub fn make(file: Option<&Path>, runtime: Option<&str>) -> Result<Made, ContainerError> {
    luc_notify::available().map_err(|_| ContainerError::Kernel)?;
    let runtimes = match runtime {
        Some(name) => vec![runtime::ask(name)?],
        None => runtime::ask_all()?,
    };
    let path = match file {
        Some(path) => path,
        None => default().ok_or_else(|| ContainerError::NoProfile(DEFAULTS.join(" or ")))?,
    };
    let text = read(path)?;
    let profile = derive(&text)
        .map_err(|reason| ContainerError::Profile { path: path.to_owned(), reason })?;
    Ok(Made {
        of: path.to_owned(),
        socket: SOCKET,
        calls: luc_notify::filter::NAMES,
        runtimes,
        profile,
    })
}

fn default() -> Option<&'static Path> {
    let mut paths = DEFAULTS.iter().map(Path::new);
    paths.find(|path| path.exists())
}

fn read(path: &Path) -> Result<String, ContainerError> {
    let mut text = Vec::new();
    let file = File::open(path).map_err(ContainerError::io("read", path))?;
    let mut file = file.take(MOST_BYTES + 1);
    file.read_to_end(&mut text).map_err(ContainerError::io("read", path))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(ContainerError::Long { path: path.to_owned(), most: MOST_BYTES });
    }
    // What is no text is no JSON, which is said of it.
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Writes a profile to `path`, which has it as a whole or as it was.
///
/// # Errors
/// [`ContainerError::File`]
pub fn write(profile: &Value, path: &Path) -> Result<(), ContainerError> {
    let text = format!("{profile:#}\n");
    luc_host::whole::write(path, text.as_bytes(), 0o644)
        .map_err(ContainerError::io("written", path))
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
