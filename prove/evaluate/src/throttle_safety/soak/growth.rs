//! Whether a process grows.

use std::fs;
use std::path::Path;

use serde::Serialize;

/// What a process holds.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Size {
    resident_kib: u64,
    descriptors: u64,
}

/// What a process held when it had worked for a while, and what it held last.
#[derive(Debug, Default, Serialize)]
pub(super) struct Growth {
    looks: u64,
    first: Size,
    last: Size,
}

/// Looks until a process has everything that it needs: tables grow to the number of services that run at a time.
const WARM_LOOKS: u64 = 100;
/// Memory by which it may differ, KiB: the allocator's doing.
const ALLOWED_KIB: u64 = 1024;

impl Growth {
    /// Looks at a process; one that has just ended is not counted.
    pub(super) fn look(&mut self, process: u32) {
        let Some(size) = size(process) else { return };
        self.looks += 1;
        if self.looks <= WARM_LOOKS {
            self.first = size;
        }
        self.last = size;
    }

    /// Whether it was watched for long enough, and did not grow.
    pub(super) fn is_none(&self) -> bool {
        self.looks > 2 * WARM_LOOKS
            && self.last.resident_kib <= self.first.resident_kib + ALLOWED_KIB
            && self.last.descriptors <= self.first.descriptors + 2
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
            (
                "descriptors",
                self.first.descriptors.to_string(),
                self.last.descriptors.to_string(),
            ),
        ]
    }
}

fn size(process: u32) -> Option<Size> {
    let own = Path::new("/proc").join(process.to_string());
    let status = fs::read_to_string(own.join("status")).ok()?;
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
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
