//! Mounted file systems, read from `/proc/self/mountinfo`, sysfs and ext4's super block.

use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use luc_events::Dev;
use luc_events::tables::MountedFileSystem;
use luc_host::block_device;
use luc_host::mountinfo::{MountEntry, mounts};

/// Kinds whose waits are about a disk of ours.
const KINDS: &[&str] = &["ext4", "ext3", "xfs", "btrfs", "f2fs", "jfs", "ocfs2"];

/// Every mounted file system on a disk, or served by somebody, once, but for those in `known`.
pub(crate) fn new_file_systems(at_ns: u64, known: &[Dev]) -> Vec<MountedFileSystem> {
    let mut found: Vec<MountedFileSystem> = Vec::new();
    for mount in mounts().unwrap_or_default() {
        let mut row = row(&mount);
        if !(KINDS.contains(&row.kind.as_str()) || row.is_served())
            || known.contains(&row.dev)
            || found.iter().any(|before| before.dev == row.dev)
        {
            continue;
        }
        row.at_ns = at_ns;
        row.disk = disk_of(row.dev).unwrap_or_default();
        if row.kind.starts_with("ext") {
            read_super_block(&mut row, Path::new(&mount.source));
        }
        found.push(row);
    }
    found
}

/// A mount as a row of the trace.
fn row(mount: &MountEntry) -> MountedFileSystem {
    MountedFileSystem {
        dev: Dev::new(mount.device.0, mount.device.1),
        kind: mount.kind.clone(),
        mount_point: mount.mount_point.to_string_lossy().into_owned(),
        options: join_options(&mount.options, &mount.super_options),
        ..MountedFileSystem::default()
    }
}

/// Joins the options of a mount and of its super block, each once. As in `findmnt`, the result is read-only if one of
/// the two is.
fn join_options(mount: &str, super_block: &str) -> String {
    let all = || mount.split(',').chain(super_block.split(','));
    let mut found = vec![if all().any(|option| option == "ro") { "ro" } else { "rw" }];
    for option in all() {
        if !matches!(option, "ro" | "rw") && !found.contains(&option) {
            found.push(option);
        }
    }
    found.join(",")
}

/// Returns the whole disk that holds a device; `None` for file systems on no or many disks.
pub(crate) fn disk_of(dev: Dev) -> Option<Dev> {
    let folder = block_device::folder(dev.major(), dev.minor()).ok()?;
    let (major, minor) = block_device::number(block_device::whole_disk(&folder))?;
    Some(Dev::new(major, minor))
}

/// Offset of the super block, and the bytes read from there.
const SUPER_OFFSET: u64 = 1024;
const SUPER_BYTES: usize = 1024;

/// Fills in block size, journal and fast_commit from the device (`struct ext4_super_block`).
fn read_super_block(row: &mut MountedFileSystem, source: &Path) {
    let mut bytes = [0; SUPER_BYTES];
    let read = fs::File::open(source).and_then(|mut device| {
        device.seek(SeekFrom::Start(SUPER_OFFSET))?;
        device.read_exact(&mut bytes)
    });
    if read.is_ok() {
        fill_from_super_block(row, &bytes);
    }
}

fn fill_from_super_block(row: &mut MountedFileSystem, bytes: &[u8; SUPER_BYTES]) {
    const MAGIC: usize = 0x38;
    const LOG_BLOCK_SIZE: usize = 0x18;
    const FEATURE_COMPAT: usize = 0x5c;
    const HAS_JOURNAL: u32 = 0x4;
    const FAST_COMMIT: u32 = 0x400;
    const JOURNAL_INODE: usize = 0xe0;
    const JOURNAL_DEV: usize = 0xe4;
    /// `s_jnl_blocks`: a copy of the journal inode's block map; then its size, high and low.
    const JOURNAL_SIZE_HIGH: usize = 0x10c + 15 * 4;
    const JOURNAL_SIZE_LOW: usize = 0x10c + 16 * 4;

    let word = |at: usize| bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
    if bytes[MAGIC..MAGIC + 2] != [0x53, 0xef] {
        return;
    }
    row.block_bytes = 1024 << (word(LOG_BLOCK_SIZE) & 31).min(6);
    let features = word(FEATURE_COMPAT);
    if features & HAS_JOURNAL == 0 {
        return;
    }
    row.fast_commit = features & FAST_COMMIT != 0;
    if word(JOURNAL_INODE) != 0 {
        row.journal_dev = row.dev;
        let size = u64::from(word(JOURNAL_SIZE_HIGH)) << 32 | u64::from(word(JOURNAL_SIZE_LOW));
        row.journal_blocks = size / u64::from(row.block_bytes);
    } else {
        row.journal_dev = new_decode_dev(word(JOURNAL_DEV));
    }
}

/// Decodes a device number as stored on disk (`new_decode_dev`).
fn new_decode_dev(dev: u32) -> Dev {
    Dev::new((dev & 0xfff00) >> 8, dev & 0xff | dev >> 12 & 0xfff00)
}

#[cfg(test)]
mod tests {
    use luc_host::mountinfo::parse;

    use super::*;

    #[test]
    fn a_mount_is_a_row() {
        let line =
            b"29 1 8:1 / /mnt/a\\040b rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro";
        let row = row(&parse(line)[0]);
        assert_eq!(row.dev, Dev::new(8, 1));
        assert_eq!(row.mount_point, "/mnt/a b");
        assert_eq!(row.kind, "ext4");
        assert_eq!(row.options, "rw,relatime,errors=remount-ro");
    }

    #[test]
    fn each_option_is_said_once() {
        assert_eq!(join_options("rw,relatime", "rw"), "rw,relatime");
        assert_eq!(join_options("ro,noatime", "rw,noatime,discard"), "ro,noatime,discard");
        assert_eq!(join_options("rw,relatime", "ro,norecovery"), "ro,relatime,norecovery");
    }

    #[test]
    fn an_internal_journal_is_read_from_the_super_block() {
        let mut bytes = [0; SUPER_BYTES];
        bytes[0x38..0x3a].copy_from_slice(&[0x53, 0xef]);
        bytes[0x18] = 2;
        bytes[0x5c..0x60].copy_from_slice(&0x404u32.to_le_bytes());
        bytes[0xe0] = 8;
        bytes[0x10c + 64..0x10c + 68].copy_from_slice(&(4096u32 * 8192).to_le_bytes());
        let mut row = MountedFileSystem { dev: Dev::new(7, 0), ..MountedFileSystem::default() };
        fill_from_super_block(&mut row, &bytes);
        assert_eq!((row.block_bytes, row.journal_blocks), (4096, 8192));
        assert_eq!(row.journal_dev, Dev::new(7, 0));
        assert!(row.fast_commit);
    }

    #[test]
    fn what_is_no_ext4_changes_nothing() {
        let mut row = MountedFileSystem::default();
        fill_from_super_block(&mut row, &[0; SUPER_BYTES]);
        assert_eq!(row, MountedFileSystem::default());
    }

    #[test]
    fn external_journals_have_their_own_numbers() {
        assert_eq!(new_decode_dev(0x0000_0811), Dev::new(8, 0x11));
    }
}
