//! The rounds of all file systems that one user's programs synchronize on, under one policy.
//!
//! `luc run` makes the file before it starts a program, so a program only ever maps it.

use std::sync::atomic::AtomicU64;

use super::layout::{Line, Rounds};
use crate::policy::Policy;
use crate::slots::{self, FILE_SYSTEMS, Slot};

/// Changes with every change of the layout; part of the file's name, so that two versions of LUC never
/// share memory.
const LAYOUT_VERSION: u32 = 3;

/// One file system: two sets of rounds, each with a controller of its own.
#[repr(C)]
#[derive(Debug)]
pub struct FileSystemRounds {
    device: Line<AtomicU64>,
    /// Where callers meet that need the journal to commit.
    pub commits: Rounds,
    /// Where callers meet that only need the device flushed, as long as no commit can take them along.
    pub flushes: Rounds,
}

impl FileSystemRounds {
    /// Calls of either kind served since the beginning. Both controllers compare rates of all calls: when
    /// commits are gated they take callers along that otherwise are on their own.
    pub fn served(&self) -> u64 {
        self.commits
            .completions()
            .wrapping_add(self.flushes.completions())
    }
}

impl Slot for FileSystemRounds {
    fn device(&self) -> &AtomicU64 {
        &self.device.0
    }
}

/// All of them. Mapped from a file that starts as zeros.
#[repr(C)]
#[derive(Debug)]
pub struct Arena {
    file_systems: [FileSystemRounds; FILE_SYSTEMS],
}

impl Arena {
    /// The name of the file for `policy`. Callers with another policy or another version of the layout
    /// meet elsewhere.
    pub fn file_name(policy: &Policy) -> String {
        let policy = policy.to_string().replace(':', "_");
        format!("rounds-{policy}-v{LAYOUT_VERSION}-{}", size_of::<Self>())
    }

    /// The rounds of the file system `device` (as `st_dev`), claimed on first use; `None` when all
    /// places are taken.
    pub fn claim(&self, device: u64) -> Option<&FileSystemRounds> {
        Some(slots::claim(&self.file_systems, device)?.1)
    }

    /// The rounds of the file system `device`, if others already take part in them.
    pub fn find(&self, device: u64) -> Option<&FileSystemRounds> {
        slots::find(&self.file_systems, device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_s_name_tells_policy_and_layout() {
        let name = Arena::file_name(&"delay:1ms:64".parse().unwrap());
        assert!(name.starts_with("rounds-delay_1000000ns_64-v3-"), "{name}");
        assert_ne!(name, Arena::file_name(&Policy::Auto));
    }
}
