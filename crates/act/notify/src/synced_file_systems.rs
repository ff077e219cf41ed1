//! The file systems that notified programs synchronize on.

use std::os::fd::{AsRawFd as _, BorrowedFd};

use luc_gate::device_slots::FILE_SYSTEMS;
use luc_gate::figures::{FileSystemFigures, RunFigures};
use luc_gate::gate_policy::GatePolicy;
use luc_gate::gated_call::OwnCallTime;
use luc_gate::inspect::raw::{JournalKind, journal_of_device_raw, journal_of_file_raw};
use luc_gate::rounds::{FileSystemRounds, UserRounds};

use crate::fetch_file::FileStatus;
use crate::overlay_devices::OverlayDevices;

/// Rounds and figures that a supervisor takes part in.
#[derive(Clone, Debug)]
pub(crate) struct SupervisorMemory {
    /// The rounds of this user and policy.
    pub(crate) arena: &'static UserRounds,
    pub(crate) figures: &'static RunFigures,
    pub(crate) policy: GatePolicy,
    /// Devices, major and minor number, on which the kernel module batches.
    pub(crate) count_only: Vec<(u32, u32)>,
}

/// Index of a file system that programs synchronize on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileSystemId(pub(crate) usize);

/// A file system that programs synchronize on.
#[derive(Debug)]
pub(crate) struct SyncedFileSystem {
    device: u64,
    /// Rounds of this file system, if calls may gain by sharing commits there.
    pub(crate) rounds: Option<&'static FileSystemRounds>,
    /// Figures of this file system in this run.
    pub(crate) figures: Option<&'static FileSystemFigures>,
    /// Time that the calls of this run take there.
    pub(crate) own: OwnCallTime,
    is_decided: bool,
}

impl SyncedFileSystem {
    /// Whether the journal behind the device is known.
    pub(crate) fn is_decided(&self) -> bool {
        self.is_decided
    }
}

/// All file systems that notified programs synchronize on.
#[derive(Debug)]
pub(crate) struct SyncedFileSystems {
    shared: SupervisorMemory,
    known: Vec<SyncedFileSystem>,
    layers: OverlayDevices,
}

impl SyncedFileSystems {
    pub(crate) fn new(shared: SupervisorMemory) -> Self {
        Self { shared, known: Vec::with_capacity(FILE_SYSTEMS), layers: OverlayDevices::default() }
    }

    /// The place of the file system of a file that was looked at; `None` when there are too many. An overlay's place is
    /// that of its upper directory's file system. `file` is the file, if it was taken over.
    ///
    /// At the first look, only rounds that others are already in are joined. A file system tells whether it has fast
    /// commits only after it was synchronized once. So the journal is decided on at the second look.
    pub(crate) fn find(
        &mut self,
        look: &FileStatus,
        file: Option<BorrowedFd<'_>>,
    ) -> Option<FileSystemId> {
        let below = look.may_wait.then(|| self.layers.below(look.inode.device));
        let (device, file) = match below.flatten() {
            Some(below) => (below, None),
            None => (look.inode.device, file),
        };
        let known = self.known.iter().position(|place| place.device == device);
        let (index, is_new) = match known {
            Some(index) => (index, false),
            None if self.known.len() >= FILE_SYSTEMS => return None,
            None => {
                self.known.push(SyncedFileSystem {
                    device,
                    rounds: None,
                    figures: self.shared.figures.file_system(device),
                    own: OwnCallTime::new(),
                    is_decided: false,
                });
                (self.known.len() - 1, true)
            }
        };
        let place = self.known.get_mut(index)?;
        if !place.is_decided && (!is_new || self.shared.arena.find(device).is_some()) {
            place.is_decided = true;
            if self.shared.can_gain(device, file) {
                place.rounds = self.shared.arena.claim(device);
            }
            if let Some(rounds) = place.rounds {
                rounds.commits.start(&self.shared.policy);
            }
        }
        Some(FileSystemId(index))
    }

    pub(crate) fn layers(&mut self) -> &mut OverlayDevices {
        &mut self.layers
    }

    /// The place of a file, if it has one.
    pub(crate) fn of(&self, place: Option<FileSystemId>) -> Option<&SyncedFileSystem> {
        self.get(place?)
    }

    pub(crate) fn get(&self, FileSystemId(index): FileSystemId) -> Option<&SyncedFileSystem> {
        self.known.get(index)
    }
}

impl SupervisorMemory {
    /// Whether calls on the device may gain by sharing commits: on a journal without fast commits, under a policy that
    /// does more than count. A file of the device tells most about its journal.
    fn can_gain(&self, device: u64, file: Option<BorrowedFd<'_>>) -> bool {
        let numbers = (libc::major(device), libc::minor(device));
        let journal = match file {
            Some(file) => journal_of_file_raw(file.as_raw_fd()),
            None => journal_of_device_raw(numbers.0, numbers.1),
        };
        self.policy != GatePolicy::Off
            && !self.count_only.contains(&numbers)
            && journal == JournalKind::Jbd2
    }
}
