//! Finds the files that a task reads by the open files of its processes, and how much is left.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::cgroup::FreezableCgroup;

/// Size below which a file says nothing about how long a task will take.
const MIN_FILE_BYTES: u64 = 1 << 20;
/// Largest number of processes that are read.
const MAX_PROCESSES: usize = 16;

/// Identity of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenFileId {
    dev: u64,
    inode: u64,
}

/// The large files that a task has open to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenFiles {
    pub(crate) files: Vec<OpenFileId>,
    /// Bytes from the positions of its processes to the ends of the files; `None` if there are no files.
    pub(crate) remaining_bytes: Option<u64>,
}

impl OpenFiles {
    /// Reads the open files of all processes of a cgroup.
    pub(crate) fn of(cgroup: &FreezableCgroup) -> Self {
        let mut all = Self::default();
        for process in (cgroup.processes().into_iter().flatten()).take(MAX_PROCESSES) {
            let folder = Path::new("/proc").join(process.to_string());
            for (file, bytes) in of_process(&folder) {
                all.files.push(file);
                *all.remaining_bytes.get_or_insert(0) += bytes;
            }
        }
        all
    }
}

/// Large files that a process has open to read, and the bytes left of each. `folder` is its folder in `/proc`.
fn of_process(folder: &Path) -> Vec<(OpenFileId, u64)> {
    let Ok(open) = fs::read_dir(folder.join("fd")) else {
        return Vec::new();
    };
    open.flatten()
        .filter_map(|entry| {
            let about = fs::metadata(entry.path()).ok()?;
            if !about.is_file() || about.size() < MIN_FILE_BYTES {
                return None;
            }
            let info = fs::read_to_string(folder.join("fdinfo").join(entry.file_name())).ok()?;
            let (position, is_read) = position_of(&info)?;
            let left_bytes = about.size().saturating_sub(position);
            is_read.then_some((OpenFileId { dev: about.dev(), inode: about.ino() }, left_bytes))
        })
        .collect()
}

/// Parses `/proc/PID/fdinfo/FD`: the position, and whether the file was opened to be read only.
fn position_of(info: &str) -> Option<(u64, bool)> {
    let value = |name: &str| info.lines().find_map(|line| line.strip_prefix(name));
    let position = value("pos:")?.trim().parse().ok()?;
    let flags = i32::from_str_radix(value("flags:")?.trim(), 8).ok()?;
    Some((position, flags & libc::O_ACCMODE == libc::O_RDONLY))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _, SeekFrom, Write as _};

    use super::*;

    #[test]
    fn what_is_left_of_a_file_that_is_read() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&vec![1; 3 << 20]).expect("written");
        let mut reader = fs::File::open(file.path()).expect("opened");
        reader.seek(SeekFrom::Start(1 << 20)).expect("sought");
        let mut byte = [0];
        reader.read_exact(&mut byte).expect("read");
        let about = file.as_file().metadata().expect("metadata");
        let open = of_process(Path::new("/proc/self"));
        let this = OpenFileId { dev: about.dev(), inode: about.ino() };
        // The file is also open for writing, which does not count.
        let of_this = open.iter().filter(|(id, _)| *id == this);
        let left: Vec<u64> = of_this.map(|(_, left)| *left).collect();
        assert_eq!(left, [(2 << 20) - 1]);
    }

    #[test]
    fn fdinfo() {
        let info = "pos:\t4096\nflags:\t0100000\nmnt_id:\t29\n";
        assert_eq!(position_of(info), Some((4096, true)));
        assert_eq!(position_of("pos:\t0\nflags:\t0100001\n"), Some((0, false)));
        assert_eq!(position_of("nothing"), None);
    }
}
