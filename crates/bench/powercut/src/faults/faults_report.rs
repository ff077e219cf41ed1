//! Report on the trials.

use std::collections::BTreeMap;
use std::fmt;

use luc_disk::BlockErrno;
use serde::Serialize;

use super::FaultTrials;
use super::fault_trial::{DescriptorBeforeCall, FaultTrial, FaultTrialOutcome, TrialCall};
use super::gate::{GateHeldCalls, TrialPolicy};

/// Report of `luc faults` on all trials.
#[derive(Debug, Clone, Serialize)]
pub struct FaultsReport {
    pub kernel: String,
    pub fs: String,
    pub mkfs_options: String,
    /// Options of mount; all trials were made with each.
    pub mount_options: Vec<String>,
    pub errnos: Vec<BlockErrno>,
    pub calls: Vec<TrialCall>,
    /// Threads that synchronized beside the trials.
    pub beside: usize,
    /// Trials with luc, each compared with one without.
    pub trials: u64,
    /// Requests that the disk failed, with and without luc.
    pub failed_requests: u64,
    /// Trials without luc in which no call reported a failure.
    pub untold_without_gate: u64,
    /// Errnos that fsync reported without luc, by the errno of the disk.
    pub reported: BTreeMap<String, String>,
    pub policies: Vec<PolicyReport>,
    /// Trials in which calls returned other results with luc.
    pub differences: Vec<TrialDifference>,
    pub interrupted: bool,
}

/// The trials of a policy.
#[derive(Debug, Clone, Serialize)]
pub struct PolicyReport {
    /// Name on the command line; absent: without luc.
    pub policy: Option<String>,
    pub trials: u64,
    pub failed_requests: u64,
    /// Calls that the gate held, or commits that the module held, for those beside the trials as well; absent if that
    /// is not known.
    pub held_calls: Option<u64>,
    /// Clients that made them.
    pub clients: u64,
    /// Clients at whose end policy `auto` was engaged; absent if that is not known.
    pub engaged_clients: Option<u64>,
    /// Trials in which calls returned other results.
    pub differences: u64,
}

/// Request of the disk that fails in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailingRequest {
    /// The trial's write, with this errno.
    Write(BlockErrno),
    /// Every flush, with EIO.
    Flush,
}

/// A trial in which calls returned other results with luc.
#[derive(Debug, Clone, Serialize)]
pub struct TrialDifference {
    pub policy: String,
    pub mount_options: String,
    pub on: &'static str,
    pub errno: BlockErrno,
    #[serde(flatten)]
    pub trial: FaultTrial,
    /// Results of the calls without luc.
    pub without: FaultTrialOutcome,
    /// Results of the calls with luc.
    pub with: FaultTrialOutcome,
}

impl fmt::Display for TrialDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {}, {} {}: {}: {} without luc; {} with it",
            self.policy,
            self.mount_options,
            self.on,
            self.errno,
            self.trial,
            self.without,
            self.with
        )
    }
}

impl FaultsReport {
    pub(super) fn new(plan: &FaultTrials) -> Self {
        let policy = |policy: Option<String>| PolicyReport {
            policy,
            trials: 0,
            failed_requests: 0,
            held_calls: None,
            clients: 0,
            engaged_clients: None,
            differences: 0,
        };
        let named = plan.setting.policies.iter().map(TrialPolicy::to_string);
        Self {
            kernel: luc_disk::kernel_release(),
            fs: plan.setting.fs.clone(),
            mkfs_options: plan.setting.mkfs_options.clone(),
            mount_options: plan.mount_options.clone(),
            errnos: plan.errnos.clone(),
            calls: plan.calls.clone(),
            beside: plan.beside,
            trials: 0,
            failed_requests: 0,
            untold_without_gate: 0,
            reported: BTreeMap::new(),
            policies: [None].into_iter().chain(named.map(Some)).map(policy).collect(),
            differences: Vec::new(),
            interrupted: false,
        }
    }

    /// Returns whether every program got the same results with luc as without.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.differences.is_empty()
    }

    /// Counts trials that have been made.
    pub(super) fn count(&mut self, policy: Option<&TrialPolicy>, trials: usize, failed: u64) {
        if policy.is_some() {
            self.trials += trials as u64;
        }
        self.failed_requests += failed;
        let row = self.row(policy);
        row.trials += trials as u64;
        row.failed_requests += failed;
    }

    /// Counts the calls held for a client that has ended.
    pub(super) fn held(&mut self, policy: Option<&TrialPolicy>, held: Option<GateHeldCalls>) {
        let row = self.row(policy);
        row.clients += 1;
        let Some(held) = held else { return };
        *row.held_calls.get_or_insert(0) += held.calls;
        if policy == Some(&TrialPolicy::Engaged) {
            *row.engaged_clients.get_or_insert(0) += u64::from(held.is_engaged);
        }
    }

    /// Counts failures that the program never saw without luc, and notes the errno that fsync reports.
    pub(super) fn look(
        &mut self,
        errno: BlockErrno,
        trials: &[FaultTrial],
        outcomes: &[FaultTrialOutcome],
    ) {
        let untold = outcomes.iter().filter(|outcome| !outcome.is_failure());
        self.untold_without_gate += untold.count() as u64;
        let fsync = trials.iter().zip(outcomes).find(|(trial, _)| {
            trial.before == DescriptorBeforeCall::Direct
                && [TrialCall::Fsync, TrialCall::Fdatasync].contains(&trial.call)
        });
        if let Some((_, outcome)) = fsync {
            let told = outcome.first.errno;
            let name = BlockErrno::all().find(|known| known.number() == told);
            let name = name.map_or_else(|| told.to_string(), |known| known.to_string());
            self.reported.insert(errno.to_string(), name);
        }
    }

    pub(super) fn compare(
        &mut self,
        policy: &TrialPolicy,
        mount_options: &str,
        fails: FailingRequest,
        trials: &[FaultTrial],
        without: &[FaultTrialOutcome],
        with: &[FaultTrialOutcome],
    ) {
        let (on, errno) = match fails {
            FailingRequest::Write(errno) => ("write", errno),
            FailingRequest::Flush => ("flush", BlockErrno::EIO),
        };
        for ((trial, without), with) in trials.iter().zip(without).zip(with) {
            let differs = match fails {
                FailingRequest::Write(_) => without != with,
                FailingRequest::Flush => differ_after_flush(without, with),
            };
            if differs {
                self.row(Some(policy)).differences += 1;
                self.differences.push(TrialDifference {
                    policy: policy.to_string(),
                    mount_options: mount_options.to_owned(),
                    on,
                    errno,
                    trial: *trial,
                    without: *without,
                    with: *with,
                });
            }
        }
    }

    fn row(&mut self, policy: Option<&TrialPolicy>) -> &mut PolicyReport {
        let name = policy.map(TrialPolicy::to_string);
        let found = self.policies.iter().position(|row| row.policy == name);
        // Every policy of the plan has its row.
        &mut self.policies[found.unwrap_or(0)]
    }
}

/// Compares outcomes after a failed flush. The flush ends the journal, at a moment that depends on the other threads.
/// From then on calls fail with EROFS instead of EIO. So the call must fail in both cases or in neither; the errno is
/// not compared.
fn differ_after_flush(without: &FaultTrialOutcome, with: &FaultTrialOutcome) -> bool {
    without.first.is_failure() != with.first.is_failure()
        || without.second.is_failure() != with.second.is_failure()
        || without.close != with.close
}
