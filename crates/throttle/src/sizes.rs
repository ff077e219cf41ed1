//! How much a task has yet to read, by the files that its processes have open.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::cgroup::Cgroup;

/// Files below this say nothing about how long a task will take.
const SMALLEST_BYTES: u64 = 1 << 20;
/// Processes that are looked at, at most.
const MOST_PROCESSES: usize = 16;

/// Bytes from where its processes read to the ends of the files; `None` where nothing large is read.
pub(crate) fn remaining_bytes(cgroup: &Cgroup) -> Option<u64> {
    let processes = cgroup.processes().ok()?;
    let mut remaining = None;
    for process in processes.into_iter().take(MOST_PROCESSES) {
        for bytes in of_process(Path::new("/proc").join(process.to_string()).as_path()) {
            *remaining.get_or_insert(0) += bytes;
        }
    }
    remaining
}

/// What a process, by its folder in `/proc`, has yet to read of each large file.
fn of_process(folder: &Path) -> Vec<u64> {
    let Ok(open) = fs::read_dir(folder.join("fd")) else {
        return Vec::new();
    };
    open.flatten()
        .filter_map(|entry| {
            let about = fs::metadata(entry.path()).ok()?;
            if !about.is_file() || about.size() < SMALLEST_BYTES {
                return None;
            }
            let info = fs::read_to_string(folder.join("fdinfo").join(entry.file_name())).ok()?;
            let (position, is_read) = position_of(&info)?;
            is_read.then(|| about.size().saturating_sub(position))
        })
        .collect()
}

/// Position and whether the file was opened to be read only, from `/proc/PID/fdinfo/FD`.
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
        // The file that is written is none that is read.
        assert!(of_process(Path::new("/proc/self")).contains(&((2 << 20) - 1)));
    }

    #[test]
    fn fdinfo() {
        let info = "pos:\t4096\nflags:\t0100000\nmnt_id:\t29\n";
        assert_eq!(position_of(info), Some((4096, true)));
        assert_eq!(position_of("pos:\t0\nflags:\t0100001\n"), Some((0, false)));
        assert_eq!(position_of("nothing"), None);
    }
}
