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
/// Memory by which it may grow, KiB: the allocator's doing.
const MAX_GROWTH_KIB: u64 = 1024;
/// Descriptors by which it may grow: a service has some, and there may be one more at a time.
const MAX_MORE_DESCRIPTORS: u64 = 4;

impl Growth {
    /// Looks at a process. One that has just ended is not counted.
    pub(super) fn look(&mut self, process: u32) {
        let Some(size) = size(process) else { return };
        self.looks += 1;
        let most = if self.looks <= FIRST_LOOKS { &mut self.first } else { &mut self.last };
        most.resident_kib = most.resident_kib.max(size.resident_kib);
        most.descriptors = most.descriptors.max(size.descriptors);
    }

    /// Whether it was watched for long enough, and did not grow.
    pub(super) fn is_none(&self) -> bool {
        self.looks > 2 * FIRST_LOOKS
            && self.last.resident_kib <= self.first.resident_kib + MAX_GROWTH_KIB
            && self.last.descriptors <= self.first.descriptors + MAX_MORE_DESCRIPTORS
    }

    pub(super) fn text(&self) -> String {
        format!(
            "{} to {} KiB, {} to {} descriptors, {} looks",
            self.first.resident_kib,
            self.last.resident_kib,
            self.first.descriptors,
            self.last.descriptors,
            self.looks
        )
    }

    pub(super) fn rows(&self) -> [(&'static str, String, String); 2] {
        [
            (
                "resident memory, KiB",
                self.first.resident_kib.to_string(),
                self.last.resident_kib.to_string(),
            ),
            ("descriptors", self.first.descriptors.to_string(), self.last.descriptors.to_string()),
        ]
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
        assert!(!Growth::default().is_none(), "nothing was watched");
    }
}
