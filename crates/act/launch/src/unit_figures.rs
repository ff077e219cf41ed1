//! Figures of a unit's processes, read from memory that one of them has mapped: systemd may have removed the files
//! (`RemoveIPC=`), but the process still has them.
//!
//! Any process of the unit's user can write to this memory. That makes figures wrong, and nothing else: the memory is
//! copied, because a mapping would not survive that the file is cut.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use luc_gate::figures::RunFigures;
use luc_gate::gate_policy::GatePolicy;
use luc_gate::rounds::UserRounds;
use luc_gate::shared_values::{self, Shareable};
use luc_gate::user_directory::{DIRECTORY_PREFIX, UNIT_PREFIX};

use crate::gated_run_outcome::{self, FileSystemOutcome};
use crate::preload_obstacle::contains;

/// Figures of a unit's processes since the first one was started.
#[derive(Clone, Debug)]
pub struct UnitFigures {
    /// Number of filters of system calls on its first process, with the notifier's; 0 for the library.
    pub filters: u32,
    /// File systems that were synchronized on, busiest first.
    pub file_systems: Vec<FileSystemOutcome>,
}

/// Reads the figures of `unit` from the memory of one of its processes, or of their supervisor. `None` if it takes no
/// part, or belongs to somebody else.
#[must_use]
pub fn of_process(process: u32, unit: &str) -> Option<UnitFigures> {
    let of_process = PathBuf::from("/proc").join(process.to_string());
    let maps = fs::read(of_process.join("maps")).ok()?;
    let mut lines = maps.split(|&byte| byte == b'\n');
    let file = |line: &[u8]| {
        let range = line.split(|&byte| byte == b' ').next()?;
        Some(of_process.join("map_files").join(str::from_utf8(range).ok()?))
    };
    let rounds = format!("/{}", UserRounds::file_name(&GatePolicy::Auto));
    let figures: Box<RunFigures> =
        read(&file(lines.clone().find(|line| is_figures(line, unit))?)?)?;
    let arena = lines.find(|line| contains(line, &rounds));
    let arena: Option<Box<UserRounds>> = arena.and_then(file).and_then(|path| read(&path));
    Some(UnitFigures {
        filters: figures.filters.load(Relaxed),
        file_systems: gated_run_outcome::file_systems(
            &figures,
            arena.as_deref(),
            &GatePolicy::Auto,
        ),
    })
}

/// Whether a line of `/proc/PID/maps` is that of the figures of `unit`: then the process takes part.
#[must_use]
pub fn is_figures(line: &[u8], unit: &str) -> bool {
    let name = format!("/{}{unit}", UNIT_PREFIX);
    let line = line.strip_suffix(b" (deleted)").unwrap_or(line);
    contains(line, DIRECTORY_PREFIX) && line.ends_with(name.as_bytes())
}

/// Copies a shared file.
fn read<T: Shareable>(path: &Path) -> Option<Box<T>> {
    let mut bytes = Vec::new();
    let most = size_of::<T>() as u64 + 1;
    File::open(path).ok()?.take(most).read_to_end(&mut bytes).ok()?;
    shared_values::from_bytes(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use luc_gate::unit_shared_files::UnitSharedFiles;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt as _;

    #[test]
    fn what_this_process_has_mapped_is_found_also_when_the_files_are_gone() {
        let place = tempfile::tempdir().unwrap();
        let files = UnitSharedFiles::in_place(
            place.path(),
            "a.service",
            rustix::process::geteuid().as_raw(),
        );
        let own = std::process::id();
        assert!(of_process(own, "a.service").is_none());
        files.make().unwrap();
        let path = CString::new(files.figures().as_os_str().as_bytes()).unwrap();
        let figures: &RunFigures =
            shared_values::map(&path, luc_gate::writeback_errors::user()).unwrap();
        let call = luc_gate::figures::run_figures::MeasuredCall {
            kind: luc_gate::GatedCallKind::Fsync,
            latency_ns: 5,
            failed: false,
            round: None,
        };
        figures.file_system(7).unwrap().record(&call);
        fs::remove_file(files.figures()).unwrap();
        let found = of_process(own, "a.service");
        if rustix::process::geteuid().is_root() {
            assert_eq!(found.unwrap().file_systems[0].fsyncs, 1);
        } else {
            assert!(found.is_none_or(|found| found.file_systems[0].fsyncs == 1));
        }
        assert!(of_process(own, "b.service").is_none());
    }

    #[test]
    fn a_file_of_another_size_is_not_read() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x");
        let size = size_of::<RunFigures>();
        for (bytes, is_read) in [(size - 1, false), (size, true), (size + 1, false)] {
            fs::write(&path, vec![0; bytes]).unwrap();
            assert_eq!(read::<RunFigures>(&path).is_some(), is_read);
        }
    }
}
