//! Ids. Each has its own type, so that a thread is never taken for a process.

use std::fmt;

use serde::Serialize;

/// Defines a newtype around an integer, with its meaning of 0.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// Returns whether this is 0, which means "none" or "unknown".
            pub fn is_none(self) -> bool {
                self.0 == 0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A jbd2 transaction id (`tid_t`); 0 if unknown. Wraps around, so compare with [`Transaction::is_before`].
    Transaction(u32)
}
id! {
    /// A thread: what the kernel calls pid and user space tid, in the initial namespace; 0 if unknown.
    Pid(u32)
}
id! {
    /// A process: the id of its thread group, in the initial namespace; 0 if unknown.
    Tgid(u32)
}
id! {
    /// A cgroup's id in version 2: the inode number of its directory; 0 if unknown.
    Cgroup(u64)
}
id! {
    /// An inode's number within its file system; 0 if unknown.
    Inode(u64)
}
id! {
    /// An end of a connection in this trace, rows of the `connection` table; 0 if unknown.
    ConnectionId(u32)
}
id! {
    /// A kernel stack of this trace, a row of the `stack` table; 0 if not recorded.
    StackId(u32)
}

impl Transaction {
    /// Returns whether this transaction is earlier than `other`, also across the wrap (jbd2's `tid_gt`).
    pub fn is_before(self, other: Self) -> bool {
        (other.0.wrapping_sub(self.0) as i32) > 0
    }
}

/// A block device or a file system's `st_dev`, as the kernel's own `dev_t`: major << 20 | minor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dev(pub u32);

/// Bits of the minor number in the kernel's `dev_t` (`MINORBITS`).
const MINOR_BITS: u32 = 20;

impl Dev {
    /// Makes a device of its numbers. The minor number has 20 bits.
    pub fn new(major: u32, minor: u32) -> Self {
        Self(major << MINOR_BITS | minor & ((1 << MINOR_BITS) - 1))
    }

    /// Returns the major number.
    pub fn major(self) -> u32 {
        self.0 >> MINOR_BITS
    }

    /// Returns the minor number.
    pub fn minor(self) -> u32 {
        self.0 & ((1 << MINOR_BITS) - 1)
    }

    /// Returns whether the device is unknown.
    pub fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Dev {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major(), self.minor())
    }
}

impl Serialize for Dev {
    /// Serializes as text, `major:minor`, as in `/proc/self/mountinfo`.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_are_ordered_across_the_wrap() {
        assert!(Transaction(1).is_before(Transaction(2)));
        assert!(!Transaction(2).is_before(Transaction(2)));
        assert!(Transaction(u32::MAX).is_before(Transaction(3)));
        assert!(!Transaction(3).is_before(Transaction(u32::MAX)));
    }

    #[test]
    fn devices_keep_their_numbers() {
        let dev = Dev::new(259, 1_048_575);
        assert_eq!((dev.major(), dev.minor()), (259, 1_048_575));
        assert_eq!(dev.to_string(), "259:1048575");
    }
}
