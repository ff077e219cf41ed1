//! Checks of the machine before anything is made.

use std::fs;
use std::path::Path;

use luc_host::available_memory;
use luc_host::installed_programs::has_tool;
use luc_units::format_size;

use crate::{DemoError, DemoStorage};

/// Programs of the system that the emulated disk needs, and the packages that have them.
const TOOLS: [(&str, &str); 3] =
    [("mkfs.ext4", "e2fsprogs"), ("e2fsck", "e2fsprogs"), ("mount", "mount")];
/// Memory for the emulated disk (170 MiB at the end of a demo, as measured) and for the programs.
const MEMORY_BYTES: u64 = 512 << 20;

/// Checks that the demo can run there.
///
/// # Errors
///
/// [`DemoError::Lacks`] with everything that is missing, [`DemoError::Directory`].
pub fn check(place: &DemoStorage) -> Result<(), DemoError> {
    match place {
        DemoStorage::Own(directory) => check_directory(directory),
        DemoStorage::Emulated => {
            let mut lacking = list_lacking(has_tool, Path::new("/dev/fuse").exists(), has_loop());
            lacking.extend(describe_lacking_memory());
            if lacking.is_empty() { Ok(()) } else { Err(DemoError::Lacks(lacking.join(", "))) }
        }
    }
}

fn check_directory(directory: &Path) -> Result<(), DemoError> {
    let wrong = |reason| DemoError::Directory { path: directory.to_owned(), reason };
    fs::read_dir(directory).map(drop).map_err(wrong)?;
    rustix::fs::access(directory, rustix::fs::Access::WRITE_OK)
        .map_err(|reason| wrong(reason.into()))
}

/// Lists missing programs and devices, each with its source.
fn list_lacking(has_tool: impl Fn(&str) -> bool, has_fuse: bool, has_loop: bool) -> Vec<String> {
    let tools = TOOLS.iter().filter(|(tool, _)| !has_tool(tool));
    let mut lacking: Vec<String> =
        tools.map(|(tool, package)| format!("{tool} (install {package})")).collect();
    if !has_fuse {
        lacking.push("/dev/fuse (`modprobe fuse`)".to_owned());
    }
    if !has_loop {
        lacking.push("/dev/loop-control (`modprobe loop`)".to_owned());
    }
    lacking
}

fn describe_lacking_memory() -> Option<String> {
    let available = available_memory::available_bytes()?;
    (available < MEMORY_BYTES).then(|| {
        format!(
            "{} of memory for the disk, and {} are available",
            format_size(MEMORY_BYTES),
            format_size(available)
        )
    })
}

fn has_loop() -> bool {
    Path::new("/dev/loop-control").exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_missing_is_named_with_its_package() {
        let text = list_lacking(|tool| tool == "mount", false, false).join(", ");
        for part in [
            "mkfs.ext4 (install e2fsprogs)",
            "e2fsck (install e2fsprogs)",
            "modprobe fuse",
            "modprobe loop",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("install mount"), "{text}");
        assert!(list_lacking(|_| true, true, true).is_empty());
    }

    #[test]
    fn a_directory_that_is_none_is_named() {
        let place = DemoStorage::Own("/no/such/place".into());
        let error = check(&place).expect_err("refused").to_string();
        assert!(error.contains("/no/such/place"), "{error}");
        assert_eq!(error.lines().count(), 1);
    }
}
