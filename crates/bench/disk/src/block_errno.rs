//! Errors that a block device can report.
//!
//! The kernel carries a request's failure as a `blk_status_t`. A file system gets the errno of that status
//! (`blk_status_to_errno`, block/blk-core.c). An errno without a status becomes EIO on the way
//! (`errno_to_blk_status`). So a disk that answers with one shows only EIO.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Error;

/// An errno that arrives as it was sent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BlockErrno(usize);

struct ErrnoRow {
    name: &'static str,
    number: i32,
    /// Name in the kernel's log.
    meaning: &'static str,
    /// The first kernel with its status.
    since: (u32, u32),
}

const fn row(name: &'static str, number: i32, meaning: &'static str) -> ErrnoRow {
    ErrnoRow { name, number, meaning, since: (0, 0) }
}

const fn since(row: ErrnoRow, since: (u32, u32)) -> ErrnoRow {
    ErrnoRow { since, ..row }
}

/// `blk_errors` of block/blk-core.c (Linux 6.18), the commonest first.
const TABLE: [ErrnoRow; 18] = [
    row("EIO", libc::EIO, "I/O"),
    row("ENODATA", libc::ENODATA, "critical medium"),
    row("ETIMEDOUT", libc::ETIMEDOUT, "timeout"),
    row("EREMOTEIO", libc::EREMOTEIO, "critical target"),
    row("EILSEQ", libc::EILSEQ, "protection"),
    row("ENOLINK", libc::ENOLINK, "recoverable transport"),
    row("EBADE", libc::EBADE, "reservation conflict"),
    row("ENOSPC", libc::ENOSPC, "critical space allocation"),
    since(row("ENODEV", libc::ENODEV, "device offline"), (5, 18)),
    row("EOPNOTSUPP", libc::EOPNOTSUPP, "operation not supported"),
    row("ENOMEM", libc::ENOMEM, "kernel resource"),
    row("EBUSY", libc::EBUSY, "device resource"),
    row("EAGAIN", libc::EAGAIN, "nonblocking retry"),
    row("EREMCHG", libc::EREMCHG, "dm internal retry"),
    since(row("ETOOMANYREFS", libc::ETOOMANYREFS, "open zones exceeded"), (5, 9)),
    since(row("EOVERFLOW", libc::EOVERFLOW, "active zones exceeded"), (5, 9)),
    since(row("ETIME", libc::ETIME, "duration limit exceeded"), (6, 5)),
    since(row("EINVAL", libc::EINVAL, "invalid"), (6, 11)),
];

impl BlockErrno {
    /// EIO, which every kernel carries and into which all others turn.
    pub const EIO: Self = Self(0);

    /// Lists all errnos, the commonest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..TABLE.len()).map(Self)
    }

    /// Lists all errnos that the kernel of this release (`uname -r`) carries.
    pub fn of_kernel(release: &str) -> impl Iterator<Item = Self> {
        let kernel = version(release);
        Self::all().filter(move |errno| TABLE[errno.0].since <= kernel)
    }

    /// Returns its name, as in `ENODATA`.
    pub fn name(self) -> &'static str {
        TABLE[self.0].name
    }

    /// Returns its number, as in `errno`.
    pub fn number(self) -> i32 {
        TABLE[self.0].number
    }

    /// Returns its name in the kernel's log.
    pub fn meaning(self) -> &'static str {
        TABLE[self.0].meaning
    }

    /// Checks that the kernel of this release carries the errno.
    ///
    /// # Errors
    /// [`Error::Errno`].
    pub fn check_kernel(self, release: &str) -> Result<(), Error> {
        let (major, minor) = TABLE[self.0].since;
        if version(release) >= (major, minor) {
            return Ok(());
        }
        Err(Error::Errno {
            given: self.name().to_owned(),
            reason: format!(
                "Linux {release} turns it into EIO, since it is carried from {major}.{minor} on"
            ),
            known: known(release),
        })
    }
}

pub fn kernel_release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Parses `6.12.43-amd64` as (6, 12). Text that is no version counts as newer than all.
fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor),
        _ => (u32::MAX, 0),
    }
}

fn known(release: &str) -> String {
    let names: Vec<&str> = BlockErrno::of_kernel(release).map(BlockErrno::name).collect();
    names.join(", ")
}

impl FromStr for BlockErrno {
    type Err = Error;

    /// Reads a name, in any case, or a number.
    fn from_str(text: &str) -> Result<Self, Error> {
        let number: Option<i32> = text.parse().ok();
        let found = Self::all().find(|errno| {
            errno.name().eq_ignore_ascii_case(text) || number == Some(errno.number())
        });
        let is_like_one = text.len() > 1 && text.starts_with(['E', 'e']) || number.is_some();
        found.ok_or_else(|| Error::Errno {
            given: text.to_owned(),
            reason: if is_like_one {
                "a block device cannot carry it, the kernel turns it into EIO".to_owned()
            } else {
                "it is neither an errno's name nor its number".to_owned()
            },
            known: known(""),
        })
    }
}

impl TryFrom<String> for BlockErrno {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<BlockErrno> for String {
    fn from(errno: BlockErrno) -> Self {
        errno.name().to_owned()
    }
}

impl fmt::Display for BlockErrno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for BlockErrno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_and_numbers_are_read() {
        for errno in BlockErrno::all() {
            assert_eq!(errno.name().parse::<BlockErrno>().ok(), Some(errno));
            assert_eq!(errno.name().to_lowercase().parse::<BlockErrno>().ok(), Some(errno));
            assert_eq!(errno.number().to_string().parse::<BlockErrno>().ok(), Some(errno));
            let json = serde_json::to_string(&errno).expect("JSON");
            assert_eq!(serde_json::from_str::<BlockErrno>(&json).ok(), Some(errno));
        }
        assert_eq!("61".parse::<BlockErrno>().map(BlockErrno::name).ok(), Some("ENODATA"));
    }

    #[test]
    fn what_a_block_device_cannot_carry_is_refused() {
        for text in ["EPERM", "EROFS", "1", "30", "0", "-5"] {
            let message = text.parse::<BlockErrno>().expect_err("refused").to_string();
            assert!(message.contains(text) && message.contains("cannot carry"), "{message}");
        }
        for text in ["", "disk", "5.5"] {
            let message = text.parse::<BlockErrno>().expect_err("refused").to_string();
            assert!(message.contains("neither"), "{message}");
        }
    }

    #[test]
    fn older_kernels_carry_fewer() {
        let count = |release: &str| BlockErrno::of_kernel(release).count();
        assert_eq!(count("6.1.0-56-amd64"), 16);
        assert_eq!(count("6.12.43+deb12-amd64"), 18);
        assert_eq!(count("something"), 18);
        let etime: BlockErrno = "ETIME".parse().expect("an errno");
        let message = etime.check_kernel("6.1.0-56-amd64").expect_err("refused").to_string();
        assert!(message.contains("ETIME") && message.contains("6.5"), "{message}");
        assert!(etime.check_kernel("6.5.0").is_ok());
    }

    proptest! {
        #[test]
        fn no_input_panics(text in "\\PC{0,20}") {
            let _ = text.parse::<BlockErrno>();
            let _ = version(&text);
        }
    }
}
