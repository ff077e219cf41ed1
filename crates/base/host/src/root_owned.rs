//! Checks files that root acts on: whether somebody else could have written them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Bits of a mode by which others than the owner may write.
const OTHERS_WRITE: u32 = 0o022;

/// The users whose files this process may act on: root, and the user that is root by sudo. `None` for ordinary users:
/// other people's files let them change nothing that they could not change anyway.
fn trusted() -> Option<[Option<u32>; 2]> {
    let sudo = std::env::var("SUDO_UID").ok();
    let sudo = sudo.and_then(|user| user.parse().ok());
    rustix::process::geteuid().is_root().then_some([Some(0), sudo])
}

/// The reason why this process cannot trust `about`, in words after its name; `None` if it can.
fn doubt(about: &fs::Metadata) -> Option<String> {
    doubt_of(about.uid(), about.mode(), &trusted()?)
}

fn doubt_of(owner: u32, mode: u32, trusted: &[Option<u32>]) -> Option<String> {
    if !trusted.contains(&Some(owner)) {
        return Some(format!("it belongs to user {owner}, who could have root change anything"));
    }
    if mode & OTHERS_WRITE != 0 {
        return Some(format!("others than its owner may write to it (mode {:o})", mode & 0o7777));
    }
    None
}

/// The reason why the file at `path`, or the target of a link there, cannot be trusted; `None` if it can, or is not
/// there.
#[must_use]
pub fn doubt_at(path: &Path) -> Option<String> {
    let node = fs::symlink_metadata(path).ok()?;
    // Whoever has a link can have it lead elsewhere at any time; its mode means nothing.
    if node.is_symlink() && doubt_of(node.uid(), 0, &trusted()?).is_some() {
        return Some(format!("it is a link of user {}", node.uid()));
    }
    doubt(&fs::metadata(path).ok()?)
}

/// The text of a file that root may act on; `None` if there is no file.
///
/// # Errors
/// It cannot be read, is no ordinary file, or others than this user may have written it.
pub fn read(path: &Path) -> io::Result<Option<String>> {
    let opened =
        OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let mut file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    check(&file)?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(Some(text))
}

/// Checks that an open file is an ordinary one that only this user can have written.
///
/// # Errors
/// The objection to it.
pub fn check(file: &File) -> io::Result<()> {
    let about = file.metadata()?;
    let doubt =
        if about.is_file() { doubt(&about) } else { Some("it is no ordinary file".to_owned()) };
    doubt.map_or(Ok(()), |doubt| Err(io::Error::new(io::ErrorKind::PermissionDenied, doubt)))
}

/// Makes a file, or empties it, that nobody else may read or write.
///
/// # Errors
/// The system's; a link is refused.
pub fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_and_modes() {
        let trusted = [Some(0), Some(1000)];
        assert_eq!(doubt_of(0, 0o100_644, &trusted), None);
        assert_eq!(doubt_of(1000, 0o40_755, &trusted), None);
        for (owner, mode, words) in [
            (65_534, 0o100_600, "user 65534"),
            (0, 0o100_664, "mode 664"),
            (1000, 0o41_777, "mode 1777"),
        ] {
            let said = doubt_of(owner, mode, &trusted).expect("refused");
            assert!(said.contains(words), "{said}");
        }
        assert!(doubt_of(1000, 0o100_644, &[Some(0), None]).is_some());
    }

    #[test]
    fn links_and_folders_are_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        assert_eq!(read(&file).expect("nothing there"), None);
        fs::write(&file, "text").expect("written");
        assert_eq!(read(&file).expect("read").as_deref(), Some("text"));
        std::os::unix::fs::symlink(&file, &link).expect("linked");
        read(&link).expect_err("a link");
        read(folder.path()).expect_err("a folder");
        create(&link).expect_err("a link");
    }
}
