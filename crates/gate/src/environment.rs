//! What `luc run` tells the preload library: names of environment variables and of shared files.

use std::ffi::CStr;

use crate::policy::Policy;
use crate::rounds::layout::{LAYOUT_VERSION, Rounds};

/// Directory with the shared files of this user.
pub const DIRECTORY: &str = "LUC_GATE_DIR";
/// The policy, as text.
pub const POLICY: &str = "LUC_GATE_POLICY";
/// Path of the run's figures.
pub const FIGURES: &str = "LUC_GATE_RUN";
/// The longest that a caller is held, in nanoseconds.
pub const LONGEST_WAIT_NS: &str = "LUC_GATE_LONGEST_WAIT_NS";

/// Devices on which calls are only counted, as `7:0,8:16`.
pub const COUNT_ONLY: &str = "LUC_GATE_COUNT_ONLY";

/// Devices as text for [`COUNT_ONLY`].
pub fn devices_to_text(devices: &[(u32, u32)]) -> String {
    let texts: Vec<_> = devices
        .iter()
        .map(|(major, minor)| format!("{major}:{minor}"))
        .collect();
    texts.join(",")
}

/// Reads [`COUNT_ONLY`]; what is no device is passed over.
pub fn devices_from_text(text: &str) -> Vec<(u32, u32)> {
    text.split(',')
        .filter_map(|device| {
            let (major, minor) = device.split_once(':')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        })
        .collect()
}

/// Longest path of a rounds file, with its closing zero.
const PATH_BYTES: usize = 512;

/// Names the shared files of one directory and policy. Callers with another policy or another version
/// of the layout meet elsewhere.
#[derive(Clone, Debug)]
pub struct RoundsFiles {
    prefix: String,
    suffix: String,
}

/// A path built without allocation.
#[derive(Clone, Debug)]
pub struct RoundsPath {
    bytes: [u8; PATH_BYTES],
}

impl RoundsFiles {
    /// Prepares names in `directory`; `None` if they would not fit a path of the preload library.
    pub fn new(directory: &str, policy: &Policy) -> Option<Self> {
        let prefix = format!("{directory}/rounds-");
        let policy = policy.to_string().replace(':', "_");
        let suffix = format!("-{policy}-v{LAYOUT_VERSION}-{}", size_of::<Rounds>());
        // Two numbers of ten digits, a dash and the closing zero.
        (prefix.len() + suffix.len() + 22 <= PATH_BYTES).then_some(Self { prefix, suffix })
    }

    /// The file of a device's rounds. Async-signal-safe.
    pub fn path(&self, major: u32, minor: u32) -> RoundsPath {
        let mut path = RoundsPath {
            bytes: [0; PATH_BYTES],
        };
        let mut length = 0;
        let mut push = |bytes: &[u8]| {
            for &byte in bytes {
                path.bytes[length] = byte;
                length += 1;
            }
        };
        push(self.prefix.as_bytes());
        let (digits, count) = decimal(major);
        push(&digits[..count]);
        push(b"-");
        let (digits, count) = decimal(minor);
        push(&digits[..count]);
        push(self.suffix.as_bytes());
        path
    }
}

impl RoundsPath {
    /// The path as the kernel wants it.
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

/// The digits of a number and how many there are.
fn decimal(number: u32) -> ([u8; 10], usize) {
    let mut reversed = [0; 10];
    let mut count = 0;
    let mut rest = number;
    loop {
        reversed[count] = b'0' + (rest % 10) as u8;
        count += 1;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let mut digits = [0; 10];
    for (place, digit) in reversed[..count].iter().rev().enumerate() {
        digits[place] = *digit;
    }
    (digits, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_names_device_policy_and_layout() {
        let files = RoundsFiles::new("/dev/shm/luc", &"delay:1ms:64".parse().unwrap()).unwrap();
        let path = files.path(7, 4_294_967_295);
        let text = path.as_c_str().to_str().unwrap();
        assert!(
            text.starts_with("/dev/shm/luc/rounds-7-4294967295-delay_1000000ns_64-v"),
            "{text}"
        );
    }

    #[test]
    fn devices_survive_the_environment() {
        let devices = [(7, 0), (259, 4_294_967_295)];
        assert_eq!(devices_from_text(&devices_to_text(&devices)), devices);
        assert_eq!(devices_from_text("7:0,x,1:,8:16"), [(7, 0), (8, 16)]);
        assert!(devices_from_text("").is_empty());
    }

    #[test]
    fn a_path_that_would_not_fit_is_refused() {
        assert!(RoundsFiles::new(&"x".repeat(500), &Policy::Auto).is_none());
    }
}
