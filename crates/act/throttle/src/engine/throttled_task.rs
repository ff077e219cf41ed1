//! State of one task in the engine.

use std::collections::BTreeSet;
use std::io;

use luc_control::throttle::policy_input::{FreezeReason, TaskClass, TaskId, TaskSample};
use luc_probe::disk_contention::TaskSlot;
use serde::Serialize;

use super::disk_controller::ControllerId;
use super::frozen_count::FrozenCount;
use super::task_properties::TaskProperties;
use super::waiting_tasks;
use crate::ThrottleError;
use crate::cgroup::FreezableCgroup;
use crate::frozen_record::{FrozenRecord, RecordEntry};
use crate::open_file_sizes::{OpenFileId, OpenFiles};
use crate::priority_inversion::InversionTask;

/// Bytes that a task must move before the sizes of its open files are read again. The time below must have passed,
/// too.
const FILES_INTERVAL_BYTES: u64 = 8 << 20;
const FILES_INTERVAL_NS: u64 = 500_000_000;
/// Bytes up to which they are read after each request.
const MAX_FIRST_BYTES: u64 = 1 << 20;

/// Times since a task's last request at which its threads are checked for a wait for the next one, ns. Before, it does
/// not count as idle yet. After, it computes.
const WAIT_CHECK_NS: std::ops::Range<u64> = 8_000_000..1_000_000_000;

/// Time since its last request for which a task counts as active, ns.
const ACTIVE_TIMEOUT_NS: u64 = 1_000_000_000;

/// A cgroup under the throttle.
#[derive(Debug)]
pub(super) struct ThrottledTask {
    id: TaskId,
    pub(super) class: TaskClass,
    p99_ns: Option<u64>,
    pub(super) slot: TaskSlot,
    pub(super) entry: RecordEntry,
    cgroup: FreezableCgroup,
    /// Disks whose policies want it frozen.
    frozen_for: BTreeSet<ControllerId>,
    /// Time of its last request, ns; 0: never.
    last_submit_ns: u64,
    frozen_since_ns: Option<u64>,
    /// Counts of freezes and thaws.
    frozen: FrozenCount,
    /// Reason of the last order.
    pub(super) reason: Option<FreezeReason>,
    totals: FreezeTotals,
    size_bytes: Option<u64>,
    /// Bytes that it had yet to move when it had moved `sized_bytes`.
    remaining_bytes: Option<u64>,
    sized_ns: u64,
    sized_bytes: u64,
    /// Large files that it had open to read then.
    files: Vec<OpenFileId>,
}

/// Totals of a task's freezes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FreezeTotals {
    pub freezes: u64,
    pub frozen_ns: u64,
    pub longest_ns: u64,
}

impl FreezeTotals {
    /// Adds the totals of another task.
    pub(crate) fn add(&mut self, other: Self) {
        self.freezes += other.freezes;
        self.frozen_ns += other.frozen_ns;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

impl ThrottledTask {
    pub(super) fn new(
        id: TaskId,
        cgroup: FreezableCgroup,
        kind: TaskProperties,
        slot: TaskSlot,
        entry: RecordEntry,
        frozen: FrozenCount,
    ) -> Self {
        Self {
            id,
            class: kind.class,
            p99_ns: kind.p99_ns,
            slot,
            entry,
            cgroup,
            frozen_for: BTreeSet::new(),
            last_submit_ns: 0,
            frozen_since_ns: None,
            frozen,
            reason: None,
            totals: FreezeTotals::default(),
            size_bytes: kind.size_bytes,
            remaining_bytes: None,
            sized_ns: 0,
            sized_bytes: 0,
            files: Vec::new(),
        }
    }

    pub(super) fn cgroup(&self) -> &FreezableCgroup {
        &self.cgroup
    }

    /// View of the task for the search for inversions.
    pub(super) fn candidate(&self, now: u64) -> InversionTask<'_> {
        let since_ns = now.saturating_sub(self.last_submit_ns);
        InversionTask {
            id: self.id,
            cgroup: &self.cgroup,
            is_frozen: self.is_frozen(),
            is_active: self.class == TaskClass::Protected
                || (self.last_submit_ns > 0 && since_ns < ACTIVE_TIMEOUT_NS),
        }
    }

    /// Notes the time of its last request to a disk, ns; 0: never.
    pub(super) fn note_submit(&mut self, at_ns: u64) {
        self.last_submit_ns = self.last_submit_ns.max(at_ns);
    }

    pub(super) fn is_frozen(&self) -> bool {
        self.frozen_since_ns.is_some()
    }

    /// Beginning of its present freeze, ns, and the reason of its last freeze or thaw.
    pub(super) fn state(&self) -> (Option<u64>, Option<FreezeReason>) {
        (self.frozen_since_ns, self.reason)
    }

    pub(super) fn is_frozen_for(&self, controller: ControllerId) -> bool {
        self.frozen_for.contains(&controller)
    }

    pub(super) fn is_frozen_longer_than(&self, limit_ns: u64, now: u64) -> bool {
        self.frozen_since_ns.is_some_and(|since| now.saturating_sub(since) >= limit_ns)
    }

    /// Freezes it for a disk's policy. A task that is frozen by others is left alone.
    pub(super) fn freeze(
        &mut self,
        controller: ControllerId,
        now: u64,
        deadline_ns: u64,
        record: &FrozenRecord,
    ) -> Result<(), ThrottleError> {
        if self.is_frozen() {
            self.frozen_for.insert(controller);
            return Ok(());
        }
        match self.cgroup.is_asked_to_freeze() {
            Ok(false) => {}
            // It was frozen by others, or is gone.
            Ok(true) | Err(_) => return Ok(()),
        }
        record.note_freeze(self.entry, deadline_ns)?;
        match self.cgroup.set_frozen(true) {
            Ok(()) => {
                self.frozen_for.insert(controller);
                self.frozen_since_ns = Some(now);
                self.frozen.note_freeze();
                self.totals.freezes += 1;
                Ok(())
            }
            Err(error) => {
                record.note_thaw(self.entry)?;
                self.forgive(error, "freeze")
            }
        }
    }

    /// Takes back the freeze of a disk's policy.
    pub(super) fn release(
        &mut self,
        controller: ControllerId,
        now: u64,
        record: &FrozenRecord,
    ) -> Result<(), ThrottleError> {
        self.frozen_for.remove(&controller);
        if self.frozen_for.is_empty() {
            self.thaw(now, record)?;
        }
        Ok(())
    }

    /// Thaws it, regardless of the policies.
    pub(super) fn thaw(&mut self, now: u64, record: &FrozenRecord) -> Result<(), ThrottleError> {
        self.frozen_for.clear();
        let Some(since) = self.frozen_since_ns.take() else {
            return Ok(());
        };
        self.frozen.note_thaw();
        let frozen_ns = now.saturating_sub(since);
        self.totals.frozen_ns += frozen_ns;
        self.totals.longest_ns = self.totals.longest_ns.max(frozen_ns);
        let thawed = self.cgroup.set_frozen(false);
        record.note_thaw(self.entry)?;
        thawed.or_else(|error| self.forgive(error, "thaw"))
    }

    /// Ignores the error of a cgroup that was removed, since that is no longer frozen.
    fn forgive(&self, error: io::Error, what: &'static str) -> Result<(), ThrottleError> {
        if error.raw_os_error() == Some(libc::ENODEV) {
            return Ok(());
        }
        Err(ThrottleError::cgroup(what, self.cgroup.path())(error))
    }

    pub(super) fn totals(&self, now: u64) -> FreezeTotals {
        let mut totals = self.totals;
        if let Some(since) = self.frozen_since_ns {
            let frozen_ns = now.saturating_sub(since);
            totals.frozen_ns += frozen_ns;
            totals.longest_ns = totals.longest_ns.max(frozen_ns);
        }
        totals
    }

    /// Bytes that the task has yet to move after it has moved `bytes`. They follow from its given size or from the
    /// files that it reads; `None` if unknown.
    pub(super) fn remaining_bytes(&self, bytes: u64) -> Option<u64> {
        let since = bytes.saturating_sub(self.sized_bytes);
        Some(self.remaining_bytes?.saturating_sub(since))
    }

    /// Whether it is about to count as idle, but waits.
    pub(super) fn may_wait_without_request(&self, sample: &TaskSample, now: u64) -> bool {
        let since_ns = now.saturating_sub(sample.last_submit_ns);
        self.class == TaskClass::Batch
            && !self.is_frozen()
            && sample.outstanding == 0
            && WAIT_CHECK_NS.contains(&since_ns)
            && waiting_tasks::is_waiting(&self.cgroup)
    }

    /// Reads its open files, if it has moved many bytes since. Returns whether it did.
    pub(super) fn learn_files(&mut self, bytes: u64, now: u64) -> bool {
        let is_due = bytes >= self.sized_bytes + FILES_INTERVAL_BYTES
            && now >= self.sized_ns + FILES_INTERVAL_NS;
        // Its first request may have been for the folder of the file that it opens next.
        let is_first = self.files.is_empty() && bytes > self.sized_bytes && bytes < MAX_FIRST_BYTES;
        if self.class != TaskClass::Batch || !(is_due || is_first) {
            return false;
        }
        self.sized_ns = now;
        self.sized_bytes = bytes;
        let open = OpenFiles::of(&self.cgroup);
        self.remaining_bytes = match self.size_bytes {
            Some(size) => Some(size.saturating_sub(bytes)),
            None => open.remaining_bytes,
        };
        self.files = open.files;
        true
    }

    /// Whether both read the same file, at any position.
    pub(super) fn shares_a_file_with(&self, other: &Self) -> bool {
        self.files.iter().any(|file| other.files.contains(file))
    }

    /// Sample for a policy, without the activity on a disk.
    pub(super) fn sample(&self) -> TaskSample {
        TaskSample {
            class: self.class,
            frozen: self.is_frozen(),
            p99_ns: self.p99_ns,
            ..TaskSample::new(self.id)
        }
    }
}
