//! Mounted file systems, from `/proc/PID/mountinfo`, whose form proc_pid_mountinfo(5) describes.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// The mounts as this thread sees them: a thread may have a mount namespace of its own.
pub const MOUNTINFO: &str = "/proc/thread-self/mountinfo";

/// A line of `mountinfo`: one mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountEntry {
    /// The mount's number, which statx reports for a path.
    pub id: u64,
    /// Major and minor number of the device; major 0 if it is no block device.
    pub device: (u32, u32),
    /// The mounted folder of the file system: `/` unless it is a bind mount.
    pub root: PathBuf,
    pub mount_point: PathBuf,
    pub options: String,
    /// The file system's type, such as `ext4`.
    pub kind: String,
    /// The mounted source, such as `/dev/sda1`.
    pub source: OsString,
    pub super_options: String,
}

/// All mounts of this thread's namespace.
///
/// # Errors
/// The system's, from reading [`MOUNTINFO`].
pub fn mounts() -> io::Result<Vec<MountEntry>> {
    Ok(parse(&std::fs::read(MOUNTINFO)?))
}

/// All mounts that a process sees.
///
/// # Errors
/// The system's: it has ended, or belongs to somebody else.
pub fn mounts_of(process: u32) -> io::Result<Vec<MountEntry>> {
    Ok(parse(&std::fs::read(format!("/proc/{process}/mountinfo"))?))
}

/// Parses a mountinfo file; lines of another form are passed over.
#[must_use]
pub fn parse(text: &[u8]) -> Vec<MountEntry> {
    text.split(|&byte| byte == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<MountEntry> {
    let mut fields = line.split(|&byte| byte == b' ');
    let id = number(fields.next()?)?;
    let _parent = fields.next()?;
    let device = fields.next()?;
    let colon = device.iter().position(|&byte| byte == b':')?;
    let device = (number(&device[..colon])?, number(&device[colon + 1..])?);
    let root = unescape(fields.next()?);
    let mount_point = unescape(fields.next()?);
    let options = text(fields.next()?);
    fields.find(|field| *field == b"-")?; // after any number of optional fields
    let kind = text(fields.next()?);
    let source = unescape(fields.next()?);
    let super_options = fields.next().map(text).unwrap_or_default();
    Some(MountEntry {
        id,
        device,
        root: root.into(),
        mount_point: mount_point.into(),
        options,
        kind,
        source,
        super_options,
    })
}

fn text(field: &[u8]) -> String {
    unescape(field).to_string_lossy().into_owned()
}

fn number<T: std::str::FromStr>(digits: &[u8]) -> Option<T> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Turns `\040` and its like, three octal digits after a backslash, back into bytes.
fn unescape(field: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let escaped = after
            .first_chunk::<3>()
            .filter(|digits| first == b'\\' && digits.iter().all(|d| (b'0'..=b'7').contains(d)))
            .and_then(|[a, b, c]| {
                let value =
                    u32::from(a - b'0') * 64 + u32::from(b - b'0') * 8 + u32::from(c - b'0');
                u8::try_from(value).ok()
            });
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes)
}

impl MountEntry {
    /// The last part of the mounted source, for file systems that are on no block device.
    #[must_use]
    pub fn source_name(&self) -> &OsStr {
        let name = self.source.as_bytes().rsplit(|&byte| byte == b'/').next();
        OsStr::from_bytes(name.filter(|name| !name.is_empty()).unwrap_or(self.source.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_the_manual_s_example() {
        let text =
            b"36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n";
        let mounts = parse(text);
        assert_eq!(mounts.len(), 1);
        let mount = &mounts[0];
        assert_eq!((mount.id, mount.device), (36, (98, 0)));
        assert_eq!(mount.root, Path::new("/mnt1"));
        assert_eq!(mount.mount_point, Path::new("/mnt2"));
        assert_eq!((mount.kind.as_str(), mount.source_name()), ("ext3", OsStr::new("root")));
        let options = (mount.options.as_str(), mount.super_options.as_str());
        assert_eq!(options, ("rw,noatime", "rw,errors=continue"));
    }

    #[test]
    fn passes_over_what_is_no_mount() {
        assert!(parse(b"").is_empty());
        assert!(parse(b"36 35 98:0 / /mnt rw - ext4").is_empty());
        assert!(parse(b"36 35 98 / /mnt rw - ext4 /dev/sda rw").is_empty());
        assert!(parse(b"36 35 98:0 / /mnt rw master:1 ext4 /dev/sda rw").is_empty());
    }

    #[test]
    fn escapes_that_are_none_stay() {
        assert_eq!(unescape(br"a\040b\011\134"), "a b\t\\");
        for plain in [r"\", r"\04", r"\08x", r"\777", r"a\x40"] {
            assert_eq!(unescape(plain.as_bytes()), plain);
        }
    }

    /// Escapes a name like the kernel (seq_path): space, tab, newline, backslash and `#` in octal.
    fn escape(name: &[u8]) -> Vec<u8> {
        name.iter()
            .flat_map(|&byte| match byte {
                b' ' | b'\t' | b'\n' | b'\\' | b'#' => format!("\\{byte:03o}").into_bytes(),
                byte => vec![byte],
            })
            .collect()
    }

    proptest! {
        #[test]
        fn any_mount_point_survives(name in proptest::collection::vec(1_u8.., 0..40)) {
            let mut line = b"1 2 7:3 / /".to_vec();
            line.extend(escape(&name));
            line.extend(b" rw shared:1 unbindable - ext4 /dev/loop3 rw");
            let mounts = parse(&line);
            prop_assert_eq!(mounts.len(), 1);
            prop_assert_eq!(&mounts[0].mount_point.as_os_str().as_bytes()[1..], &name[..]);
        }

        #[test]
        fn takes_any_bytes(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&text);
        }

        #[test]
        fn takes_any_text_of_its_alphabet(text in r"[0-9:\\ /\n-]{0,200}") {
            let _ = parse(text.as_bytes());
        }
    }
}
