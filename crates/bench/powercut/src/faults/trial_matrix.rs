//! The matrix: for each mount option every errno without luc, then with each policy, then flushes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use luc_disk::{BlockErrno, FaultSpec};
use luc_host::interrupt_flag::interrupted;

use super::error::FaultsError;
use super::fault_disk::FaultDisk;
use super::fault_trial::{FaultTrial, FaultTrialOutcome, FaultyBlock};
use super::faults_report::{FailingRequest, FaultsReport};
use super::gate::TrialPolicy;
use super::trial_client::TrialClient;
use super::{FaultTrials, flushes};

/// Time of synchronizing after which policy `auto` is assumed to be engaged. With 8 callers and a flush of 6 ms it
/// engages within 4 s. The report says whether it did.
const ENGAGE_TIME: Duration = Duration::from_secs(5);
/// Errnos of one client then: the trials come and go, which may make `auto` step aside after some.
const MAX_ENGAGED_ERRNOS: usize = 3;

/// The result of a batch: all trials of an errno.
struct BatchResult {
    outcomes: Vec<FaultTrialOutcome>,
    failed: u64,
}

pub(super) fn run(
    plan: &FaultTrials,
    tick: &mut dyn FnMut(u64, u64),
) -> Result<FaultsReport, FaultsError> {
    let mut report = FaultsReport::new(plan);
    let flushes = plan.errnos.contains(&BlockErrno::EIO);
    let arms = 1 + plan.setting.policies.len() as u64;
    let steps_each = plan.errnos.len() as u64 + u64::from(flushes);
    let steps = plan.mount_options.len() as u64 * arms * steps_each;
    let mut done = 0;
    let mut step = || {
        done += 1;
        tick(done, steps);
    };
    let mut place = None;
    for options in &plan.mount_options {
        let place: &FaultDisk = match &place {
            None => place.insert(FaultDisk::create(&plan.setting, options)?),
            Some(place) => {
                place.renew(options)?;
                place
            }
        };
        let table = MountTrials { plan, place, options };
        match table.fill(flushes, &mut report, &mut step) {
            Err(FaultsError::Interrupted) => report.interrupted = true,
            Err(_) if interrupted() => report.interrupted = true,
            outcome => outcome?,
        }
        if report.interrupted {
            break;
        }
    }
    if let Some(place) = place {
        place.remove()?;
    }
    Ok(report)
}

/// The trials with one kind of mount.
struct MountTrials<'a> {
    plan: &'a FaultTrials,
    place: &'a FaultDisk,
    options: &'a str,
}

impl MountTrials<'_> {
    fn fill(
        &self,
        flushes: bool,
        report: &mut FaultsReport,
        step: &mut dyn FnMut(),
    ) -> Result<(), FaultsError> {
        let trials = FaultTrial::all(&self.plan.calls);
        let mut plain = BTreeMap::new();
        for policy in self.arms() {
            self.writes(policy, &trials, &mut plain, report, step)?;
        }
        if flushes {
            let trials: Vec<FaultTrial> =
                trials.into_iter().filter(|trial| trial.block == FaultyBlock::First).collect();
            let mut plain = None;
            for policy in self.arms() {
                self.flushes(policy, &trials, &mut plain, report)?;
                step();
            }
        }
        Ok(())
    }

    /// Returns without luc first, then each policy.
    fn arms(&self) -> impl Iterator<Item = Option<&TrialPolicy>> {
        [None].into_iter().chain(self.plan.setting.policies.iter().map(Some))
    }

    /// Makes the trials of all errnos of writes under one policy, and compares them with `plain`. Without a policy,
    /// they become `plain`.
    fn writes(
        &self,
        policy: Option<&TrialPolicy>,
        trials: &[FaultTrial],
        plain: &mut BTreeMap<BlockErrno, Vec<FaultTrialOutcome>>,
        report: &mut FaultsReport,
        step: &mut dyn FnMut(),
    ) -> Result<(), FaultsError> {
        let errnos = &self.plan.errnos;
        let most =
            if policy == Some(&TrialPolicy::Engaged) { MAX_ENGAGED_ERRNOS } else { errnos.len() };
        for errnos in errnos.chunks(most) {
            let mut speaker = self.client(policy)?;
            for &errno in errnos {
                self.write(policy, errno, &mut speaker, trials, plain, report)?;
                step();
            }
            report.held(policy, speaker.end()?);
        }
        Ok(())
    }

    fn write(
        &self,
        policy: Option<&TrialPolicy>,
        errno: BlockErrno,
        speaker: &mut TrialClient<'_>,
        trials: &[FaultTrial],
        plain: &mut BTreeMap<BlockErrno, Vec<FaultTrialOutcome>>,
        report: &mut FaultsReport,
    ) -> Result<(), FaultsError> {
        let ranges = speaker.prepare(trials)?;
        let fault = FaultSpec { ranges, ..FaultSpec::writes(errno) };
        let batch = self.batch(speaker, &fault, trials)?;
        report.count(policy, trials.len(), batch.failed);
        match (policy, plain.get(&errno)) {
            (Some(policy), Some(plain)) => {
                let fails = FailingRequest::Write(errno);
                report.compare(policy, self.options, fails, trials, plain, &batch.outcomes);
            }
            _ => {
                report.look(errno, trials, &batch.outcomes);
                plain.insert(errno, batch.outcomes);
            }
        }
        Ok(())
    }

    /// Makes the trials of failing flushes. The first failure aborts the journal, so the last trial is followed by a
    /// new file system.
    fn flushes(
        &self,
        policy: Option<&TrialPolicy>,
        trials: &[FaultTrial],
        plain: &mut Option<Vec<FaultTrialOutcome>>,
        report: &mut FaultsReport,
    ) -> Result<(), FaultsError> {
        self.place.renew(self.options)?;
        let mut speaker = self.client(policy)?;
        speaker.prepare(trials)?;
        let batch = self.batch(&mut speaker, &flushes(), trials)?;
        report.count(policy, trials.len(), batch.failed);
        match (policy, &plain) {
            (Some(policy), Some(plain)) => {
                report.compare(
                    policy,
                    self.options,
                    FailingRequest::Flush,
                    trials,
                    plain,
                    &batch.outcomes,
                );
            }
            _ => *plain = Some(batch.outcomes),
        }
        report.held(policy, speaker.end()?);
        self.place.renew(self.options)
    }

    fn client(&self, policy: Option<&TrialPolicy>) -> Result<TrialClient<'_>, FaultsError> {
        let speaker = TrialClient::start(self.plan, self.place, policy)?;
        if policy == Some(&TrialPolicy::Engaged) {
            let begun = Instant::now();
            while begun.elapsed() < ENGAGE_TIME {
                if interrupted() {
                    return Err(FaultsError::Interrupted);
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        Ok(speaker)
    }

    fn batch(
        &self,
        speaker: &mut TrialClient<'_>,
        fault: &FaultSpec,
        trials: &[FaultTrial],
    ) -> Result<BatchResult, FaultsError> {
        self.place.fail(fault)?;
        let outcomes = speaker.go(trials);
        // Even if the client has failed: nothing may fail any more for the rest.
        let failed = self.place.clear()?.failed;
        Ok(BatchResult { outcomes: outcomes?, failed })
    }
}
