//! What a guest needs to make and mount a file system.

/// What of the kernel and of the host makes a file system in a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    pub module: &'static str,
    /// The program that makes it.
    pub program: &'static str,
    /// The package that has the program.
    pub package: &'static str,
}

/// What `file_system`, as mount calls it, needs.
#[must_use]
pub fn needs(file_system: &str) -> Needs {
    let (module, program, package) = match file_system {
        "xfs" => ("xfs", "mkfs.xfs", "xfsprogs"),
        "reiserfs" => ("reiserfs", "mkreiserfs", "reiserfsprogs"),
        "btrfs" => ("btrfs", "mkfs.btrfs", "btrfs-progs"),
        "f2fs" => ("f2fs", "mkfs.f2fs", "f2fs-tools"),
        _ => ("ext4", "mke2fs", "e2fsprogs"),
    };
    Needs { module, program, package }
}
