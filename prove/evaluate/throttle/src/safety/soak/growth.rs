//! Growth of a process.

use std::fs;
use std::path::Path;

use serde::Serialize;

/// Memory and descriptors of a process.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Size {
    resident_kib: u64,
    descriptors: u64,
}

/// Maximum size of a process in the first part of its time, and after it.
#[derive(Debug, Default, Serialize)]
pub(super) struct Growth {
    looks: u64,
    first: Size,
    last: Size,
}

/// Looks of the first part. By then there were as many services at a time as there ever are.
const FIRST_LOOKS: u64 = 1000;

impl Growth {
    /// Looks at a process. One that has just ended is not counted.
    pub(super) fn look(&mut self, process: u32) {
        let Some(size) = size(process) else { return };
        self.looks += 1;
        let most = if self.looks <= FIRST_LOOKS { &mut self.first } else { &mut self.last };
        most.resident_kib = most.resident_kib.max(size.resident_kib);
        most.descriptors = most.descriptors.max(size.descriptors);
    }
}

fn size(process: u32) -> Option<Size> {
    let own = Path::new("/proc").join(process.to_string());
    let status = fs::read_to_string(own.join("status")).ok()?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(Size {
        resident_kib: resident.split_whitespace().next()?.parse().ok()?,
        descriptors: fs::read_dir(own.join("fd")).ok()?.count() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_a_size() {
        let own = size(std::process::id()).expect("it lives");
        assert!(own.resident_kib > 0 && own.descriptors > 2);
    }
}
