//! The rounds of all file systems that one user's programs synchronize on, under one policy.
//!
//! `luc run` makes the file before it starts a program, so a program only ever maps it.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use luc_control::commit_end::OtherController;

use super::calls_under_way::{CallConcurrency, CallsUnderWay};
use super::join::DurabilityNeed;
use super::shared_layout::{CacheLine, Rounds};
use crate::device_slots::{self, DeviceSlot, FILE_SYSTEMS};
use crate::gate_policy::GatePolicy;

/// Changes with every change of the layout; part of the file's name, so that two versions of LUC never
/// share memory.
pub const LAYOUT_VERSION: u32 = 9;

/// One file system: two sets of rounds, each with a controller of its own.
#[repr(C)]
#[derive(Debug)]
pub struct FileSystemRounds {
    device: CacheLine<AtomicU64>,
    /// Where callers meet that need the journal to commit.
    pub commits: Rounds,
    /// Where callers meet that only need the device flushed, as long as no commit can take them along.
    pub flushes: Rounds,
    /// All calls on it, of either kind.
    pub under_way: CallsUnderWay,
}

/// What goes on beside one set of rounds of a file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileSystemActivity {
    /// Calls of either kind served since the beginning. Both controllers compare rates of all calls: when commits are
    /// gated they take callers along that otherwise are on their own.
    pub served: u64,
    /// What the controller of the other set does.
    pub others: OtherController,
    /// How many calls of either kind there are.
    pub crowd: CallConcurrency,
}

impl FileSystemRounds {
    /// The rounds of callers with these needs.
    pub fn of(&self, needs: DurabilityNeed) -> &Rounds {
        match needs {
            DurabilityNeed::Commit => &self.commits,
            DurabilityNeed::Flush => &self.flushes,
        }
    }

    /// What goes on beside the rounds of callers with these needs.
    pub fn beside(
        &self,
        needs: DurabilityNeed,
        policy: &GatePolicy,
        now_ns: u64,
    ) -> FileSystemActivity {
        let others = match needs {
            // Callers that need a commit are in no trial of those that need a flush.
            DurabilityNeed::Commit => {
                OtherController { lost: false, ..self.flushes.as_others(policy, now_ns) }
            }
            DurabilityNeed::Flush => self.commits.as_others(policy, now_ns),
        };
        FileSystemActivity {
            served: self.commits.completions().wrapping_add(self.flushes.completions()),
            others,
            crowd: self.under_way.crowd(now_ns),
        }
    }
}

impl DeviceSlot for FileSystemRounds {
    fn device(&self) -> &AtomicU64 {
        &self.device.0
    }
}

/// All of them. Mapped from a file that starts as zeros.
#[repr(C)]
#[derive(Debug)]
pub struct UserRounds {
    /// The time namespace of whoever made it, whose clock its times are of; 0 where there are none.
    clock: AtomicU64,
    file_systems: [FileSystemRounds; FILE_SYSTEMS],
}

impl UserRounds {
    /// The name of the file for `policy`. Callers with another policy or another version of the layout
    /// meet elsewhere.
    #[cfg(feature = "text")]
    pub fn file_name(policy: &GatePolicy) -> String {
        let policy = policy.to_string().replace(':', "_");
        format!("rounds-{policy}-v{LAYOUT_VERSION}-{}", size_of::<Self>())
    }

    /// Notes whose clock its times are of, unless that is known. To be called by whoever makes it.
    pub fn begin_clock(&self, namespace: u64) {
        // Fails if another run made it.
        let _ = self.clock.compare_exchange(0, namespace, Relaxed, Relaxed);
    }

    /// Whether the times in it are of the clock of this time namespace.
    pub fn has_clock(&self, namespace: u64) -> bool {
        let clock = self.clock.load(Relaxed);
        clock == 0 || clock == namespace
    }

    /// The rounds of the file system `device` (as `st_dev`), claimed on first use; `None` when all
    /// places are taken.
    pub fn claim(&self, device: u64) -> Option<&FileSystemRounds> {
        Some(device_slots::claim(&self.file_systems, device)?.1)
    }

    /// Forgets what was learnt of all file systems by policy `auto`. For a supervisor that follows one that was killed:
    /// the time in between, in which nobody counted calls, would be taken for time in which they were slow.
    pub fn forget(&self) {
        for (_, rounds) in device_slots::claimed(&self.file_systems) {
            rounds.commits.forget(&GatePolicy::Auto);
            rounds.flushes.forget(&GatePolicy::Auto);
        }
    }

    /// The rounds of the file system `device`, if others already take part in them.
    pub fn find(&self, device: u64) -> Option<&FileSystemRounds> {
        device_slots::find(&self.file_systems, device)
    }
}

#[cfg(test)]
mod tests {
    use luc_control::auto_gate::GatePlan;

    use super::*;

    #[test]
    fn the_file_s_name_tells_policy_and_layout() {
        let name = UserRounds::file_name(&"delay:1ms:64".parse().unwrap());
        assert!(name.starts_with("rounds-delay_1000000ns_64-v9-"), "{name}");
        assert_ne!(name, UserRounds::file_name(&GatePolicy::Auto));
    }

    #[test]
    fn each_controller_is_told_of_all_calls_and_of_the_other() {
        // SAFETY: all zeros is the valid initial state.
        let rounds: Box<FileSystemRounds> = Box::new(unsafe { core::mem::zeroed() });
        rounds.flushes.plan.store(&GatePlan {
            gated: true,
            trying: true,
            set_point: 4,
            ..GatePlan::default()
        });
        rounds.flushes.epoch_ns.0.store(1_000_000_000, Relaxed);
        rounds.flushes.complete();
        rounds.commits.complete();
        let (soon_ns, later_ns) = (1_500_000_000, 3_000_000_000);
        let of_commits = rounds.beside(DurabilityNeed::Commit, &GatePolicy::Auto, soon_ns);
        assert_eq!(of_commits.served, 2);
        assert!(of_commits.others.gated && of_commits.others.trying);
        // A trial to which nobody comes any more is not waited for.
        let others = rounds.beside(DurabilityNeed::Commit, &GatePolicy::Auto, later_ns).others;
        assert!(others.gated && !others.trying);
        let of_flushes = rounds.beside(DurabilityNeed::Flush, &GatePolicy::Auto, soon_ns);
        assert_eq!(of_flushes.others, OtherController::default());
        // Only commits take the others along, so only their trials are both's.
        for set in [&rounds.commits, &rounds.flushes] {
            set.plan.store(&GatePlan { lost: true, ..GatePlan::default() });
            set.epoch_ns.0.store(1_000_000_000, Relaxed);
        }
        let lost = |needs| rounds.beside(needs, &GatePolicy::Auto, soon_ns).others.lost;
        assert!(lost(DurabilityNeed::Flush) && !lost(DurabilityNeed::Commit));
    }
}
