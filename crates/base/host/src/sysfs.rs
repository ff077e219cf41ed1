//! Files of sysfs, with one value each. Their root is a parameter everywhere, so that tests can have a machine of their
//! own.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// The value in a file, without the newline.
///
/// # Errors
/// The system's.
pub fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path).map(|text| text.trim().to_owned())
}

/// A whole number in a file.
///
/// # Errors
/// The system's, or that there is no number.
pub fn read_number(path: &Path) -> io::Result<u64> {
    let text = read(path)?;
    text.parse().map_err(|_| {
        let reason = format!("'{text}' is no whole number");
        io::Error::new(io::ErrorKind::InvalidData, reason)
    })
}

/// Gives a file that is there a value, in one write as the kernel wants it.
///
/// # Errors
/// The system's.
pub fn write(path: &Path, value: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
    file.write_all(value.as_bytes())
}

/// Whether a file could be written, without doing it.
///
/// # Errors
/// Why it could not.
pub fn check_writable(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).open(path).map(drop)
}

/// Whether the processor says that a hypervisor is below it (x86; elsewhere it does not say).
#[must_use]
pub fn is_virtual_machine() -> bool {
    let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    about
        .lines()
        .find(|line| line.starts_with("flags"))
        .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"))
}
