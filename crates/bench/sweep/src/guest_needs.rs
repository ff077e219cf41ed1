//! Requirements of a guest that makes and mounts a file system.

/// Requirements for making one file system in a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuestNeeds {
    /// Name of its kernel module.
    pub module: &'static str,
    /// Program that makes the file system.
    pub program: &'static str,
    /// Debian package that has the program.
    pub package: &'static str,
}

/// Returns the requirements of `file_system`, named as mount names it.
#[must_use]
pub fn guest_needs(file_system: &str) -> GuestNeeds {
    let (module, program, package) = match file_system {
        "xfs" => ("xfs", "mkfs.xfs", "xfsprogs"),
        "reiserfs" => ("reiserfs", "mkreiserfs", "reiserfsprogs"),
        "btrfs" => ("btrfs", "mkfs.btrfs", "btrfs-progs"),
        "f2fs" => ("f2fs", "mkfs.f2fs", "f2fs-tools"),
        _ => ("ext4", "mke2fs", "e2fsprogs"),
    };
    GuestNeeds { module, program, package }
}
