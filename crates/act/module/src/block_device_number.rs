//! A block device's number.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// Major and minor number of a block device, `7:0` as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockDeviceNumber {
    pub major: u32,
    pub minor: u32,
}

impl BlockDeviceNumber {
    /// Splits a `dev_t` of stat(2).
    pub fn from_raw(device: u64) -> Self {
        Self { major: rustix::fs::major(device), minor: rustix::fs::minor(device) }
    }
}

impl fmt::Display for BlockDeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for BlockDeviceNumber {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (major, minor) = text.split_once(':').ok_or(())?;
        Ok(Self { major: major.parse().map_err(|_| ())?, minor: minor.parse().map_err(|_| ())? })
    }
}

impl Serialize for BlockDeviceNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_number_agree() {
        let device: BlockDeviceNumber = "259:17".parse().unwrap();
        assert_eq!(device.to_string(), "259:17");
        assert_eq!(
            BlockDeviceNumber::from_raw(rustix::fs::makedev(device.major, device.minor)),
            device
        );
        for wrong in ["", "7", "7:", ":0", "7:x", "7:0:1"] {
            assert!(wrong.parse::<BlockDeviceNumber>().is_err(), "{wrong}");
        }
    }
}
