//! UUIDs by which a sweep recognizes its own file systems. It draws one and gives it to every file system it makes.

use std::fs;
use std::path::Path;

use luc_units::OnPath as _;

use super::super::error::BorrowError;

/// File in which the kernel offers a new random UUID at each read.
const RANDOM_UUID: &str = "/proc/sys/kernel/random/uuid";

/// A signature that wipefs finds on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WipefsSignature {
    pub(super) kind: String,
    /// `None` if signatures of this kind have no UUID.
    uuid: Option<String>,
}

impl WipefsSignature {
    pub(super) fn is_of(&self, uuid: &str) -> bool {
        self.uuid.as_deref() == Some(uuid)
    }
}

/// Parses lines as `ext4 235368ae-...`; the UUID may be missing.
pub(super) fn parse(text: &str) -> Vec<WipefsSignature> {
    let signature = |line: &str| {
        let mut words = line.split_whitespace();
        Some(WipefsSignature {
            kind: words.next()?.to_owned(),
            uuid: words.next().map(str::to_owned),
        })
    };
    text.lines().filter_map(signature).collect()
}

pub(super) fn new_uuid() -> Result<String, BorrowError> {
    let path = Path::new(RANDOM_UUID);
    let text = fs::read_to_string(path).map_err(BorrowError::io("read", path))?;
    Ok(text.trim().to_owned())
}

/// Returns whether `text` is a UUID in the form that the kernel and wipefs write.
pub(super) fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    let is_digit = |c: char| c == '-' || (c.is_ascii_hexdigit() && !c.is_ascii_uppercase());
    lengths.eq([8, 4, 4, 4, 12]) && text.chars().all(is_digit)
}

/// Prepends options to those of the plan so that `mkfs.FS` gives the file system this UUID.
#[must_use]
pub fn identified(fs: &str, uuid: &str, options: &str) -> String {
    let identity = match fs {
        "xfs" => format!("-m uuid={uuid}"),
        "reiserfs" => format!("-u {uuid}"),
        _ => format!("-U {uuid}"),
    };
    format!("{identity} {options}").trim_end().to_owned()
}

/// Finds the first option of `mkfs.FS` that would give the file system another UUID, or none at all.
#[must_use]
pub fn own_identity<'o>(fs: &str, options: &'o str) -> Option<&'o str> {
    let gives = |word: &&str| match fs {
        "xfs" => word.contains("uuid="),
        // Format 3.5 has no UUID.
        "reiserfs" => *word == "3.5" || word.starts_with("-u") || word.starts_with("--uuid"),
        _ => word.starts_with("-U") || word.starts_with("--uuid"),
    };
    options.split_whitespace().find(gives)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_with_and_without_uuid() {
        let uuid = new_uuid().expect("a UUID");
        assert!(is_uuid(&uuid), "{uuid}");
        for wrong in ["", "--all", "235368AE-4691-49ec-9017-06acdf33967b", "1-2-3-4-5"] {
            assert!(!is_uuid(wrong), "{wrong}");
        }
        let found = parse(&format!("ext4 {uuid}\ndos  \nxfs  {uuid}\n"));
        let own: Vec<bool> = found.iter().map(|found| found.is_of(&uuid)).collect();
        assert_eq!(own, [true, false, true]);
        assert_eq!(found[1].kind, "dos");
        assert!(parse("\n").is_empty());
    }

    #[test]
    fn every_mkfs_is_told() {
        assert_eq!(identified("ext4", "u", ""), "-U u");
        assert_eq!(identified("btrfs", "u", "-n 4k"), "-U u -n 4k");
        assert_eq!(identified("xfs", "u", "-m crc=0"), "-m uuid=u -m crc=0");
        assert_eq!(identified("reiserfs", "u", ""), "-u u");
    }

    #[test]
    fn options_that_tell_otherwise() {
        assert_eq!(own_identity("ext4", "-b 4096 -U clear"), Some("-U"));
        assert_eq!(own_identity("f2fs", "-Utime"), Some("-Utime"));
        assert_eq!(own_identity("xfs", "-m crc=0,uuid=x"), Some("crc=0,uuid=x"));
        assert_eq!(own_identity("btrfs", "--uuid x"), Some("--uuid"));
        assert_eq!(own_identity("reiserfs", "--format 3.5"), Some("3.5"));
        assert_eq!(own_identity("ext4", "-u x -O ^has_journal"), None);
        assert_eq!(own_identity("xfs", "-m crc=0"), None);
    }
}
